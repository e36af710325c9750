"""Upkeep of the bus: the sweep visits every tenant in its own scope."""

from celery import shared_task

from apps.bus import services
from apps.tenants.queries import all_tenants
from kernel.tenancy import tenant_scope


@shared_task(name="bus.sweep")
def sweep() -> None:
    for tenant in all_tenants():
        with tenant_scope(tenant):
            services.sweep()
