"""Triggers in words, with their next three runs in the active time zone (the tenant's).

One query per kind of reference for all triggers of a page.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, pgettext

from apps.autonomy.enums import Topic, TriggerKind
from apps.autonomy.models import Trigger
from apps.console.names import Names, names_for
from kernel import schedules
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError

COMING = 3
_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
_REFERENCES = {"collection": "collection", "after": "task", "goal": "work"}


@dataclass(frozen=True)
class TriggerInWords:
    """A trigger in words; `coming` only for schedules and intervals, `problem` if the schedule can't be read."""

    trigger: Trigger | None
    words: str
    coming: tuple[datetime, ...] = ()
    problem: str = ""


def triggers_in_words(groups: Sequence[Sequence[Trigger]]) -> list[list[TriggerInWords]]:
    """Return the triggers of each group in words."""
    names = names_for(word for group in groups for trigger in group for word in references_in(trigger.spec))
    return [[_in_words(trigger, names) for trigger in group] for group in groups]


def _in_words(trigger: Trigger, names: Names) -> TriggerInWords:
    words = preview(trigger.kind, trigger.spec, names)
    coming = words.coming
    if trigger.kind == TriggerKind.INTERVAL and trigger.next_at and not words.problem:
        coming = _repeated(trigger.next_at, _seconds(trigger.spec))
    return TriggerInWords(trigger, words.words, coming if trigger.enabled else (), words.problem)


def preview(kind: str, spec: Mapping[str, object], names: Names) -> TriggerInWords:
    """Return a trigger that is being typed, in words; a schedule that can't be read becomes its `problem`."""
    try:
        return TriggerInWords(None, _words(kind, spec, names), tuple(_coming(kind, spec)))
    except SilasError as refusal:
        return TriggerInWords(None, "", (), refusal.message)


def _coming(kind: str, spec: Mapping[str, object]) -> Iterable[datetime]:
    if kind == TriggerKind.CRON:
        zone = timezone.get_current_timezone_name()
        return schedules.upcoming(str(spec.get("schedule", "")), after=now(), zone=zone, many=COMING)
    if kind == TriggerKind.INTERVAL:
        seconds = _seconds(spec)
        return _repeated(now() + timedelta(seconds=seconds), seconds)
    return ()


def _words(kind: str, spec: Mapping[str, object], names: Names) -> str:
    match kind:
        case TriggerKind.CRON:
            return schedules.describe(str(spec.get("schedule", "")))
        case TriggerKind.INTERVAL:
            return _every(_seconds(spec))
        case TriggerKind.EVENT:
            topic = str(spec.get("topic", ""))
            happened = str(Topic(topic).label) if topic in Topic.values else _("Something happens")
            return _("When {event}").format(event=f"{happened[:1].lower()}{happened[1:]}")
        case TriggerKind.WATCH:
            return _("When a document is added to {collection}").format(collection=_named(spec, "collection", names))
        case TriggerKind.CHAIN:
            return _("After {automation}").format(automation=_named(spec, "after", names))
        case TriggerKind.GOAL_CHECK:
            words = _("When {goal} is checked") if spec.get("healthy") else _("When {goal} is checked and not healthy")
            return words.format(goal=_named(spec, "goal", names))
    return pgettext("how an automation starts", "Manual")


def _repeated(first: datetime, seconds: int) -> tuple[datetime, ...]:
    return tuple(first + timedelta(seconds=seconds) * place for place in range(COMING))


def references_in(spec: Mapping[str, object]) -> list[str]:
    """Return the `kind:id` references in the specification of a trigger."""
    return [f"{kind}:{spec[name]}" for name, kind in _REFERENCES.items() if spec.get(name)]


def _named(spec: Mapping[str, object], name: str, names: Names) -> str:
    return names.of(f"{_REFERENCES[name]}:{spec.get(name)}")


def _seconds(spec: Mapping[str, object]) -> int:
    given = spec.get("seconds")
    if not isinstance(given, int) or not _MINUTE <= given <= 366 * _DAY:
        raise SilasError(ErrorCode.TRIGGER_SPEC, _("Choose an interval between one minute and one year."))
    return given


def _every(seconds: int) -> str:
    """Return the interval in the largest unit that divides it."""
    if seconds % _DAY == 0:
        return ngettext("Every day", "Every {number} days", seconds // _DAY).format(number=seconds // _DAY)
    if seconds % _HOUR == 0:
        return ngettext("Every hour", "Every {number} hours", seconds // _HOUR).format(number=seconds // _HOUR)
    if seconds % _MINUTE == 0:
        return ngettext("Every minute", "Every {number} minutes", seconds // _MINUTE).format(number=seconds // _MINUTE)
    return ngettext("Every second", "Every {number} seconds", seconds).format(number=seconds)
