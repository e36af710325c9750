"""What does the audit room hear about by itself? Every platform scope, because seeing all tenants leaves a trace."""

from __future__ import annotations

import re

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from kernel.tenancy.scope import platform_entered


@platform_entered.connect
def _platform_entered(reason: str) -> None:
    record(AuditEvent.PLATFORM_SCOPE_ENTERED, data={"reason": re.sub(r"[^\w.:/-]+", "_", reason)[:80]})
