"""Ends of snoozes, the variables of canned replies, who gets a waiting conversation, and whether the conditions of an
inbox rule are met. Pure: the caller passes the time."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from typing import assert_never
from uuid import UUID

from apps.inbox.enums import Assignment, ConditionField, ConditionOperator, RuleMatch, Snooze

MORNING = time(9)
MAX_SNOOZE = timedelta(days=366)
# Values of conditions that ask one thing or the other.
YES, NO, OPEN, CLOSED = "yes", "no", "open", "closed"
VISITOR_NAME, MY_NAME, CHATBOT = "{visitor name}", "{my name}", "{chatbot}"
VARIABLES = (VISITOR_NAME, MY_NAME, CHATBOT)
# A name that is unknown leaves with the blanks and the comma before it: "Hello {visitor name}," becomes "Hello,".
_UNNAMED = re.compile(r",?[ \t]*" + re.escape(VISITOR_NAME))


def mentioned(text: str, names: Mapping[UUID, str]) -> set[UUID]:
    """Return the members whose name stands in `text` behind an `@`, in any case. Where one name begins another, the
    longest counts; members of the same name are all meant."""
    found = {part[1:].casefold() for part, is_mention in split_mentions(text, names.values()) if is_mention}
    return {member for member, name in names.items() if name.casefold() in found}


def split_mentions(text: str, names: Iterable[str]) -> list[tuple[str, bool]]:
    """Return the text in parts, each with whether it is an `@` and one of the names."""
    longest = sorted({name for name in names if name}, key=len, reverse=True)
    if not longest:
        return [(text, False)]
    pattern = rf"((?<![\w@])@(?:{'|'.join(map(re.escape, longest))})(?!\w))"
    parts = re.split(pattern, text, flags=re.IGNORECASE)
    return [(part, bool(place % 2)) for place, part in enumerate(parts) if part]


@dataclass(frozen=True)
class Candidate:
    """A member who could get a conversation, with how many they have."""

    member: UUID
    load: int
    skills: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Chosen:
    """`why`: the code that the activity log keeps."""

    member: UUID
    why: str


def choose_assignee(
    assignment: Assignment,
    candidates: Sequence[Candidate],
    *,
    capacity: int,
    wanted: frozenset[str] = frozenset(),
    last: UUID | None = None,
) -> Chosen | None:
    """Who gets a conversation; None when everybody has as many as they can take.

    `candidates` stand in an order that lasts, so that the same values give the same answer. Turns go on behind `last`;
    without a member who has a wanted skill, the load decides.
    """
    free = [one for one in candidates if one.load < capacity]
    if not free:
        return None
    by_load = min(free, key=lambda one: one.load)
    match assignment:
        case Assignment.OFF:
            return None
        case Assignment.ROUND_ROBIN:
            order = [one.member for one in candidates]
            start = order.index(last) + 1 if last in order else 0
            turns = {member: (index - start) % len(order) for index, member in enumerate(order)}
            return Chosen(min(free, key=lambda one: turns[one.member]).member, "round_robin")
        case Assignment.LEAST_LOAD:
            return Chosen(by_load.member, "least_load")
        case Assignment.SKILL:
            most = max(len(one.skills & wanted) for one in free)
            skilled = [one for one in free if len(one.skills & wanted) == most]
            return Chosen(min(skilled, key=lambda one: one.load).member, "skill" if most else "no_skill")
    assert_never(assignment)


@dataclass(frozen=True)
class Facts:
    """What conditions are asked of a conversation. `text`: the visitor's message that they look at; `language`: two
    letters; ids as texts, and `team` is empty for none."""

    chatbot: str
    channel: str
    language: str = ""
    labels: frozenset[str] = frozenset()
    team: str = ""
    is_assigned: bool = False
    is_open: bool = True
    is_identified: bool = False
    text: str = ""


def meets(facts: Facts, conditions: Sequence[Mapping[str, str]], match: RuleMatch) -> bool:
    """True if all or any of the conditions are met; without a condition, always."""
    met = (_is_met(facts, condition) for condition in conditions)
    return not conditions or (all(met) if match == RuleMatch.ALL else any(met))


def _is_met(facts: Facts, condition: Mapping[str, str]) -> bool:
    operator, value = ConditionOperator(condition["operator"]), condition["value"]
    wanted = operator in (ConditionOperator.IS, ConditionOperator.CONTAINS)
    return _holds(facts, ConditionField(condition["field"]), value) == wanted


def _holds(facts: Facts, field: ConditionField, value: str) -> bool:
    match field:
        case ConditionField.CHATBOT:
            return facts.chatbot == value
        case ConditionField.CHANNEL:
            return facts.channel == value
        case ConditionField.LANGUAGE:
            return facts.language.casefold() == value.casefold()
        case ConditionField.LABEL:
            return value in facts.labels
        case ConditionField.TEAM:
            return facts.team == value
        case ConditionField.ASSIGNED:
            return facts.is_assigned == (value == YES)
        case ConditionField.HOURS:
            return facts.is_open == (value == OPEN)
        case ConditionField.IDENTIFIED:
            return facts.is_identified == (value == YES)
        case ConditionField.TEXT:
            return " ".join(value.casefold().split()) in " ".join(facts.text.casefold().split())
    assert_never(field)


def snoozed_until(choice: Snooze, *, moment: datetime) -> datetime | None:
    """When a conversation is open again, None for not before its visitor answers; `moment` is now in the zone whose
    mornings are meant."""
    match choice:
        case Snooze.LATER:
            return moment + timedelta(hours=3)
        case Snooze.TOMORROW:
            return _morning(moment, days=1)
        case Snooze.MONDAY:
            return _morning(moment, days=7 - moment.weekday())
        case Snooze.WEEK:
            return moment + timedelta(days=7)
        case Snooze.REPLY:
            return None


def may_rest_until(until: datetime, *, moment: datetime) -> bool:
    """Some time ahead of us, and not for ever."""
    return moment < until <= moment + MAX_SNOOZE


def written_to(text: str, *, visitor: str, member: str, chatbot: str) -> str:
    """A canned reply as this visitor reads it. `visitor` is the name of a verified customer; without one the
    greeting has no name, and never the one that staff see."""
    named = text.replace(VISITOR_NAME, visitor) if visitor else _UNNAMED.sub("", text)
    return named.replace(MY_NAME, member).replace(CHATBOT, chatbot).strip()


def _morning(moment: datetime, *, days: int) -> datetime:
    return datetime.combine(moment.date() + timedelta(days=days), MORNING, moment.tzinfo)
