"""Compute the SLA clocks of a conversation from what happened in it. Pure: the caller passes moments and opening hours.

The bot answers first, so a conversation has clocks only while it is with the team: from the moment a person is wanted
or takes over, until it is handed back to the bot, or is resolved before anybody has taken over. What the bot has alone
has none.

- First reply: from then until the team's first reply.
- Next reply: from the visitor's first message that the team has not answered, until its next reply.
- Resolution: from then until the conversation is resolved; a new run begins when a resolved one is reopened.

Handing back ends all clocks, and resolving those of replies, as cancelled. Closed hours and the time for which the
conversation is snoozed do not count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import assert_never

from apps.inbox.enums import SlaEvent, SlaOutcome, SlaTarget
from apps.tenants.hours import Schedule, open_spans

# A target that is not reached within so many days of opening hours is never due.
LOOK_AHEAD_DAYS = 400
_ORDER = {event: place for place, event in enumerate(SlaEvent)}
_TARGETS = {target: place for place, target in enumerate(SlaTarget)}
_REPLIES = (SlaTarget.FIRST_REPLY, SlaTarget.NEXT_REPLY)


@dataclass(frozen=True)
class Moment:
    """Something that happened. `until`: when a snooze ends by itself; None: not before the visitor writes."""

    at: datetime
    event: SlaEvent
    until: datetime | None = None


@dataclass(frozen=True)
class Clock:
    """One run of a clock. `due_at` is None while it is paused with no end, or if it is never due."""

    target: SlaTarget
    started_at: datetime
    ended_at: datetime | None = None
    is_cancelled: bool = False
    due_at: datetime | None = None


def clocks(moments: Iterable[Moment], minutes: Mapping[SlaTarget, int], schedule: Schedule) -> list[Clock]:
    """All clocks that have run or run, in the order in which they started; without those that have no target."""
    history = _History()
    for moment in sorted(moments, key=lambda one: (one.at, _ORDER[one.event])):
        history.add(moment)
    return [
        replace(clock, due_at=due_at(clock.started_at, minutes[clock.target], schedule, history.pauses))
        for clock in sorted(history.all_clocks(), key=lambda one: (one.started_at, _TARGETS[one.target]))
        if clock.target in minutes
    ]


def outcome_of(clock: Clock, moment: datetime) -> SlaOutcome:
    """How the clock stands at `moment`. What ends at the moment it is due has met its target."""
    if clock.ended_at is None:
        is_due = clock.due_at is not None and clock.due_at <= moment
        return SlaOutcome.MISSED if is_due else SlaOutcome.RUNNING
    if clock.due_at is not None and clock.due_at < clock.ended_at:
        return SlaOutcome.MISSED
    return SlaOutcome.CANCELLED if clock.is_cancelled else SlaOutcome.MET


def due_at(
    started_at: datetime, minutes: int, schedule: Schedule, pauses: Sequence[tuple[datetime, datetime | None]] = ()
) -> datetime | None:
    """The time at which so many minutes of opening hours have passed since `started_at`, without the pauses; None if
    that is later than `LOOK_AHEAD_DAYS`."""
    left = timedelta(minutes=minutes)
    for opens, closes in _counted(schedule, pauses, since=started_at):
        if closes - opens >= left:
            return opens + left
        left -= closes - opens
    return None


def _counted(
    schedule: Schedule, pauses: Sequence[tuple[datetime, datetime | None]], *, since: datetime
) -> Iterator[tuple[datetime, datetime]]:
    """The open spans without the pauses, which are in order."""
    for opens, closes in open_spans(schedule, since=since, days=LOOK_AHEAD_DAYS):
        start = opens
        for begins, ends in pauses:
            if begins < closes and (ends is None or ends > start):
                if begins > start:
                    yield start, begins
                start = min(ends, closes) if ends else closes
        if start < closes:
            yield start, closes


@dataclass
class _History:
    """The state of a conversation while its moments are added in order. `is_taken`: a person answers; `is_answered`:
    the team has replied since the conversation came to it."""

    is_with_team: bool = False
    is_taken: bool = False
    is_answered: bool = False
    is_resolved: bool = False
    pauses: list[tuple[datetime, datetime | None]] = field(default_factory=list)
    _running: dict[SlaTarget, Clock] = field(default_factory=dict)
    _ended: list[Clock] = field(default_factory=list)

    def add(self, moment: Moment) -> None:
        at = moment.at
        match moment.event:
            case SlaEvent.WANTED:
                self._come_to_team(at)
            case SlaEvent.TAKEN_OVER:
                self._come_to_team(at)
                self.is_taken = True
            case SlaEvent.ASKED:
                if not self.is_with_team:
                    # A person had the conversation before any policy was there.
                    self.is_with_team = self.is_taken = self.is_answered = self.is_resolved = True
                self._reopen(at)
                if not any(target in self._running for target in _REPLIES):
                    self._start(SlaTarget.NEXT_REPLY if self.is_answered else SlaTarget.FIRST_REPLY, at)
            case SlaEvent.REPLIED:
                self.is_answered = self.is_answered or self.is_with_team
                self._end(at, *_REPLIES)
            case SlaEvent.SNOOZED:
                self._resume(at)
                self.pauses.append((at, moment.until))
            case SlaEvent.REOPENED:
                self._reopen(at)
            case SlaEvent.RESOLVED:
                self._resume(at)
                self._end(at, SlaTarget.RESOLUTION)
                self._end(at, *_REPLIES, is_cancelled=True)
                self.is_resolved = True
                if not self.is_taken:
                    self._leave_team()
            case SlaEvent.HANDED_BACK:
                self._resume(at)
                self._end(at, *SlaTarget, is_cancelled=True)
                self._leave_team()
            case _:
                assert_never(moment.event)

    def all_clocks(self) -> list[Clock]:
        return [*self._ended, *self._running.values()]

    def _come_to_team(self, at: datetime) -> None:
        if self.is_with_team:
            self._reopen(at)
            return
        self._resume(at)
        self.is_with_team = True
        self._start(SlaTarget.FIRST_REPLY, at)
        self._start(SlaTarget.RESOLUTION, at)

    def _leave_team(self) -> None:
        self.is_with_team = self.is_taken = self.is_answered = self.is_resolved = False

    def _reopen(self, at: datetime) -> None:
        self._resume(at)
        if self.is_with_team and self.is_resolved:
            self.is_resolved = False
            self._start(SlaTarget.RESOLUTION, at)

    def _start(self, target: SlaTarget, at: datetime) -> None:
        self._running[target] = Clock(target, at)

    def _end(self, at: datetime, *targets: SlaTarget, is_cancelled: bool = False) -> None:
        for target in targets:
            if clock := self._running.pop(target, None):
                self._ended.append(replace(clock, ended_at=at, is_cancelled=is_cancelled))

    def _resume(self, at: datetime) -> None:
        """End the snooze that lasts, if there is one."""
        if self.pauses and (self.pauses[-1][1] is None or self.pauses[-1][1] > at):
            self.pauses[-1] = (self.pauses[-1][0], at)
