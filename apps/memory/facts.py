"""Decide what was true when, how rankings are fused, and how much a reader of memories may be given. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from math import ceil
from types import MappingProxyType
from uuid import UUID

from apps.memory.enums import Predicate, Purpose
from kernel.taint import Taint, join
from llm.briefing import RecalledMemory
from llm.enums import MemoryType

ONE_AT_A_TIME = frozenset({Predicate.IS, Predicate.CALLED, Predicate.LIVES_IN, Predicate.WORKS_AT, Predicate.PREFERS})
# The constant of reciprocal rank fusion: how little the first ranks stand out.
_FLAT = 60


@dataclass(frozen=True)
class Fact:
    """A relation as it was read: of whom, what, since when and until when (not included; None: until further notice).

    `written_at` decides between facts that begin at the same moment. `taint` is that of its memory.
    """

    memory_id: UUID
    scope: str
    subject: str
    predicate: Predicate
    value: str
    since: datetime
    until: datetime | None
    written_at: datetime
    taint: Taint
    confidence: int


def timeline(facts: Iterable[Fact]) -> list[Fact]:
    """The facts in order of time, each with its end.

    Of the predicates in `ONE_AT_A_TIME` the next fact about the same subject that says something else ends a fact,
    unless it is trusted less: what a visitor says does not end what the company recorded.
    """
    ordered = sorted(facts, key=lambda fact: (fact.since, fact.written_at, str(fact.memory_id), fact.value))
    ended: list[Fact] = []
    # Backwards, so that the later facts of the same subject and predicate are known, the next one last.
    later: dict[tuple[str, str, Predicate], list[Fact]] = {}
    for fact in reversed(ordered):
        if fact.predicate in ONE_AT_A_TIME:
            same = later.setdefault((fact.scope, fact.subject, fact.predicate), [])
            end = next((other.since for other in reversed(same) if _ends(other, fact)), None)
            same.append(fact)
            if end is not None and (fact.until is None or end < fact.until):
                fact = replace(fact, until=end)
        ended.append(fact)
    return ended[::-1]


def true_at(facts: Iterable[Fact], moment: datetime) -> list[Fact]:
    """Those of the facts that were true at this moment."""
    return [fact for fact in timeline(facts) if fact.since <= moment and (fact.until is None or moment < fact.until)]


def _ends(later: Fact, former: Fact) -> bool:
    """Whether a later fact of the same kind says something else, and is trusted no less."""
    other_value = later.value.casefold() != former.value.casefold()
    return other_value and join(later.taint, former.taint) == former.taint


def fuse(rankings: Iterable[Sequence[UUID]]) -> list[UUID]:
    """One ranking of several by reciprocal rank; of equals the one that was named first comes first."""
    scores: dict[UUID, float] = {}
    for ranking in rankings:
        for rank, memory_id in enumerate(ranking, 1):
            scores[memory_id] = scores.get(memory_id, 0.0) + 1 / (_FLAT + rank)
    return sorted(scores, key=lambda memory_id: -scores[memory_id])


@dataclass(frozen=True)
class Budget:
    """At most so many model tokens and memories."""

    tokens: int
    items: int


# Contract autonomy B5. A turn is an interactive task.
BUDGETS: Mapping[Purpose, Budget] = MappingProxyType(
    {
        Purpose.TURN: Budget(4_000, 25),
        Purpose.PLANNING: Budget(3_000, 20),
        Purpose.WORKFLOW: Budget(3_000, 20),
        Purpose.SCHEDULED: Budget(2_000, 15),
        Purpose.EVENT: Budget(1_500, 10),
        Purpose.HEARTBEAT: Budget(500, 5),
    }
)
# How large a part of the items one type may take, so that many episodes do not displace what is known of a person.
SHARES: Mapping[MemoryType, float] = MappingProxyType(
    {
        MemoryType.PROFILE: 1.0,
        MemoryType.PREFERENCE: 1.0,
        MemoryType.FACT: 1.0,
        MemoryType.DECISION: 0.6,
        MemoryType.EPISODE: 0.6,
        MemoryType.SKILL_NOTE: 0.4,
        MemoryType.FORESIGHT: 0.4,
    }
)


def within_budget(
    memories: Iterable[RecalledMemory], budget: Budget, *, count: Callable[[str], int]
) -> tuple[RecalledMemory, ...]:
    """The first memories that the budget holds; `count` counts model tokens.

    A memory whose type has its part is passed over. The first that the tokens do not hold ends it, except that the very
    first is always given (contract autonomy B5).
    """
    given: list[RecalledMemory] = []
    of_type: dict[str, int] = {}
    tokens = 0
    for memory in memories:
        if len(given) >= budget.items:
            break
        if of_type.get(memory.kind, 0) >= ceil(SHARES[MemoryType(memory.kind)] * budget.items):
            continue
        tokens += count(memory.text)
        if given and tokens > budget.tokens:
            break
        given.append(memory)
        of_type[memory.kind] = of_type.get(memory.kind, 0) + 1
    return tuple(given)
