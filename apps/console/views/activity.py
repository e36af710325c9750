"""What happened while I was away? The audit log in plain language, newest first, with the proof one press away."""

from __future__ import annotations

import tempfile
from pathlib import Path

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_POST, require_safe

from apps.audit.bundles import write_bundle
from apps.audit.checkpoints import write_checkpoint
from apps.audit.queries import Chain, ChainView, entry_at, head_of, newest_checkpoint, newest_entries, read_chain
from apps.audit.rules import Verification, verify_entries
from apps.console.members import StaffRequest, staff_view
from apps.console.names import data_of
from apps.console.proofs import proofs_of
from apps.console.sieve import FILTERS, people, places, sieve_of
from apps.console.told import by_day, told_to
from apps.console.views.pages import page
from apps.tenants.enums import Role
from kernel.errors import NotFound

PAGE = 50


@require_safe
@staff_view()
def activity(request: StaffRequest) -> HttpResponseBase:
    """Everything that passes the sieve, a page at a time by the entries' own numbers."""
    sieve, before = sieve_of(request.GET), _before(request)
    chain = request.member.tenant.pk
    entries = newest_entries(
        chain, below=before, limit=PAGE + 1, events=sieve.events, where=sieve.where(chain) if sieve.is_narrow else None
    )
    shown, more = entries[:PAGE], len(entries) > PAGE
    return page(
        request,
        "console/activity.html",
        at="activity",
        filters=FILTERS,
        sieve=sieve,
        people=people(),
        places=places(),
        before=before,
        days=list(by_day(told_to(request.member, shown), brief=sieve.show == "highlights")),
        older=shown[-1].seq if more else None,
        head=head_of(chain),
        signed=newest_checkpoint(chain),
    )


@require_safe
@staff_view()
def entry(request: StaffRequest, seq: int) -> HttpResponseBase:
    """One entry as it is stored and hashed."""
    found = entry_at(request.member.tenant.pk, seq)
    if found is None:
        raise NotFound("entry")
    (told,) = told_to(request.member, [found])
    proofs = proofs_of(found, owner=request.member.may_administer)
    return page(request, "console/entry.html", at="activity", told=told, data=data_of(found), proofs=proofs)


@require_POST
@staff_view(Role.OWNER, scoped=False)
def verify(request: StaffRequest) -> HttpResponseBase:
    """Check the whole chain now, from the first entry."""
    return render(request, "console/_verified.html", {"finding": read_chain(_chain(request), _inspected)})


@require_POST
@staff_view(Role.OWNER, scoped=False)
def export(request: StaffRequest) -> HttpResponseBase:
    """The bundle that a stranger can check (docs/audit-format.md)."""
    chain = _chain(request)
    write_checkpoint(chain)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bundle"
        read_chain(chain, lambda view: write_bundle(view, path))
        bundle = path.read_bytes()
    headers = {"Content-Disposition": f'attachment; filename="audit-{chain.name}.jsonl"'}
    return HttpResponse(bundle, content_type="application/jsonl", headers=headers)


def _chain(request: StaffRequest) -> Chain:
    return Chain(request.member.tenant.slug, request.member.tenant.pk)


def _inspected(view: ChainView) -> Verification:
    chain = str(view.chain.id)
    return verify_entries(view.entries, chain=chain, head=view.head, checkpoints=view.checkpoints, keys=view.keys)


def _before(request: StaffRequest) -> int | None:
    given = request.GET.get("before", "")
    return int(given) if given.isdecimal() and len(given) < 18 else None
