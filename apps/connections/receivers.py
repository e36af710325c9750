"""Register what becomes of this room's cards."""

from __future__ import annotations

from apps.approvals.enums import CardKind
from apps.approvals.registry import on_card
from apps.connections.services import recovery, requests

on_card(CardKind.CONNECTION, requests.CONNECTION, decided=requests.apply_connection_decision)
on_card(CardKind.PERMISSION_ESCALATION, requests.CONNECTION, decided=requests.apply_escalation_decision)
on_card(CardKind.CONNECTION_FAILURE, recovery.BROKEN, decided=recovery.apply_recovery)
on_card(CardKind.SUGGESTION, recovery.BROKEN, decided=recovery.apply_reminder)
