"""Macros: the list, the page of one, and running one on a conversation after a preview."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http import QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.console.base import idempotency_key, page
from apps.console.members import ANSWERING_ROLES, StaffRequest, staff_view
from apps.console.pages.inbox.views import list_address
from apps.inbox import macros, queries, steps
from apps.inbox.enums import Do, Priority, Snooze
from apps.inbox.models import Macro, Team
from apps.inbox.steps import ME, NOBODY
from apps.sessions.queries import session_by_id
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import gettext

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
        chosen = _steps_from(request.POST)
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
        steps=[_shown(step) for step in offered[: steps.MAX_STEPS]],
        groups=_groups(),
        texts=[(do.value, do.label) for do in (Do.NOTE, Do.REPLY)],
    )


def _groups() -> list[tuple[str, list[tuple[str, str]]]]:
    """What a step can be chosen from, by group; a value is the step's kind and its own value."""
    plain = [(f"{do.value}:", str(do.label)) for do in (Do.TAKE_OVER, Do.RESOLVE)]
    people = [(f"{Do.ASSIGN}:{ME}", gettext("Me")), (f"{Do.ASSIGN}:{NOBODY}", gettext("Unassigned"))]
    people += [(f"{Do.ASSIGN}:{user.pk}", user.display_name) for user in queries.answering_members()]
    labels = queries.labels()
    replies = [(f"{Do.REPLY}:{reply.pk}", reply.name) for reply in queries.canned_replies()]
    groups = [
        (gettext("Conversation"), plain),
        (str(Do.ASSIGN.label), people),
        (str(Do.TEAM.label), [(f"{Do.TEAM}:{team.pk}", team.name) for team in Team.objects.all()]),
        (str(Do.LABEL.label), [(f"{Do.LABEL}:{label.pk}", label.name) for label in labels]),
        (str(Do.UNLABEL.label), [(f"{Do.UNLABEL}:{label.pk}", label.name) for label in labels]),
        (str(Do.PRIORITY.label), [(f"{Do.PRIORITY}:{value}", str(words)) for value, words in Priority.choices]),
        (str(Do.SNOOZE.label), [(f"{Do.SNOOZE}:{value}", str(words)) for value, words in Snooze.choices]),
        (gettext("Canned reply"), replies),
        (gettext("Text"), [(f"{do.value}:text", str(do.label)) for do in (Do.NOTE, Do.REPLY)]),
    ]
    return [group for group in groups if group[1]]


def _shown(step: dict[str, str]) -> dict[str, Any]:
    """A step as its row of the form has it."""
    known = {value for _, options in _groups() for value, _ in options}
    picked = f"{step['do']}:{step.get('value', '')}"
    if picked in known or not step["do"]:
        return {"pick": picked if step["do"] else "", "text": ""}
    return {"pick": f"{step['do']}:text", "text": step.get("value", "")}


def _steps_from(posted: QueryDict) -> list[dict[str, str]]:
    chosen = []
    for pick, text in zip(posted.getlist("pick"), posted.getlist("text"), strict=False):
        do, _, value = pick.partition(":")
        if do:
            chosen.append({"do": do, "value": text if value == "text" else value})
    return chosen
