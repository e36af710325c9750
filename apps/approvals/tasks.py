"""Upkeep of the review queue: what nobody decided in time is closed. Beat calls it; safe to run twice."""

from __future__ import annotations

from celery import shared_task

from apps.approvals import services
from apps.tenants.queries import over_all
from kernel.tenancy import scoped


@shared_task(name="approvals.expire_cards")
def expire_cards() -> None:
    over_all(scoped(services.expire_cards))
