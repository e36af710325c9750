"""The worker's doors to connections: find out about one, hold a conversation, look for lost ones, check what is due,
clear the keyring. Safe to run twice."""

from __future__ import annotations

from functools import partial
from uuid import UUID

from celery import shared_task

from apps.connections import checking, discovering, holding, jobs, strays
from apps.connections.services import course, finding_out
from apps.tenants.queries import over_all
from kernel.tenancy import over_each, tenant_scope


@shared_task(name=jobs.HOLD)
def hold(tenant_id: str, setup_id: str) -> None:
    holding.begin(UUID(tenant_id), UUID(setup_id))


@shared_task(name=jobs.DISCOVER)
def discover(tenant_id: str, connection_id: str) -> None:
    discovering.discover(UUID(tenant_id), UUID(connection_id))


@shared_task(name="connections.sweep")
def sweep() -> None:
    over_all(sweep_of)


def sweep_of(tenant_id: UUID) -> None:
    with tenant_scope(tenant_id):
        waiting, unknown = course.lost(), finding_out.outstanding()
    for setup_id in waiting:
        holding.begin(tenant_id, setup_id)
    over_each(unknown, partial(discovering.discover, tenant_id))


@shared_task(name="connections.check_due")
def check_due() -> None:
    checking.check_due()


@shared_task(name="connections.clear_strays")
def clear_strays() -> None:
    strays.clear()
