"""News about work for the rooms above. Receivers run inside the transaction that changed the item."""

from __future__ import annotations

from apps.work.models import WorkItem
from kernel.events import Event

# (item, status, text for the visitor, next steps): told on every change of status, the first included.
work_changed: Event[[WorkItem, str, str, list[str]]] = Event("work_changed")
