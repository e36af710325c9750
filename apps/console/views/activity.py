"""What happened while I was away? The audit log in plain language, newest first, with the proof one press away."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import date, timedelta
from itertools import groupby
from pathlib import Path

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from apps.audit.bundles import write_bundle
from apps.audit.checkpoints import write_checkpoint
from apps.audit.models import AuditEntry
from apps.audit.queries import Chain, ChainView, entry_at, head_of, newest_checkpoint, newest_entries, read_chain
from apps.audit.rules import Finding, inspect
from apps.console.groups import GROUPS, HIGHLIGHTS
from apps.console.members import StaffRequest, staff_view
from apps.console.names import address_of, data_of, names_of
from apps.console.narrative import Names, Story, tell
from apps.console.views.pages import page
from apps.tenants.enums import Role
from kernel.errors import NotFound

PAGE = 50
FILTERS = (
    ("highlights", "Highlights"),
    ("decisions", "Decisions"),
    ("conversations", "Conversations"),
    ("work", "Work"),
    ("policy", "Policy"),
    ("everything", "Everything"),
)


@dataclass(frozen=True)
class Told:
    """An entry with its sentence and the page it is about; `times`: how many in a row say the same."""

    entry: AuditEntry
    story: Story
    address: str
    times: int = 1


@require_safe
@staff_view()
def activity(request: StaffRequest) -> HttpResponseBase:
    wanted, before = _filter(request), _before(request)
    chain = request.member.tenant.pk
    entries = newest_entries(chain, below=before, limit=PAGE + 1, events=_events(wanted))
    shown, more = entries[:PAGE], len(entries) > PAGE
    return page(
        request,
        "console/activity.html",
        at="activity",
        filters=FILTERS,
        show=wanted,
        before=before,
        days=list(_by_day(_told(request, shown), brief=wanted == "highlights")),
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
    (told,) = _told(request, [found])
    return page(request, "console/entry.html", at="activity", told=told, data=data_of(found))


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


def _inspected(view: ChainView) -> Finding:
    chain = str(view.chain.id)
    return inspect(view.entries, chain=chain, head=view.head, checkpoints=view.checkpoints, keys=view.keys)


def _filter(request: StaffRequest) -> str:
    wanted = request.GET.get("show", "")
    return wanted if wanted in dict(FILTERS) else "highlights"


def _events(wanted: str) -> frozenset[str]:
    return HIGHLIGHTS if wanted == "highlights" else GROUPS.get(wanted, frozenset())


def _before(request: StaffRequest) -> int | None:
    given = request.GET.get("before", "")
    return int(given) if given.isdecimal() and len(given) < 18 else None


def _told(request: StaffRequest, entries: list[AuditEntry]) -> list[Told]:
    names, owner = names_of(entries), request.member.may_administer
    return [Told(one, _story(one, names), address_of(one.subject, owner=owner)) for one in entries]


def _story(one: AuditEntry, names: Names) -> Story:
    return tell(one.event, actor=one.actor, subject=one.subject, data=data_of(one), names=names)


def _by_day(told: list[Told], *, brief: bool) -> Iterator[tuple[str, list[Told]]]:
    for day, lines in groupby(told, key=lambda one: timezone.localtime(one.entry.timestamp).date()):
        shown = list(lines)
        yield _day(day), _without_repeats(shown) if brief else shown


def _without_repeats(told: Iterable[Told]) -> list[Told]:
    runs = (list(same) for _, same in groupby(told, key=lambda one: (one.story, one.address)))
    return [replace(run[0], times=len(run)) for run in runs]


def _day(day: date) -> str:
    today = timezone.localdate()
    if day == today:
        return "Today"
    if day == today - timedelta(days=1):
        return "Yesterday"
    return f"{day:%A} {day.day} {day:%B %Y}"
