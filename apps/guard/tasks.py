"""Upkeep of the guard: lost calls, tenant by tenant, each in its own scope."""

from celery import shared_task

from apps.guard import services
from apps.tenants.queries import all_tenants
from kernel.tenancy import tenant_scope


@shared_task(name="guard.settle_lost_calls")
def settle_lost_calls() -> None:
    for tenant in all_tenants():
        with tenant_scope(tenant):
            services.settle_lost_calls()
