"""Which way may a work item go, and in which order do children run? Decided from values."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Any

from apps.guard.enums import RefusalCode
from apps.work.enums import WorkItemStatus as Status
from apps.work.enums import WorkReason

TRANSITIONS: dict[Status, frozenset[Status]] = {
    Status.PENDING: frozenset({Status.RUNNING, Status.BLOCKED, Status.PAUSED, Status.HEALTHY}),
    Status.RUNNING: frozenset(
        {Status.RUNNING, Status.DONE, Status.FAILED, Status.STUCK, Status.BLOCKED, Status.PAUSED}
    ),
    Status.HEALTHY: frozenset({Status.HEALTHY, Status.RUNNING, Status.FAILED, Status.PAUSED, Status.BLOCKED}),
    Status.PAUSED: frozenset({Status.PENDING, Status.RUNNING, Status.HEALTHY, Status.BLOCKED}),
    Status.DONE: frozenset(),
    Status.FAILED: frozenset(),
    Status.STUCK: frozenset(),
    Status.BLOCKED: frozenset(),
}
# What may come out of conversations: enough for honest work, too little to keep workers or approvers busy.
MAX_CALLS = 10
MAX_WAITING = 10
# Line breaks and tabs; the zero-width joiners that Persian or Hindi is written with.
_PLAIN_LAYOUT = frozenset("\n\r\t\u200c\u200d")
# Control, format, surrogate and private characters, line and paragraph separators; letters without a shape.
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
_BLANK_LETTERS = frozenset("\u115f\u1160\u3164\uffa0\u2800")

FINAL = frozenset(status for status, onward in TRANSITIONS.items() if not onward)


def may_move(old: Status, new: Status) -> bool:
    return new in TRANSITIONS[old]


_STOPS: dict[RefusalCode, WorkReason] = {
    RefusalCode.HALTED: WorkReason.HALTED,
    RefusalCode.PAUSED: WorkReason.HALTED,
    RefusalCode.NOT_RUNNING: WorkReason.HALTED,
    RefusalCode.GATE_BLOCKED: WorkReason.GATE,
    RefusalCode.TOOL_NOT_GRANTED: WorkReason.GATE,
    RefusalCode.APPROVAL_MISSING: WorkReason.NOT_APPROVED,
    RefusalCode.EFFECT_UNCERTAIN: WorkReason.UNCERTAIN,
    RefusalCode.COST_CAP_REACHED: WorkReason.BUDGET,
    RefusalCode.BUDGET_TOKENS: WorkReason.BUDGET,
    RefusalCode.BUDGET_TOOL_CALLS: WorkReason.BUDGET,
    RefusalCode.BUDGET_WALL_CLOCK: WorkReason.BUDGET,
    RefusalCode.GLOBAL_DAILY: WorkReason.BUDGET,
    RefusalCode.GLOBAL_MONTHLY: WorkReason.BUDGET,
    RefusalCode.PRICE_UNKNOWN: WorkReason.BUDGET,
}


def stop_for(refusal: RefusalCode | None) -> WorkReason:
    """Why another attempt would meet the same wall; NONE when it might not."""
    return _STOPS.get(refusal, WorkReason.NONE) if refusal else WorkReason.NONE


def domain_of(subject: str) -> str | None:
    """What an approval binds of the customer."""
    return f"business:customer/{subject}" if subject else None


def hides_something(value: Any) -> bool:
    """Does a text in it look different from what it is: with characters that turn the reading direction around, or that
    cannot be seen? A person who approves must see what is bound. (Joiners inside words are letters of some scripts.)"""
    if isinstance(value, str):
        return any(_is_hidden(character) for character in value)
    if isinstance(value, Mapping):
        return any(hides_something(each) for pair in value.items() for each in pair)
    return isinstance(value, list | tuple) and any(hides_something(each) for each in value)


def _is_hidden(character: str) -> bool:
    if character in _PLAIN_LAYOUT:
        return False
    return character in _BLANK_LETTERS or unicodedata.category(character) in _UNSEEN
