"""The messages that this room carries out."""

from __future__ import annotations

from apps.bus.enums import Kind
from apps.bus.registry import register_job
from apps.guard.services import settle_lost

register_job(Kind.LOST_CALLS, settle_lost, recurring=True)
