"""The messages that this room carries out."""

from __future__ import annotations

from apps.bus.enums import Kind
from apps.bus.registry import register_later
from apps.guard.services import settle_lost

register_later(Kind.LOST_CALLS, settle_lost, standing=True)
