"""Import contacts, conversations and canned replies from an export of another help desk. For owners."""

from __future__ import annotations

from uuid import UUID, uuid4

from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.utils.functional import Promise
from django.views.decorators.http import require_safe

from apps.console.base import idempotency_key, page
from apps.console.members import StaffRequest, staff_view
from apps.imports import runs
from apps.imports.enums import Outcome, Reason, System
from apps.tenants.enums import Role
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import gettext_lazy

_NAMES: dict[str, str | Promise] = {
    "contact": gettext_lazy("Contacts"),
    "conversation": gettext_lazy("Conversations"),
    "reply": gettext_lazy("Canned replies"),
    "line": gettext_lazy("Lines that could not be read"),
}


@staff_view(Role.OWNER)
def listing(request: StaffRequest) -> HttpResponseBase:
    """Show the newest imports and the form; with POST, begin one."""
    if request.method != "POST":
        return _listing(request)
    system, file = request.POST.get("system", ""), request.FILES.get("file")
    if system not in System.values or file is None:
        return _listing(request, refusal=SilasError(ErrorCode.FORM_UNREADABLE))
    try:
        row = runs.submit(
            system=System(system),
            name=file.name or "",
            # One byte more than is taken is enough to refuse it.
            data=file.read(runs.MAX_UPLOAD_BYTES + 1),
            dry_run=request.POST.get("what") != "import",
            once=idempotency_key(request) or uuid4(),
            actor=request.member.user.actor,
        )
    except SilasError as refusal:
        if refusal.status not in (400, 409, 422):
            raise
        return _listing(request, refusal=refusal)
    return redirect("console-import", row.pk)


@require_safe
@staff_view(Role.OWNER)
def report(request: StaffRequest, run_id: UUID) -> HttpResponseBase:
    """What an import did, or would do, and why lines were skipped."""
    row = runs.run_by_id(run_id)
    lines = [(_NAMES[kind], [counts.get(each.value, 0) for each in Outcome]) for kind, counts in row.counts.items()]
    problems = [(line, Reason(reason).label) for line, reason in row.problems]
    return page(
        request,
        "console/import.html",
        at="contacts",
        row=row,
        lines=lines,
        outcomes=[each.label for each in Outcome],
        problems=problems,
    )


def _listing(request: StaffRequest, *, refusal: SilasError | None = None) -> TemplateResponse:
    return page(
        request,
        "console/imports.html",
        at="contacts",
        status=refusal.status if refusal else 200,
        refusal=refusal,
        runs=runs.newest_runs(),
        systems=System.choices,
        kinds=",".join(runs.KINDS),
        most=runs.MAX_UPLOAD_BYTES // 1_000_000,
    )
