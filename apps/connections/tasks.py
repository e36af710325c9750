"""The worker's doors to connections: hold a conversation, look for lost ones, check what is due. Safe to run twice."""

from __future__ import annotations

from uuid import UUID

from celery import shared_task

from apps.connections import checking, holding, jobs
from apps.connections.services import course
from apps.tenants.queries import all_tenants
from kernel.tenancy import tenant_scope


@shared_task(name=jobs.HOLD)
def hold(tenant_id: str, setup_id: str) -> None:
    holding.begin(UUID(tenant_id), UUID(setup_id))


@shared_task(name="connections.sweep")
def sweep() -> None:
    for tenant in all_tenants():
        with tenant_scope(tenant):
            waiting = course.lost()
        for setup_id in waiting:
            holding.begin(tenant.pk, setup_id)


@shared_task(name="connections.check_due")
def check_due() -> None:
    checking.check_due()
