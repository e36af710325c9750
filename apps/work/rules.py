"""Which way may a work item go, and in which order do children run? Decided from values."""

from __future__ import annotations

from apps.work.enums import WorkItemStatus as Status

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
FINAL = frozenset(status for status, onward in TRANSITIONS.items() if not onward)


def may_move(old: Status, new: Status) -> bool:
    return new in TRANSITIONS[old]
