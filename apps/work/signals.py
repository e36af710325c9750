"""Signals about work for the rooms above. Receivers run inside the transaction that changed the item."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.functional import Promise

from apps.work.models import GoalCycle, WorkItem
from apps.work.visitor_messages import Change
from kernel.events import Event


@dataclass(frozen=True)
class Progress:
    """What a visitor may read of a change of status. `changes`: the values of a request for which a person's approval
    is asked now, by a process that may open cards; None for anything else."""

    text: str | Promise
    next_steps: list[str]
    changes: tuple[Change, ...] | None = None


# (item, status, progress): sent on every change of status, the first included.
work_changed: Event[[WorkItem, str, Progress]] = Event("work_changed")

# (item, message of its author, whether a person must look): it ended unexpectedly without being done.
work_escalated: Event[[WorkItem, str, bool]] = Event("work_escalated")

# (cycle): a goal was checked, and the outcome is stored.
goal_checked: Event[[GoalCycle]] = Event("goal_looked_at")
