"""Upkeep of work: the sweep visits every tenant in its own scope, and ends what it finds there one by one, each in a
scope of its own, so that it holds one conversation at a time. Safe to run twice."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from uuid import UUID

from celery import shared_task

from apps.tenants.queries import over_all
from apps.work.services import cycles, pausing, researching
from kernel.tenancy import over_rows, scoped, tenant_scope


@shared_task(name="work.end_waits")
def end_waits() -> None:
    over_all(end_waits_of)


def end_waits_of(tenant_id: UUID) -> None:
    _end_each(tenant_id, pausing.overdue, pausing.end_wait)
    _end_each(tenant_id, researching.overdue, researching.expire)


def _end_each(tenant_id: UUID, overdue: Callable[[], Iterable[UUID]], end: Callable[[UUID], None]) -> None:
    with tenant_scope(tenant_id):
        found = overdue()
    for subject_id in found:
        with tenant_scope(tenant_id):
            over_rows([subject_id], end)


@shared_task(name="work.owe_cycles")
def owe_cycles() -> None:
    over_all(scoped(cycles.owe_due))
