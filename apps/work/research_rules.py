"""Limits and states of planner research (spec 19.4.1, 19.5.1; contract silas 15, research). Pure."""

from __future__ import annotations

from collections.abc import Collection

from apps.bus.schemas import RESEARCH_TOOLS
from apps.work.enums import PlanningState
from kernel.canonical import sha256_hex

MAX_IN_FLIGHT = 3
MAX_ROUNDS = 5
_CHARS_PER_TOKEN = 4

TRANSITIONS: dict[PlanningState, frozenset[PlanningState]] = {
    PlanningState.PLANNING: frozenset({PlanningState.AWAITING_RESEARCH, PlanningState.FINISHED}),
    PlanningState.AWAITING_RESEARCH: frozenset({PlanningState.READY_TO_FINALIZE, PlanningState.EXPIRED}),
    PlanningState.READY_TO_FINALIZE: frozenset({PlanningState.PLANNING}),
    PlanningState.EXPIRED: frozenset({PlanningState.PLANNING}),
    PlanningState.FINISHED: frozenset(),
}


def may_move(old: PlanningState, new: PlanningState) -> bool:
    return new in TRANSITIONS[old]


def questions_left(*, rounds: int, in_flight: int) -> int:
    """Return how many more questions are allowed: none when all rounds are used, and only a few at once."""
    return max(0, MAX_IN_FLIGHT - in_flight) if rounds < MAX_ROUNDS else 0


def dedupe_key(task: str, return_format: str, max_tokens: int) -> str:
    return sha256_hex({"task": task, "return_format": return_format, "max_tokens": max_tokens})


def clamp_tools(asked_for: Collection[str]) -> frozenset[str]:
    """Restrict the tools of a research run to the allow-list; the message cannot extend it."""
    return frozenset(asked_for) & frozenset(RESEARCH_TOOLS)


def truncate_answer(text: str, max_tokens: int) -> str:
    """Truncate an answer. Counted in characters, so that the result does not depend on a tokenizer."""
    return text[: max_tokens * _CHARS_PER_TOKEN]
