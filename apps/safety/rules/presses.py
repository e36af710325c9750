"""How grave is it to let a held agent go on? In the words of approvals' policy, which says who shows a passkey."""

from __future__ import annotations

from apps.approvals.enums import Risk
from apps.safety.enums import HoldKind

_RISKS = {HoldKind.CONFIRM: Risk.MEDIUM, HoldKind.VERIFY: Risk.HIGH, HoldKind.BLOCK: Risk.IRREVERSIBLE}


def press_risk(kind: str) -> Risk:
    return _RISKS[HoldKind(kind)]
