"""The messages that this room carries out: mail with codes, and the end of executions and holds that expire. No worker
without the signing key may end an execution or a hold."""

from __future__ import annotations

from apps.bus.deliveries import repeating
from apps.bus.enums import Kind
from apps.bus.registry import register_later
from apps.safety import mailing
from apps.safety.services import end_late

register_later(Kind.SAFETY_CODE_MAIL, mailing.send_code)
register_later(Kind.SAFETY_EXPIRY, repeating(end_late), standing=True)
