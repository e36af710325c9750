"""Upkeep of the review queue: what nobody decided in time is closed. Beat calls it; safe to run twice."""

from __future__ import annotations

from celery import shared_task

from apps.approvals import services
from apps.tenants.queries import all_tenants
from kernel.tenancy import tenant_scope


@shared_task(name="approvals.expire_cards")
def expire_cards() -> None:
    for tenant in all_tenants():
        with tenant_scope(tenant):
            services.expire_cards()
