"""Record every platform scope, because access to all tenants must leave a trace."""

from __future__ import annotations

import re

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from kernel.tenancy.scope import platform_entered


@platform_entered.connect
def _record_platform_scope(reason: str) -> None:
    record(AuditEvent.PLATFORM_SCOPE_ENTERED, data={"reason": re.sub(r"[^\w.:/-]+", "_", reason)[:80]})
