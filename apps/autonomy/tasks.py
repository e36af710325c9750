"""The tick: what is due, who may begin, who is stuck. Every company in short scopes of its own; safe to run twice."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar
from uuid import UUID

from celery import shared_task
from django.db import DatabaseError

from apps.autonomy.services import admission, dispatching, dividing, halting
from kernel.tenancy import tenant_scope

_log = logging.getLogger(__name__)
T = TypeVar("T")


@shared_task(name="autonomy.tick")
def tick() -> None:
    for tenant_id in dispatching.due_tenants():
        look_at(tenant_id)


def look_at(tenant_id: UUID) -> None:
    """One company, now: what its clock owes, what happened, who is stuck; then let in whom there is room for. A step
    that fails keeps neither the next one nor another company from being looked after."""
    while _step(tenant_id, dispatching.dispatch_due):
        pass
    for trigger_id in _step(tenant_id, dispatching.happened) or ():
        _make_of(tenant_id, trigger_id)
    _step(tenant_id, halting.watch)
    _step(tenant_id, dividing.collect)
    _step(tenant_id, dispatching.ticked)
    _step(tenant_id, admission.admit_waiting)


def _make_of(tenant_id: UUID, trigger_id: UUID) -> None:
    """One run of what happened; a task that cannot be read switches its trigger off and stops nobody else."""
    try:
        with tenant_scope(tenant_id):
            dispatching.dispatch_happened(trigger_id)
    except DatabaseError as error:
        _log.error("autonomy_trigger_failed trigger=%s error=%s", trigger_id, type(error).__name__)
    except Exception as error:  # noqa: BLE001 (one trigger's fault must not stop the others)
        _log.error("autonomy_trigger_failed trigger=%s error=%s", trigger_id, type(error).__name__)
        with tenant_scope(tenant_id):
            dispatching.give_up(trigger_id, error)


def _step(tenant_id: UUID, step: Callable[[], T]) -> T | None:
    try:
        with tenant_scope(tenant_id):
            return step()
    except Exception as error:  # noqa: BLE001 (one step's fault must not stop the others)
        _log.error("autonomy_step_failed tenant=%s step=%s error=%s", tenant_id, step.__name__, type(error).__name__)
        return None
