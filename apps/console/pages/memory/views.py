"""Memory: what the bots remember. Look through it, correct, pin, confirm, restore and delete it, and move it as a
bundle.

For members who answer visitors; confirming is for members who decide, bundles are for owners. The services check what a
role may change.
"""

from __future__ import annotations

from uuid import UUID

from django.http import FileResponse, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.views.decorators.http import require_POST, require_safe

from apps.console.base import page
from apps.console.members import ANSWERING_ROLES, DECIDING_ROLES, StaffRequest, staff_view
from apps.console.pages.memory import presenter
from apps.console.pages.memory.filters import STATES, TYPES, ListFilter
from apps.memory import portability, queries, services
from apps.memory.enums import DeletionReason, ScopeKind, Tier, Trust
from apps.memory.memories import MAX_REMEMBERED
from apps.memory.portability import Mode, Report
from apps.memory.services import Editor
from apps.tenants.enums import Capability
from apps.visitors import customer_memories
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import gettext
from kernel.taint import Taint
from kernel.tenancy import tenant_scope

PAGE = 50
_UNCACHED = {"Cache-Control": "private, no-store"}


@require_safe
@staff_view(*ANSWERING_ROLES)
def listing(request: StaffRequest) -> HttpResponseBase:
    chosen, before = ListFilter(request.GET), request.GET.get("before", "")
    rows, older = queries.list_memories(chosen.as_condition(), before=before, limit=PAGE)
    return page(
        request,
        "console/memories.html",
        at="memory",
        filter=chosen,
        lines=presenter.lines(rows),
        before=before,
        older=older,
        scopes=ScopeKind.choices,
        types=TYPES.items(),
        states=STATES,
    )


@require_safe
@staff_view(*ANSWERING_ROLES)
def memory(request: StaffRequest, memory_id: UUID) -> HttpResponseBase:
    return _memory(request, memory_id)


@require_POST
@staff_view(*ANSWERING_ROLES, scoped=False)
def correct(request: StaffRequest, memory_id: UUID) -> HttpResponseBase:
    """Outside of any scope, because the text is embedded first."""
    text = request.POST.get("text", "")
    try:
        services.correct(request.member.tenant.pk, memory_id, text, by=_editor(request))
    except SilasError as refusal:
        if refusal.status not in (409, 422):
            raise
        with tenant_scope(request.member.tenant):
            return _memory(request, memory_id, refusal=refusal, draft=text).render()
    return redirect("console-memory", memory_id)


@require_POST
@staff_view(*ANSWERING_ROLES)
def pin(request: StaffRequest, memory_id: UUID) -> HttpResponseBase:
    services.pin(memory_id, pinned=request.POST.get("pinned") == "yes", by=_editor(request))
    return redirect("console-memory", memory_id)


def _refused(request: StaffRequest, refusal: SilasError, memory_id: UUID) -> HttpResponseBase:
    return _memory(request, memory_id, refusal=refusal)


@require_POST
@staff_view(*DECIDING_ROLES, on_conflict=_refused)
def confirm(request: StaffRequest, memory_id: UUID) -> HttpResponseBase:
    services.confirm(memory_id, by=_editor(request))
    return redirect("console-memory", memory_id)


@require_POST
@staff_view(*ANSWERING_ROLES, on_conflict=_refused)
def restore(request: StaffRequest, memory_id: UUID) -> HttpResponseBase:
    services.restore(memory_id, by=_editor(request))
    return redirect("console-memory", memory_id)


@require_POST
@staff_view(*ANSWERING_ROLES, on_conflict=_refused)
def delete(request: StaffRequest, memory_id: UUID) -> HttpResponseBase:
    reason = request.POST.get("reason", "")
    if reason not in DeletionReason.values:
        raise SilasError(ErrorCode.FORM_UNREADABLE)
    services.delete(memory_id, reason=DeletionReason(reason), by=_editor(request))
    return redirect("console-memories")


