"""News about work for the rooms above. Receivers run inside the transaction that changed the item."""

from __future__ import annotations

from apps.work.models import GoalCycle, WorkItem
from kernel.events import Event

# (item, status, text for the visitor, next steps): told on every change of status, the first included.
work_changed: Event[[WorkItem, str, str, list[str]]] = Event("work_changed")

# (item, what its author wants said, whether a person has to look): it ended without getting done, and not as expected.
work_escalated: Event[[WorkItem, str, bool]] = Event("work_escalated")

# (cycle): a goal was looked at, and what follows has been written down.
goal_checked: Event[[GoalCycle]] = Event("goal_looked_at")
