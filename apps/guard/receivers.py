"""Register the bus messages that this room handles."""

from __future__ import annotations

from apps.bus.enums import Kind
from apps.bus.registry import register_job
from apps.guard.services import handle_lost_calls

register_job(Kind.LOST_CALLS, handle_lost_calls, recurring=True)
