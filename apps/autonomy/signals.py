"""Signals of this room, sent in the transaction in which the change happened."""

from __future__ import annotations

from collections.abc import Mapping

from apps.autonomy.enums import TaskEvent
from apps.autonomy.models import AutonomousSession
from kernel.events import Event

# (session, event, ids and counts that belong to it): for the console's socket and webhooks.
task_event: Event[[AutonomousSession, TaskEvent, Mapping[str, object]]] = Event("task_event")
# (): the settings were written and automations are enabled.
automations_enabled: Event[[]] = Event("automations_enabled")
# (session): it ended, and its receipt is stored.
session_ended: Event[[AutonomousSession]] = Event("session_ended")
# (session, counts of its results): its task delivers results to webhooks.
result_delivered: Event[[AutonomousSession, Mapping[str, int]]] = Event("result_delivered")
