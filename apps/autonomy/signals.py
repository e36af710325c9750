"""What does this room announce? Inside the transaction in which it happened."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apps.autonomy.enums import TaskEvent
from apps.autonomy.models import AutonomousSession
from kernel.events import Event

# (session, what happened, ids and counts that belong to it): for the console's socket and webhooks.
task_event: Event[[AutonomousSession, TaskEvent, Mapping[str, Any]]] = Event("task_event")
# (session): it ended, with its receipt.
session_ended: Event[[AutonomousSession]] = Event("session_ended")
