"""The worker's doors to connections: find out about one, hold a conversation, look for lost ones, check what is due,
clear the keyring. Safe to run twice."""

from __future__ import annotations

from uuid import UUID

from celery import shared_task

from apps.connections import checking, discovering, holding, jobs, strays
from apps.connections.services import course, finding_out
from apps.tenants.queries import all_tenants
from kernel.tenancy import tenant_scope


@shared_task(name=jobs.HOLD)
def hold(tenant_id: str, setup_id: str) -> None:
    holding.begin(UUID(tenant_id), UUID(setup_id))


@shared_task(name=jobs.DISCOVER)
def discover(tenant_id: str, connection_id: str) -> None:
    discovering.discover(UUID(tenant_id), UUID(connection_id))


@shared_task(name="connections.sweep")
def sweep() -> None:
    for tenant in all_tenants():
        with tenant_scope(tenant):
            waiting, unknown = course.lost(), finding_out.outstanding()
        for setup_id in waiting:
            holding.begin(tenant.pk, setup_id)
        for connection_id in unknown:
            discovering.discover(tenant.pk, connection_id)


@shared_task(name="connections.check_due")
def check_due() -> None:
    checking.check_due()


@shared_task(name="connections.clear_strays")
def clear_strays() -> None:
    strays.clear()
