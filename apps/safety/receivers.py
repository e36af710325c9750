"""The messages on the bus that this room carries out."""

from __future__ import annotations

from apps.bus.enums import Kind
from apps.bus.registry import register_later
from apps.safety import mailing

register_later(Kind.SAFETY_CODE_MAIL, mailing.send_code)
