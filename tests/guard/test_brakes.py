"""R5, R6 and R4 at the door: each alone, their order, and what each leaves behind."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from apps.guard import services
from apps.guard.enums import Intent, RefusalCode
from apps.guard.models import SystemControl
from apps.guard.schemas import (
    Done,
    Limits,
    Refused,
    RunRef,
)
from kernel.tenancy import tenant_scope
from tests.factories.bus import lease_any, let_leases_run_out, make_message
from tests.factories.guard import answer, audited, change_run, make_call, make_run, reread
from tests.guard.conftest import call, never, refused

Handle = Callable[..., None]


@pytest.mark.parametrize(
    ("fields", "code", "reason"),
    [
        ({"halt_state": "halt_requested"}, RefusalCode.HALTED, "external_halt"),
        ({"halt_state": "halted"}, RefusalCode.HALTED, "external_halt"),
        ({"halt_state": "paused"}, RefusalCode.PAUSED, "paused"),
        ({"status": "completed", "ended_at": "2026-01-01T00:00Z"}, RefusalCode.NOT_RUNNING, "not_running"),
        ({"status": "halted", "ended_at": "2026-01-01T00:00Z"}, RefusalCode.NOT_RUNNING, "not_running"),
        ({"status": "failed", "ended_at": "2026-01-01T00:00Z"}, RefusalCode.NOT_RUNNING, "not_running"),
    ],
    ids=["asked to halt", "halted by a watchdog", "paused by a watchdog", "completed", "ended by a watchdog", "failed"],
)
def test_run_that_is_not_running_refuses_with_its_own_row(
    tenant: Any, handle: Handle, fields: dict[str, Any], code: RefusalCode, reason: str
) -> None:
    handle(never)
    run = make_run(tenant)
    change_run(run, **fields)
    assert (call(run), audited(run)) == (refused(code), [("halted", f'{{"reason":"{reason}"}}')])


def test_requested_halt_becomes_a_halt_at_the_next_boundary(tenant: Any, handle: Handle) -> None:
    handle(never)
    run = make_run(tenant)
    change_run(run, halt_state="halt_requested")
    call(run)
    assert reread(run).halt_state == "halted"


@pytest.mark.parametrize("whose", ["tenant", "deployment"])
def test_pause_of_everything_refuses(tenant: Any, deployment: Any, handle: Handle, whose: str) -> None:
    handle(never)
    run = make_run(tenant, deployment_id=deployment.pk)
    with tenant_scope(tenant):
        SystemControl.objects.create(pause="pause_all", deployment=deployment if whose == "deployment" else None)
    assert call(run) == refused(RefusalCode.PAUSED)


def test_pause_of_another_deployment_changes_nothing(tenant: Any, deployment: Any, handle: Handle) -> None:
    handle(answer())
    with tenant_scope(tenant):
        SystemControl.objects.create(pause="pause_all", deployment=deployment)
    assert isinstance(call(make_run(tenant)), Done)


def test_call_under_a_lost_lease_is_refused(tenant: Any, handle: Handle) -> None:
    handle(never)
    run = make_run(tenant)
    make_message(tenant)
    with tenant_scope(tenant):
        lease = lease_any("executor", consumer="test")
    assert lease is not None
    let_leases_run_out(tenant)
    assert call(run, ref=RunRef(tenant.pk, run.pk, lease.ref)) == refused(RefusalCode.LEASE_LOST)


def test_call_under_a_held_lease_happens(tenant: Any, handle: Handle) -> None:
    handle(answer())
    run = make_run(tenant)
    make_message(tenant)
    with tenant_scope(tenant):
        lease = lease_any("executor", consumer="test")
    assert lease is not None
    assert isinstance(call(run, ref=RunRef(tenant.pk, run.pk, lease.ref)), Done)


def test_ungranted_tool_leaves_one_row(tenant: Any, handle: Handle) -> None:
    handle(never)
    run = make_run(tenant)
    outcome = call(run, make_call(access=frozenset()))
    row = ("tool_call", '{"intent":"run_skill","outcome":"tool_not_granted","seq":1}')
    assert (outcome, audited(run)) == (refused(RefusalCode.TOOL_NOT_GRANTED), [row])


def test_ungranted_tool_does_not_end_the_run(tenant: Any, handle: Handle) -> None:
    handle(answer())
    run = make_run(tenant, origin="work")
    call(run, make_call(access=frozenset()))
    assert isinstance(call(run), Done)


def test_reached_cap_leaves_its_own_row_and_the_latch(tenant: Any, handle: Handle) -> None:
    handle(never)
    run = make_run(tenant, limits=Limits(cost_usd=Decimal("0.5")))
    change_run(run, cost_total=Decimal("0.5"))
    outcome = call(run, make_call(estimate=Decimal("0.1")))
    row = ("cost_cap_reached", '{"projected_usd":"0.6","reason":"cost_cap_reached"}')
    assert (outcome, audited(run), reread(run).cost_cap_reached) == (
        refused(RefusalCode.COST_CAP_REACHED),
        [row],
        True,
    )


@pytest.mark.parametrize(("origin", "state"), [("chat", "running"), ("work", "halted"), ("background", "halted")])
def test_reached_cap_ends_what_works_alone(tenant: Any, handle: Handle, origin: str, state: str) -> None:
    handle(never)
    run = make_run(tenant, origin=origin, limits=Limits(cost_usd=Decimal(0)))
    call(run, make_call(estimate=Decimal("0.1")))
    assert reread(run).halt_state == state


def test_conversation_over_its_cap_goes_on_with_what_costs_nothing(tenant: Any, handle: Handle) -> None:
    handle(answer())
    run = make_run(tenant, limits=Limits(cost_usd=Decimal(0)))
    call(run, make_call(estimate=Decimal("0.1")))
    assert isinstance(call(run), Done)


def test_call_beyond_the_counted_limit_is_refused(tenant: Any, handle: Handle) -> None:
    handle(answer())
    run = make_run(tenant, limits=Limits(calls=2))
    assert [type(call(run)) for _ in range(3)] == [Done, Done, Refused]


def test_refused_calls_count_for_no_limit(tenant: Any, handle: Handle) -> None:
    handle(answer())
    run = make_run(tenant, limits=Limits(calls=1))
    call(run, make_call(access=frozenset()))
    assert isinstance(call(run), Done)


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
    access = frozenset({"look_up"} if granted else ())
    call(run, make_call(estimate=Decimal(1), access=access))
    assert [event for event, _ in audited(run)] == events


def test_call_without_a_known_price_is_refused_where_a_price_is_due(tenant: Any) -> None:
    run = make_run(tenant)
    with tenant_scope(tenant):
        outcome = services.admit(run.ref, Intent.CONVERSE, make_call(tool="converse"))
    assert outcome == refused(RefusalCode.PRICE_UNKNOWN)


# How many `tool_call` rows a call leaves (contract autonomy A3): two, one for R6's no, none for R5's and R4's.
ROWS = {
    "a normal call": ({}, {}, 2),
    "not granted": ({}, {"access": frozenset()}, 1),
    "halted": ({"halt_state": "halt_requested"}, {}, 0),
    "over the cap": ({"limits": {"cost_usd": "0"}}, {}, 0),
}


@pytest.mark.parametrize("name", ROWS)
def test_call_leaves_its_tool_call_rows_and_no_other(tenant: Any, handle: Handle, name: str) -> None:
    handle(answer())
    fields, asked, rows = ROWS[name]
    run = make_run(tenant)
    if fields:
        change_run(run, **fields)
    call(run, make_call(estimate=Decimal("0.1"), **asked))
    assert [event for event, _ in audited(run)].count("tool_call") == rows


def test_cap_of_a_run_is_its_own_for_good(tenant: Any, handle: Handle) -> None:
    """A halted run that somebody halts again, or that is asked to go on after its cap, stays as it is."""
    handle(answer())
    run = make_run(tenant, origin="work", limits=Limits(cost_usd=Decimal(0)))
    call(run, make_call(estimate=Decimal("0.1")))
    with tenant_scope(tenant):
        again = services.halt(run.pk, actor="user:1")
    assert (again, call(run), reread(run).halt_state) == (False, refused(RefusalCode.HALTED), "halted")
