"""The messages that this room carries out: mail with codes, and the end of executions and holds that expire. No worker
without the signing key may end an execution or a hold."""

from __future__ import annotations

from apps.bus.deliveries import recurring_handler
from apps.bus.enums import Kind
from apps.bus.registry import register_job
from apps.safety import mailing
from apps.safety.services import end_late

register_job(Kind.SAFETY_CODE_MAIL, mailing.send_code)
register_job(Kind.SAFETY_EXPIRY, recurring_handler(end_late), recurring=True)
