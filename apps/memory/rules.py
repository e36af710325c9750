"""Decide from values when a memory is promoted, and when it is no longer recalled (spec 6.4).

What was said becomes an episode, an episode a fact, and a fact part of a profile, one level at a time, by how often,
in how many conversations and over how long the same was said. No promotion changes scope, trust or taint; the last
level needs a person.

A memory's weight halves with each `HALF_LIFE` without use and grows with each hour in which it was recalled, up to
`MOST_USES`; below `LEAST_WEIGHT` it is archived. Never used, it weighs 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum


class Level(StrEnum):
    """`raw` is the lane of what was said; the others are memory types."""

    RAW = "raw"
    EPISODE = "episode"
    FACT = "fact"
    PROFILE = "profile"


LADDER = tuple(Level)


@dataclass(frozen=True)
class Event:
    """One time that something was said: the conversation (`-` if none), the message or request in it, and when."""

    conversation: str
    reference: str
    at: datetime

    def __str__(self) -> str:
        return f"{self.conversation} {self.reference} {self.at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


@dataclass(frozen=True)
class Need:
    """The distinct events, distinct conversations, and time from the first to the last that a level needs."""

    events: int
    conversations: int
    span: timedelta


NEEDS = {
    Level.EPISODE: Need(2, 1, timedelta(0)),
    Level.FACT: Need(3, 2, timedelta(days=1)),
    Level.PROFILE: Need(5, 3, timedelta(days=7)),
}
# Promotions to these are asked of a person.
ASKED = frozenset({Level.PROFILE})


HALF_LIFE, MOST_USES, LEAST_WEIGHT = timedelta(days=30), 7, 1 / 8


def weight(uses: int, idle: timedelta) -> float:
    """What a memory weighs that was recalled in so many hours, the last time so long ago."""
    return (1 + min(uses, MOST_USES)) * float(0.5 ** (idle / HALF_LIFE))


def longest_idle(uses: int) -> timedelta:
    """How long such a memory may go without use until it weighs too little."""
    return HALF_LIFE * math.log2((1 + min(uses, MOST_USES)) / LEAST_WEIGHT)


def parse_event(text: str) -> Event:
    """The event as `Event.__str__` wrote it. Raises `ValueError`."""
    conversation, rest = text.split(" ", 1)
    reference, moment = rest.rsplit(" ", 1)
    return Event(conversation, reference, datetime.fromisoformat(moment))


def next_level(level: Level, events: Iterable[Event]) -> Level | None:
    """The level after this one if the events are enough for it, else None."""
    if level is Level.PROFILE:
        return None
    following = LADDER[LADDER.index(level) + 1]
    need, distinct = NEEDS[following], {(event.conversation, event.reference): event for event in events}
    moments = [event.at for event in distinct.values()]
    reached = (
        len(distinct) >= need.events
        and len({event.conversation for event in distinct.values()}) >= need.conversations
        and max(moments) - min(moments) >= need.span
    )
    return following if reached else None


def is_behavior(tags: Iterable[str]) -> bool:
    """Whether these are the tags of a preference about the bot's behavior, which only a card confirms (spec 6.6)."""
    return any(tag.startswith("behavior:") for tag in tags)
