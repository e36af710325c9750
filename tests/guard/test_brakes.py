"""R5, R6 and R4 at the door: each alone, their order, and what each leaves behind."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from apps.guard import services
from apps.guard.enums import RefusalCode
from apps.guard.models import SystemControl
from apps.guard.schemas import Done, Limits, Refused, RunRef
from kernel.tenancy import tenant_scope
from tests.factories.bus import lease_any, let_leases_run_out, make_message
from tests.factories.guard import answer, audited, change_run, make_call, make_run, reread
from tests.guard.conftest import Handle, call, never, refused

COSTS = make_call(estimate=Decimal("0.1"))
NOT_GRANTED = make_call(access=frozenset())
ENDED = "2026-01-01T00:00Z"


@pytest.mark.parametrize(
    ("fields", "code", "reason", "state"),
    [
        ({"halt_state": "halt_requested"}, RefusalCode.HALTED, "external_halt", "halted"),
        ({"halt_state": "halted"}, RefusalCode.HALTED, "external_halt", "halted"),
        ({"halt_state": "paused"}, RefusalCode.PAUSED, "paused", "paused"),
        ({"status": "completed", "ended_at": ENDED}, RefusalCode.NOT_RUNNING, "not_running", "running"),
        ({"status": "halted", "ended_at": ENDED}, RefusalCode.NOT_RUNNING, "not_running", "running"),
        ({"status": "failed", "ended_at": ENDED}, RefusalCode.NOT_RUNNING, "not_running", "running"),
    ],
    ids=["asked to halt", "halted by a watchdog", "paused by a watchdog", "completed", "ended by a watchdog", "failed"],
)
def test_run_that_is_not_running_refuses_with_its_own_row(
    tenant: Any, handle: Handle, fields: dict[str, Any], code: RefusalCode, reason: str, state: str
) -> None:
    handle(never)
    run = make_run(tenant)
    change_run(run, **fields)
    assert call(run) == refused(code)
    assert audited(run) == [("halted", f'{{"reason":"{reason}"}}')]
    assert reread(run).halt_state == state


@pytest.mark.parametrize("whose", ["tenant", "deployment", "another deployment"])
def test_pause_of_everything_refuses_what_it_is_for(tenant: Any, deployment: Any, handle: Handle, whose: str) -> None:
    stops = whose != "another deployment"
    handle(never if stops else answer())
    run = make_run(tenant, deployment_id=deployment.pk if stops else None)
    with tenant_scope(tenant):
        SystemControl.objects.create(pause="pause_all", deployment=None if whose == "tenant" else deployment)
    outcome = call(run)
    assert outcome == refused(RefusalCode.PAUSED) if stops else isinstance(outcome, Done)


@pytest.mark.parametrize("lost", [True, False])
def test_call_needs_the_lease_of_its_caller(tenant: Any, handle: Handle, lost: bool) -> None:
    handle(never if lost else answer())
    run = make_run(tenant)
    make_message(tenant)
    with tenant_scope(tenant):
        lease = lease_any("executor", consumer="test")
    assert lease is not None
    if lost:
        let_leases_run_out(tenant)
    outcome = call(run, ref=RunRef(tenant.pk, run.pk, lease.ref))
    assert outcome == refused(RefusalCode.LEASE_LOST) if lost else isinstance(outcome, Done)


def test_ungranted_tool_leaves_one_row_and_does_not_end_the_run(tenant: Any, handle: Handle) -> None:
    handle(answer())
    run = make_run(tenant, origin="work")
    assert call(run, NOT_GRANTED) == refused(RefusalCode.TOOL_NOT_GRANTED)
    assert audited(run) == [("tool_call", '{"intent":"run_skill","outcome":"tool_not_granted","seq":1}')]
    assert isinstance(call(run), Done)


def test_reached_cap_leaves_its_own_row_and_the_latch(tenant: Any, handle: Handle) -> None:
    handle(never)
    run = make_run(tenant, limits=Limits(cost_usd=Decimal("0.5")))
    change_run(run, cost_total=Decimal("0.5"))
    assert call(run, COSTS) == refused(RefusalCode.COST_CAP_REACHED)
    assert audited(run) == [("cost_cap_reached", '{"projected_usd":"0.6","reason":"cost_cap_reached"}')]
    assert reread(run).cost_cap_reached is True


@pytest.mark.parametrize(("origin", "state"), [("chat", "running"), ("work", "halted"), ("background", "halted")])
def test_reached_cap_ends_what_works_alone(tenant: Any, handle: Handle, origin: str, state: str) -> None:
    """A conversation goes on with what costs nothing; a halted run that somebody halts again stays as it is."""
    handle(answer())
    run = make_run(tenant, origin=origin, limits=Limits(cost_usd=Decimal(0)))
    call(run, COSTS)
    assert reread(run).halt_state == state
    if state == "running":
        assert isinstance(call(run), Done)
        return
    with tenant_scope(tenant):
        assert services.halt(run.pk, actor="user:1") is False
    assert call(run) == refused(RefusalCode.HALTED)
    assert reread(run).halt_state == state


def test_call_beyond_the_counted_limit_is_refused_and_refused_ones_do_not_count(tenant: Any, handle: Handle) -> None:
    handle(answer())
    run = make_run(tenant, limits=Limits(calls=2))
    call(run, NOT_GRANTED)
    assert [type(call(run)) for _ in range(3)] == [Done, Done, Refused]


@pytest.mark.parametrize(
    ("halted", "granted", "events"),
    [
        (True, False, ["halted"]),
        (True, True, ["halted"]),
        (False, False, ["tool_call"]),
        (False, True, ["cost_cap_reached"]),
    ],
)
def test_brakes_speak_in_order_and_one_at_a_time(
    tenant: Any, handle: Handle, halted: bool, granted: bool, events: list[str]
) -> None:
    """Contract autonomy A3: halted + ungranted + over the cap leaves only R5's row; ungranted + over, only R6's."""
    handle(never)
    run = make_run(tenant, limits=Limits(cost_usd=Decimal(0)))
    if halted:
        change_run(run, halt_state="halt_requested")
    call(run, make_call(estimate=Decimal(1), access=frozenset({"look_up"} if granted else ())))
    assert [event for event, _ in audited(run)] == events
