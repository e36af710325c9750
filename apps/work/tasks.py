"""Upkeep of work: the sweep visits every tenant in its own scope, and ends what it finds there one by one, each in a
scope of its own, so that it holds one conversation at a time. Safe to run twice."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from uuid import UUID

from celery import shared_task

from apps.tenants.queries import all_tenants
from apps.work.services import cycles, pausing, researching
from kernel.tenancy import tenant_scope


@shared_task(name="work.end_waits")
def end_waits() -> None:
    for tenant in all_tenants():
        _each(tenant.pk, pausing.overdue, pausing.end_wait)
        _each(tenant.pk, researching.overdue, researching.expire)


def _each(tenant_id: UUID, overdue: Callable[[], Iterable[UUID]], end: Callable[[UUID], None]) -> None:
    with tenant_scope(tenant_id):
        found = overdue()
    for each in found:
        with tenant_scope(tenant_id):
            end(each)


@shared_task(name="work.owe_cycles")
def owe_cycles() -> None:
    for tenant in all_tenants():
        with tenant_scope(tenant):
            cycles.owe_due()
