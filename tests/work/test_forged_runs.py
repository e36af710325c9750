"""A compromised worker gives an approved item another run by SQL: the next honest worker does not use it."""

from __future__ import annotations

import os
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg.types.json import Jsonb

from apps.bus.deliveries import Delivery
from apps.bus.enums import Queue
from apps.guard.models import GuardedRun
from apps.guard.queries import is_run_for
from apps.guard.schemas import call_digest
from apps.work.enums import WorkItemStatus
from apps.work.models import WorkItem
from apps.work.services import attempts
from kernel.tenancy import tenant_scope
from tests.factories.bus import lease_any, let_leases_run_out
from tests.factories.work import Desk

_COPY = """
    INSERT INTO guard_guardedrun (id, tenant_id, origin, owner_ref, deployment_id, phase, status, halt_state,
        terminal_reason, allow, deny, limits, approval, seq, calls, input_tokens, output_tokens, cost_total,
        cost_reserved, cost_cap_reached)
    SELECT gen_random_uuid(), tenant_id, origin, owner_ref, deployment_id, phase, status, halt_state, terminal_reason,
        allow, deny, coalesce(%(limits)s::jsonb, limits), coalesce(%(approval)s::jsonb, approval), 0, 0, 0, 0, 0, 0,
        false FROM guard_guardedrun WHERE id = %(run)s RETURNING id
"""


def _genuine(run_id: UUID, tenant: Any) -> GuardedRun:
    with tenant_scope(tenant):
        run: GuardedRun = GuardedRun.objects.get(pk=run_id)
        return run


def _forge(desk: Desk, item: WorkItem, **changed: Any) -> None:
    """A copy of the genuine run with `changed`, put on the item by SQL in the workers' role."""
    values = {name: Jsonb(changed[name]) if name in changed else None for name in ("limits", "approval")}
    with psycopg.connect(os.environ["DATABASE_WORK_URL"]) as worker:
        worker.execute("SELECT set_config('silas.tenant', %s, true)", [str(desk.tenant.pk)])
        (forged,) = worker.execute(_COPY, {**values, "run": item.run_id}).fetchone()  # type: ignore[misc]
        worker.execute("UPDATE work_workitem SET run_id = %s WHERE id = %s", [forged, item.pk])


def _interrupted(desk: Desk, approver: Any) -> WorkItem:
    """An approved item whose first attempt has begun, and whose worker is gone."""
    item = desk.approved(approver)
    with tenant_scope(desk.tenant):
        lease = lease_any(Queue.EXECUTOR, consumer="lost")
        assert lease is not None
        assert attempts.begin_attempt(Delivery(desk.tenant.pk, lease, "test")) is not None
    let_leases_run_out(desk.tenant)
    return desk.item(item.pk)


@pytest.mark.parametrize("what", ["approval", "limits"])
def test_item_with_a_run_that_allows_more_is_not_carried_out(desk: Desk, approver: Any, what: str) -> None:
    item = _interrupted(desk, approver)
    assert item.run_id is not None
    run = _genuine(item.run_id, desk.tenant)
    more = call_digest("act", {"order": "H-1", "note": 99999})
    forged = {"approval": {**run.approval, "calls": [*run.approval["calls"], more]}, "limits": {"cost_usd": "1000"}}
    _forge(desk, item, **{what: forged[what]})
    desk.work()
    found = desk.item(item.pk)
    assert found.status == "blocked"
    assert found.last_error == "run_mismatch"
    assert desk.order().data.get("note") is None


def test_item_whose_run_is_its_own_goes_on(desk: Desk, approver: Any) -> None:
    item = _interrupted(desk, approver)
    desk.work()
    assert desk.item(item.pk).status == WorkItemStatus.DONE


def test_run_of_another_item_is_not_this_ones(desk: Desk, approver: Any) -> None:
    mine, other = _interrupted(desk, approver), desk.approved(approver, 60)
    assert mine.run_id is not None
    run = _genuine(mine.run_id, desk.tenant)
    with tenant_scope(desk.tenant):
        asked = {"limits": run.frozen_limits, "approval": run.approved}
        assert is_run_for(run.pk, run.origin, mine.pk, **asked)
        assert not is_run_for(run.pk, run.origin, other.pk, **asked)
