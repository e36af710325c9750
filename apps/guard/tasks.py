"""Upkeep of the guard: lost calls, tenant by tenant, each in its own scope."""

from uuid import UUID

from celery import shared_task

from apps.guard import services
from apps.tenants.queries import over_all
from kernel.tenancy import tenant_scope


@shared_task(name="guard.settle_lost_calls")
def settle_lost_calls() -> None:
    over_all(settle_lost_calls_of)


def settle_lost_calls_of(tenant_id: UUID) -> int:
    with tenant_scope(tenant_id):
        return services.settle_lost_calls()