@require_POST
@staff_view(*ANSWERING_ROLES)
def customer_file(request: StaffRequest) -> HttpResponseBase:
    """Download everything that is remembered about one customer, to hand to them."""
    customer, actor = request.POST.get("customer", ""), request.member.user.actor
    if request.POST.get("format") == "json":
        content, kind, name = customer_memories.export_json(customer, actor=actor), "application/json", "memories.json"
    else:
        content, kind, name = customer_memories.export_html(customer, actor=actor), "text/html", "memories.html"
    headers = {**_UNCACHED, "Content-Disposition": f'attachment; filename="{name}"'}
    return HttpResponse(content, content_type=f"{kind}; charset=utf-8", headers=headers)


@require_safe
@staff_view(Capability.ADMINISTER)
def bundle(request: StaffRequest) -> HttpResponseBase:
    return _bundle(request)


@require_POST
@staff_view(Capability.ADMINISTER, scoped=False)
def export_bundle(request: StaffRequest) -> HttpResponseBase:
    raw, actor = request.POST.get("raw") == "yes", request.member.user.actor
    file = portability.export_file(request.member.tenant.pk, include_raw=raw, actor=actor)
    return FileResponse(
        file, as_attachment=True, filename="memories.jsonl", content_type="application/jsonl", headers=_UNCACHED
    )


@require_POST
@staff_view(Capability.ADMINISTER, scoped=False)
def import_bundle(request: StaffRequest) -> HttpResponseBase:
    """Check a bundle and report what it would change; with the hash of that report, import it."""
    given, file = request.POST, request.FILES.get("bundle")
    mode = Mode(given["mode"]) if given.get("mode") in Mode.values else Mode.MERGE
    reviewed = given.get("reviewed", "")
    if file is None:
        raise SilasError(ErrorCode.NOTHING_IN_IT, gettext("Choose a file first."))
    report = portability.import_upload(
        request.member.tenant.pk,
        file,
        mode=mode,
        dry_run=not reviewed,
        reviewed=reviewed,
        actor=request.member.user.actor,
    )
    with tenant_scope(request.member.tenant):
        return _bundle(request, report=report, mode=mode, done=bool(reviewed)).render()


def _memory(
    request: StaffRequest, memory_id: UUID, *, refusal: SilasError | None = None, draft: str | None = None
) -> TemplateResponse:
    row = queries.memory(memory_id)
    company = row.scope.startswith(f"{ScopeKind.TENANT.value}:")
    may_change = row.trust != Trust.CONSTITUTIONAL and (not company or request.member.may_decide)
    active, confirmed = row.tier == Tier.ACTIVE, row.trust != Trust.WORKING
    return page(
        request,
        "console/memory.html",
        at="memory",
        status=refusal.status if refusal else 200,
        refusal=refusal,
        row=row,
        about=presenter.about(row.scope),
        customer=queries.customer_of(row.scope),
        kind=presenter.kind_of(row.memory_type),
        taint=presenter.TAINTS[row.taint],
        origin=presenter.origin_of(row),
        history=presenter.history_of(row, request.member.tenant.pk),
        draft=row.content if draft is None else draft,
        longest=MAX_REMEMBERED,
        active=active,
        confirmed=confirmed,
        external=row.taint == Taint.EXTERNAL,
        may_change=may_change,
        may_correct=may_change and active and (not confirmed or request.member.may_decide),
        may_restore=may_change and row.archived_at is not None and (not confirmed or request.member.may_decide),
        may_confirm=may_change and request.member.may_decide and active and not confirmed,
        reasons=DeletionReason.choices,
    )


def _bundle(
    request: StaffRequest,
    *,
    report: Report | None = None,
    mode: Mode = Mode.MERGE,
    done: bool = False,
) -> TemplateResponse:
    return page(
        request,
        "console/memory_bundle.html",
        at="memory",
        report=report,
        mode=mode,
        modes=Mode.choices,
        done=done,
        megabytes=portability.MAX_UPLOAD_BYTES // 1_000_000,
    )


def _editor(request: StaffRequest) -> Editor:
    return Editor(request.member.user.actor, request.member.user)
