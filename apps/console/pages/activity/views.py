"""Activity: the audit log in plain language, newest first, and each entry with its evidence."""

from __future__ import annotations

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_POST, require_safe

from apps.audit.bundles import export_chain
from apps.audit.queries import Chain, entry_at, head_of, newest_checkpoint, newest_entries, verify_chain
from apps.console.base import page
from apps.console.members import StaffRequest, staff_view
from apps.console.names import data_of
from apps.console.pages.activity.evidence import evidence_for
from apps.console.pages.activity.feed import feed_lines, group_by_day
from apps.console.pages.activity.filters import KINDS, actor_choices, chatbot_choices, filter_from
from apps.tenants.enums import Role
from kernel.errors import NotFound

PAGE = 50


@require_safe
@staff_view()
def activity(request: StaffRequest) -> HttpResponseBase:
    """Show the entries that match the filter, paged by entry number."""
    text = request.GET.get("before", "")
    chosen, before = filter_from(request.GET), int(text) if text.isdecimal() and len(text) < 18 else None
    chain = request.member.tenant.pk
    condition = chosen.condition(chain) if chosen.is_active else None
    entries = newest_entries(chain, below=before, limit=PAGE + 1, events=chosen.events, where=condition)
    shown, more = entries[:PAGE], len(entries) > PAGE
    return page(
        request,
        "console/activity.html",
        at="activity",
        kinds=KINDS,
        filter=chosen,
        actors=actor_choices(),
        chatbots=chatbot_choices(),
        before=before,
        days=list(group_by_day(feed_lines(request.member, shown), merge=chosen.show == "highlights")),
        older=shown[-1].seq if more else None,
        head=head_of(chain),
        signed=newest_checkpoint(chain),
    )


@require_safe
@staff_view()
def entry(request: StaffRequest, seq: int) -> HttpResponseBase:
    """Show one entry as it is stored and hashed, with its evidence."""
    row = entry_at(request.member.tenant.pk, seq)
    if row is None:
        raise NotFound()
    (line,) = feed_lines(request.member, [row])
    evidence = evidence_for(row, owner=request.member.may_administer)
    return page(request, "console/entry.html", at="activity", line=line, data=data_of(row), evidence=evidence)


@require_POST
@staff_view(Role.OWNER, scoped=False)
def verify(request: StaffRequest) -> HttpResponseBase:
    """Verify the whole chain from its first entry."""
    return render(request, "console/_verified.html", {"finding": verify_chain(_chain(request))})


@require_POST
@staff_view(Role.OWNER, scoped=False)
def export(request: StaffRequest) -> HttpResponseBase:
    """Return the bundle that an auditor can verify on their own (docs/audit-format.md)."""
    chain = _chain(request)
    headers = {"Content-Disposition": f'attachment; filename="audit-{chain.name}.jsonl"'}
    return HttpResponse(export_chain(chain), content_type="application/jsonl", headers=headers)


def _chain(request: StaffRequest) -> Chain:
    return Chain(request.member.tenant.slug, request.member.tenant.pk)
