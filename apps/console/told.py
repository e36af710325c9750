"""How do entries of the log stand on a page? Each with its sentence, what it is about and its proof."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import date, timedelta
from itertools import groupby

from django.utils import timezone

from apps.audit.models import AuditEntry
from apps.console.members import Member
from apps.console.names import address_of, data_of, names_of
from apps.console.narrative import Names, Story, tell


@dataclass(frozen=True)
class Told:
    """An entry with its sentence and the page it is about; `times`: how many in a row say the same."""

    entry: AuditEntry
    story: Story
    address: str
    times: int = 1


def told_to(member: Member, entries: list[AuditEntry]) -> list[Told]:
    names, owner = names_of(entries), member.may_administer
    return [Told(one, _story(one, names), address_of(one.subject, owner=owner)) for one in entries]


def by_day(told: list[Told], *, brief: bool) -> Iterator[tuple[str, list[Told]]]:
    """With the day's name; `brief`: what says the same in a row is said once."""
    for day, lines in groupby(told, key=lambda one: timezone.localtime(one.entry.timestamp).date()):
        shown = list(lines)
        yield _day(day), without_repeats(shown) if brief else shown


def without_repeats(told: Iterable[Told]) -> list[Told]:
    runs = (list(same) for _, same in groupby(told, key=lambda one: (one.story, one.address)))
    return [replace(run[0], times=len(run)) for run in runs]


def _story(one: AuditEntry, names: Names) -> Story:
    return tell(one.event, actor=one.actor, subject=one.subject, data=data_of(one), names=names)


def _day(day: date) -> str:
    today = timezone.localdate()
    if day == today:
        return "Today"
    if day == today - timedelta(days=1):
        return "Yesterday"
    return f"{day:%A} {day.day} {day:%B %Y}"
