"""Macros: the list, the page of one, and running one on a conversation after a preview."""

from __future__ import annotations

from uuid import UUID

from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.console.base import idempotency_key, page
from apps.console.members import ANSWERING_ROLES, StaffRequest, staff_view
from apps.console.pages.inbox.views import list_address
from apps.console.pages.macros.forms import shown_step, step_groups, steps_from
from apps.inbox import macros, steps
from apps.inbox.enums import Do
from apps.inbox.models import Macro
from apps.sessions.queries import session_by_id
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError

# So many steps a form offers.
OFFERED = 5
_REFUSALS_SHOWN = {ErrorCode.BAD_NAME, ErrorCode.BAD_STEPS, ErrorCode.NAME_TAKEN, ErrorCode.TOO_MANY}
_REFUSALS_SHOWN |= {ErrorCode.INVALID_TEXT}


@require_safe
@staff_view()
def macros_page(request: StaffRequest) -> HttpResponseBase:
    rows = [(row, steps.describe(row.steps)) for row in macros.macros_for(request.member.user)]
    return page(request, "console/macros.html", at="inbox", macros=rows)


@require_http_methods(["GET", "HEAD", "POST"])
@staff_view(*ANSWERING_ROLES)
def new_macro(request: StaffRequest) -> HttpResponseBase:
    return _macro(request, None)


@require_http_methods(["GET", "HEAD", "POST"])
@staff_view(*ANSWERING_ROLES)
def macro(request: StaffRequest, macro_id: UUID) -> HttpResponseBase:
    return _macro(request, macros.macro_for(request.member.user, macro_id))


@require_POST
@staff_view(*ANSWERING_ROLES)
def delete_macro(request: StaffRequest, macro_id: UUID) -> HttpResponseBase:
    macros.delete_macro(request.member.user, macro_id)
    return redirect("console-macros")


@require_http_methods(["GET", "HEAD", "POST"])
@staff_view(*ANSWERING_ROLES)
def run(request: StaffRequest, session_id: UUID, macro_id: UUID) -> HttpResponseBase:
    """Say what the macro will do to this conversation; on POST do it, with its reply left in the composer."""
    user, session = request.member.user, session_by_id(session_id)
    row = macros.macro_for(user, macro_id)
    back, refusal = list_address(request, session.pk), None
    if request.method == "POST":
        nonce, previewed = str(idempotency_key(request) or ""), request.POST.get("steps", "")
        try:
            draft = macros.run_macro(session.pk, user, row.pk, nonce=nonce, steps_hash=previewed)
        except SilasError as error:
            if error.code != ErrorCode.MACRO_CHANGED:
                raise
            refusal = error
        else:
            return redirect(f"{back}{'&' if '?' in back else '?'}draft={row.pk}" if draft else back)
    return page(
        request,
        "console/macro_run.html",
        at="inbox",
        status=refusal.status if refusal else 200,
        refusal=refusal,
        row=row,
        opened=session,
        effects=steps.preview(row.steps, session.pk, user),
        steps_hash=steps.hash_of(row.steps),
        back=back,
    )


def _macro(request: StaffRequest, row: Macro | None) -> HttpResponseBase:
    refusal = None
    name, is_personal = (row.name, row.owner_id is not None) if row else ("", False)
    chosen: list[dict[str, str]] = list(row.steps) if row else []
    if request.method == "POST":
        name, is_personal = request.POST.get("name", ""), "is_personal" in request.POST
        chosen = steps_from(request.POST)
        try:
            macros.save_macro(
                request.member.user,
                name=name,
                steps=chosen,
                is_personal=is_personal,
                macro_id=row.pk if row else None,
            )
        except SilasError as error:
            if error.code not in _REFUSALS_SHOWN:
                raise
            refusal = error
        else:
            return redirect("console-macros")
    offered = [*chosen, *({"do": "", "value": ""} for _ in range(max(OFFERED - len(chosen), 1)))]
    return page(
        request,
        "console/macro.html",
        at="inbox",
        status=refusal.status if refusal else 200,
        row=row,
        name=name,
        is_personal=is_personal,
        refusal=refusal,
        steps=[shown_step(step) for step in offered[: steps.MAX_STEPS]],
        groups=step_groups(),
        texts=[(do.value, do.label) for do in (Do.NOTE, Do.REPLY)],
    )
