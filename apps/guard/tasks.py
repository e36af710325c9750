"""Upkeep of the guard: lost calls, tenant by tenant, each in its own scope."""

from celery import shared_task

from apps.guard import services
from apps.tenants.queries import over_all
from kernel.tenancy import scoped


@shared_task(name="guard.settle_lost_calls")
def settle_lost_calls() -> None:
    over_all(scoped(services.settle_lost_calls))
