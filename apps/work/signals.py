"""Signals about work for the rooms above. Receivers run inside the transaction that changed the item."""

from __future__ import annotations

from django.utils.functional import Promise

from apps.work.models import GoalCycle, WorkItem
from kernel.events import Event

# (item, status, text for the visitor, next steps): sent on every change of status, the first included.
work_changed: Event[[WorkItem, str, str | Promise, list[str]]] = Event("work_changed")

# (item, message of its author, whether a person must look): it ended unexpectedly without being done.
work_escalated: Event[[WorkItem, str, bool]] = Event("work_escalated")

# (cycle): a goal was checked, and the outcome is stored.
goal_checked: Event[[GoalCycle]] = Event("goal_looked_at")
