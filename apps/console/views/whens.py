"""When does a task run, in plain words, and when are its next three times? In the tenant's time zone, which is active.

One query a kind for all triggers of a page.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from apps.autonomy.enums import Topic, TriggerKind
from apps.autonomy.models import Trigger
from apps.console.names import names_for
from apps.console.narrative import Names
from kernel import schedules
from kernel.clock import now
from kernel.errors import SilasError

COMING = 3
_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
_POINTS = {"collection": "collection", "after": "task", "goal": "work"}


@dataclass(frozen=True)
class When:
    """A trigger in words; `coming` only where a clock decides, `problem` where it could not be read."""

    trigger: Trigger | None
    words: str
    coming: tuple[datetime, ...] = ()
    problem: str = ""


def told_whens(groups: Sequence[Sequence[Trigger]]) -> list[list[When]]:
    """Each group's triggers in words."""
    names = names_for(word for group in groups for trigger in group for word in points_of(trigger.spec))
    return [[when(trigger, names) for trigger in group] for group in groups]


def when(trigger: Trigger, names: Names) -> When:
    said = preview(trigger.kind, trigger.spec, names)
    coming = said.coming
    if trigger.kind == TriggerKind.INTERVAL and trigger.next_at and not said.problem:
        coming = _row(trigger.next_at, _seconds(trigger.spec))
    return When(trigger, said.words, coming if trigger.enabled else (), said.problem)


def preview(kind: str, spec: Mapping[str, Any], names: Names) -> When:
    """What somebody is about to set up, in words; a schedule that cannot be read says so."""
    try:
        return When(None, _words(kind, spec, names), tuple(_coming(kind, spec)))
    except SilasError as refusal:
        return When(None, "", (), refusal.message)


def _coming(kind: str, spec: Mapping[str, Any]) -> Iterable[datetime]:
    if kind == TriggerKind.CRON:
        zone = timezone.get_current_timezone_name()
        return schedules.upcoming(str(spec.get("schedule", "")), after=now(), zone=zone, many=COMING)
    if kind == TriggerKind.INTERVAL:
        seconds = _seconds(spec)
        return _row(now() + timedelta(seconds=seconds), seconds)
    return ()


def _words(kind: str, spec: Mapping[str, Any], names: Names) -> str:
    match kind:
        case TriggerKind.CRON:
            return schedules.describe(str(spec.get("schedule", "")))
        case TriggerKind.INTERVAL:
            return f"Every {_span(_seconds(spec))}"
        case TriggerKind.EVENT:
            topic = str(spec.get("topic", ""))
            happened = str(Topic(topic).label) if topic in Topic.values else "Something happened"
            return f"When {happened[:1].lower()}{happened[1:]}"
        case TriggerKind.WATCH:
            return f"When a document comes into {_named(spec, 'collection', names)}"
        case TriggerKind.CHAIN:
            return f"After {_named(spec, 'after', names)}"
        case TriggerKind.GOAL_CHECK:
            every = "was looked at" if spec.get("healthy") else "was looked at and was not healthy"
            return f"When {_named(spec, 'goal', names)} {every}"
    return "By hand"


def _row(first: datetime, seconds: int) -> tuple[datetime, ...]:
    return tuple(first + timedelta(seconds=seconds) * place for place in range(COMING))


def points_of(spec: Mapping[str, Any]) -> list[str]:
    """What a specification points at, as words that have names."""
    return [f"{kind}:{spec[name]}" for name, kind in _POINTS.items() if spec.get(name)]


def _named(spec: Mapping[str, Any], name: str, names: Names) -> str:
    return names.of(f"{_POINTS[name]}:{spec.get(name)}")


def _seconds(spec: Mapping[str, Any]) -> int:
    given = spec.get("seconds")
    if not isinstance(given, int) or not _MINUTE <= given <= 366 * _DAY:
        raise SilasError("trigger_spec", "The shortest is every minute, the longest once a year.", status=422)
    return given


def _span(seconds: int) -> str:
    for size, name in ((_DAY, "day"), (_HOUR, "hour"), (_MINUTE, "minute")):
        if seconds % size == 0:
            many = seconds // size
            return name if many == 1 else f"{many} {name}s"
    return f"{seconds} seconds"
