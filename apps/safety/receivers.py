"""Register the jobs of the safety loop: code e-mails, and the expiry of executions and holds.

Both run on the trusted worker: no worker without the signing key may end an execution or a hold.
"""

from __future__ import annotations

from apps.bus.deliveries import recurring_handler
from apps.bus.enums import Kind
from apps.bus.registry import register_job
from apps.safety import handlers
from apps.safety.services import end_overdue

register_job(Kind.SAFETY_CODE_MAIL, handlers.send_code)
register_job(Kind.SAFETY_EXPIRY, recurring_handler(end_overdue), recurring=True)
