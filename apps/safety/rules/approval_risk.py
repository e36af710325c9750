"""Risk of lifting a hold, in the terms of the approvals policy, which decides whether a passkey is required."""

from __future__ import annotations

from apps.approvals.enums import Risk
from apps.safety.enums import HoldKind

_RISKS = {HoldKind.CONFIRM: Risk.MEDIUM, HoldKind.VERIFY: Risk.HIGH, HoldKind.BLOCK: Risk.IRREVERSIBLE}


def approval_risk(kind: str) -> Risk:
    return _RISKS[HoldKind(kind)]
