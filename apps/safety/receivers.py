"""The messages that this room carries out. No worker without the signing key may end an execution or a hold."""

from __future__ import annotations

from apps.bus.deliveries import repeating
from apps.bus.enums import Kind
from apps.bus.registry import register_later
from apps.safety.services import end_late

register_later(Kind.SAFETY_EXPIRY, repeating(end_late), standing=True)
