"""Which assistance a chatbot's members have, and the records of requests. Reads only, inside the tenant's scope."""

from __future__ import annotations

from uuid import UUID

from apps.copilot.enums import AssistanceKind, AssistanceStatus
from apps.copilot.models import Assistance, AssistanceSettings
from kernel.errors import NotFound

NEWEST = 20


def kinds_on(deployment_id: UUID) -> frozenset[AssistanceKind]:
    row = AssistanceSettings.objects.filter(deployment_id=deployment_id).first()
    off = set(row.switched_off) if row else set()
    return frozenset(kind for kind in AssistanceKind if kind.value not in off)


def is_cancelled(assistance_id: UUID) -> bool:
    return bool(Assistance.objects.filter(pk=assistance_id, status=AssistanceStatus.CANCELLED).exists())


def assistance_by_id(session_id: UUID, assistance_id: UUID) -> Assistance:
    """Raises `NotFound` for an unknown or foreign one."""
    rows = Assistance.objects.filter(session_id=session_id).select_related("session__deployment", "member")
    found: Assistance | None = rows.filter(pk=assistance_id).first()
    if found is None:
        raise NotFound()
    return found


def newest_in(session_id: UUID) -> list[Assistance]:
    return list(Assistance.objects.filter(session_id=session_id).select_related("member")[:NEWEST])
