"""Sources that are read again on a schedule. Owners add, test, run, pause and remove them; approvers see reports."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.views.decorators.http import require_POST, require_safe

from apps.console.base import page
from apps.console.members import DECIDING_ROLES, StaffRequest, staff_view
from apps.knowledge import ports, sources
from apps.knowledge.enums import WITHOUT_ACCOUNT, SourceKind
from apps.knowledge.models import Collection, KnowledgeSource
from apps.tenants.enums import Role
from kernel.errors import SilasError
from kernel.ids import require_id


@require_safe
@staff_view(*DECIDING_ROLES)
def listing(request: StaffRequest) -> HttpResponseBase:
    return _listing(request)


@require_POST
@staff_view(Role.OWNER)
def new(request: StaffRequest) -> HttpResponseBase:
    """Add a source; `what` is `test` for one that only reports at first."""
    sent, actor = request.POST, request.member.user.actor
    hours, account = sent.get("every_hours", ""), sent.get("connection", "")
    described = sources.NewSource(
        kind=sent.get("kind", SourceKind.WEBSITE),
        location=sent.get("location", "")[:600],
        every_hours=int(hours[:4]) if hours.isascii() and hours.isdigit() else 0,
        connection_id=require_id(account) if account else None,
    )
    collection_id, dry_run = require_id(sent.get("collection", "")), sent.get("what") == "test"
    return _do(request, lambda: sources.add_source(collection_id, described, actor=actor, dry_run=dry_run))


@require_POST
@staff_view(Role.OWNER)
def run(request: StaffRequest, source_id: UUID) -> HttpResponseBase:
    """Start a run now; a test run stores nothing."""
    return _do(request, lambda: sources.start_run(source_id, dry_run=request.POST.get("what") == "test"))


@require_POST
@staff_view(Role.OWNER)
def confirm(request: StaffRequest, source_id: UUID) -> HttpResponseBase:
    """Remove the documents that a run found deleted and kept."""
    return _do(request, lambda: sources.confirm_removals(source_id, actor=request.member.user.actor))


@require_POST
@staff_view(Role.OWNER)
def turn(request: StaffRequest, source_id: UUID) -> HttpResponseBase:
    enabled = request.POST.get("enabled") == "on"
    return _do(request, lambda: sources.turn_source(source_id, enabled=enabled, actor=request.member.user.actor))


@require_POST
@staff_view(Role.OWNER)
def remove(request: StaffRequest, source_id: UUID) -> HttpResponseBase:
    return _do(request, lambda: sources.remove_source(source_id, actor=request.member.user.actor))


def _do(request: StaffRequest, change: Callable[[], object]) -> HttpResponseBase:
    """Make a change and show the page again, with the reason if it is refused."""
    try:
        change()
    except SilasError as refusal:
        if refusal.status not in (400, 409, 422):
            raise
        return _listing(request, refusal=refusal)
    return redirect("console-sources")


def _listing(request: StaffRequest, *, refusal: SilasError | None = None) -> HttpResponseBase:
    accounts = ports.list_accounts()
    names = {account.id: account.name for account in accounts}
    rows: list[dict[str, Any]] = [
        {
            "source": source,
            "changes": sources.changes_of(source),
            "running": sources.is_running(source),
            "account": names.get(source.connection_id) if source.connection_id else "",
            "is_website": source.kind == SourceKind.WEBSITE,
        }
        for source in KnowledgeSource.objects.select_related("collection")
    ]
    asked = request.POST.get("kind") or request.GET.get("kind", "")
    kind = SourceKind(asked) if asked in SourceKind.values else SourceKind.WEBSITE
    return page(
        request,
        "console/sources.html",
        at="knowledge",
        status=refusal.status if refusal else 200,
        rows=rows,
        kinds=SourceKind.choices,
        kind=kind,
        needs_account=kind not in WITHOUT_ACCOUNT,
        accounts=accounts,
        collections=list(Collection.objects.order_by("name")),
        refusal=refusal,
    )
