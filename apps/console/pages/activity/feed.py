"""Audit entries as lines of the activity feed: each with its sentence, its page and how often it repeats."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, timedelta
from itertools import groupby

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from apps.audit.enums import AuditEvent
from apps.audit.models import AuditEntry
from apps.console.members import Member
from apps.console.names import Names, address_of, data_of, names_of
from apps.console.pages.activity.phrases import CODES, FIELDS, SENTENCES, VARIANT, reason_in_words


@dataclass(frozen=True)
class Sentence:
    """One event in words: a mark (`ok`, `bad`, `ask` or none), the bold beginning, and the rest."""

    mark: str
    lead: str
    rest: str = ""


@dataclass(frozen=True)
class FeedLine:
    """An audit entry with its sentence and the address of the page it is about.

    `count` is the number of consecutive entries with the same sentence that this line stands for.
    """

    entry: AuditEntry
    sentence: Sentence
    address: str
    count: int = 1


def feed_lines(member: Member, entries: list[AuditEntry]) -> list[FeedLine]:
    """Return the entries as lines for this member, in the same order."""
    names, owner = names_of(entries), member.may_administer
    return [FeedLine(entry, describe_entry(entry, names), address_of(entry.subject, owner=owner)) for entry in entries]


def group_by_day(lines: list[FeedLine], *, merge: bool) -> Iterator[tuple[str, list[FeedLine]]]:
    """Yield the lines of each day with the day's name; `merge` joins consecutive lines that say the same."""
    for day, group in groupby(lines, key=lambda line: timezone.localtime(line.entry.timestamp).date()):
        lines_of_day = list(group)
        yield _day_name(day), merge_repeats(lines_of_day) if merge else lines_of_day


def merge_repeats(lines: Iterable[FeedLine]) -> list[FeedLine]:
    """Join consecutive lines with the same sentence and address into one line with a count."""
    runs = (list(same) for _, same in groupby(lines, key=lambda line: (line.sentence, line.address)))
    return [replace(run[0], count=len(run)) for run in runs]


def describe_entry(entry: AuditEntry, names: Names) -> Sentence:
    return describe_event(entry.event, actor=entry.actor, subject=entry.subject, data=data_of(entry), names=names)


def describe_event(event: str, *, actor: str, subject: str, data: Mapping[str, object], names: Names) -> Sentence:
    """Return the sentence of an event. An event without a phrase reads as its label, so that none is left out."""
    variant = f"{event}:{data.get(VARIANT.get(event, ''), '')}"
    label = AuditEvent(event).label if event in AuditEvent.values else event.replace("_", " ")
    mark, phrase = SENTENCES.get(variant) or SENTENCES.get(event) or ("", label)
    lead, _separator, rest = str(phrase).partition("|")
    fields = _Fields({name: _value_in_words(name, value) for name, value in data.items()})
    fields.update(
        who=names.of(actor),
        what=names.of(subject),
        tool=names.known.get(f"tool:{subject}:{data.get('seq')}", _("a tool")),
    )
    return Sentence(mark, lead.format_map(fields), rest.format_map(fields))


class _Fields(dict[str, str]):
    """The fields of a phrase; a field that an old entry does not have reads as three dots."""

    def __missing__(self, key: str) -> str:
        return "…"


def _value_in_words(name: str, value: object) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    if name == "fields" and isinstance(value, list):
        return ", ".join(str(FIELDS.get(str(column), str(column).replace("_", " "))) for column in value)
    if name in CODES:
        return reason_in_words(text)
    return text


def _day_name(day: date) -> str:
    today = timezone.localdate()
    if day == today:
        return _("Today")
    if day == today - timedelta(days=1):
        return _("Yesterday")
    return date_format(day, pgettext("format of a date with its weekday", "l j F Y"))
