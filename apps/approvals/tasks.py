"""Upkeep of the review queue: what nobody decided in time is closed. Beat calls it; safe to run twice."""

from __future__ import annotations

from uuid import UUID

from celery import shared_task

from apps.approvals import services
from apps.tenants.queries import over_all
from kernel.tenancy import tenant_scope


@shared_task(name="approvals.expire_cards")
def expire_cards() -> None:
    over_all(expire_cards_of)


def expire_cards_of(tenant_id: UUID) -> int:
    with tenant_scope(tenant_id):
        return services.expire_cards()
