"""The tick: what is due, who may begin, who is stuck. Every company in short scopes of its own; safe to run twice."""

from __future__ import annotations

import logging
from collections.abc import Callable
from uuid import UUID

from celery import shared_task
from django.db import DatabaseError

from apps.autonomy.services import admission, dispatching, dividing, halting
from kernel.tenancy import tenant_scope

_log = logging.getLogger(__name__)


@shared_task(name="autonomy.tick")
def tick() -> None:
    for tenant_id in dispatching.due_tenants():
        try:
            look_at(tenant_id)
        except Exception:  # noqa: BLE001 (one company's trouble must not stop the others')
            _log.exception("autonomy_tick_failed tenant=%s", tenant_id)


def look_at(tenant_id: UUID) -> None:
    """One company, now: what its clock owes, what happened, who is stuck; then let in whom there is room for."""
    while _in_scope(tenant_id, dispatching.dispatch_due):
        pass
    with tenant_scope(tenant_id):
        waiting = dispatching.happened()
    for trigger_id in waiting:
        _make_of(tenant_id, trigger_id)
    _in_scope(tenant_id, halting.watch)
    _in_scope(tenant_id, dividing.collect)
    with tenant_scope(tenant_id):
        dispatching.ticked()
    _in_scope(tenant_id, admission.admit_waiting)


def _make_of(tenant_id: UUID, trigger_id: UUID) -> None:
    """One run of what happened; a task that cannot be read switches its trigger off and stops nobody else."""
    try:
        with tenant_scope(tenant_id):
            dispatching.dispatch_happened(trigger_id)
    except DatabaseError:
        raise
    except Exception as error:  # noqa: BLE001 (one trigger's fault must not stop the others)
        _log.exception("autonomy_trigger_failed trigger=%s", trigger_id)
        with tenant_scope(tenant_id):
            dispatching.give_up(trigger_id, error)


def _in_scope(tenant_id: UUID, step: Callable[[], int]) -> int:
    with tenant_scope(tenant_id):
        return step()
