"""Calls that are admitted in one statement: only ever a yes, and only where the long way would say the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from hypothesis import given
from hypothesis import strategies as st

from apps.audit import queries as audit
from apps.audit.rules import inspect
from apps.bus import services as bus
from apps.gates.enums import GateAction, GateCode, GateLane
from apps.gates.schemas import GateReport, GateResult
from apps.guard import known, registry, rules, services
from apps.guard.enums import Intent, Period, RefusalCode
from apps.guard.known import KnownRun
from apps.guard.locks import lock_run
from apps.guard.models import GuardedRun, SpendEntry, SystemControl, ToolCall
from apps.guard.schemas import Admitted, Call, Done, Limits, RunRef
from apps.guard.services import at_once
from apps.guard.services.admission import admit_call
from kernel.clock import now
from kernel.tenancy import tenant_scope
from kernel.tenancy.scope import statement_scope
from tests.factories.bus import let_leases_run_out, make_message
from tests.factories.guard import answer, audited, change_run, make_budget, make_call, make_run, reread
from tests.guard.conftest import call, never, refused
from tests.guard.test_holders import each_visitor, of_platform, platform
from tests.guard.test_money import money
from tests.guard.test_rules import FACTS
from tests.rivals import race

Handle = Callable[..., None]
LOOK = Intent.RETRIEVE_CHUNKS
ZERO = Decimal(0)
__all__ = ["platform"]


def look_at(run: GuardedRun, ref: RunRef | None = None) -> None:
    """Let this process know the run, as a call before would have."""
    with tenant_scope(run.tenant_id):
        lock_run(ref or run.ref)


def ask(run: GuardedRun, asked: Call | None = None, *, ref: RunRef | None = None) -> Admitted | None:
    """What the one statement says; None when it is not even asked."""
    ref, asked = ref or run.ref, asked or make_call(estimate=Decimal("0.1"))
    found = at_once.ordinary(ref, LOOK, asked, None)
    if found is None:
        return None
    with statement_scope(run.tenant_id):
        return at_once.admit_at_once(found, ref, LOOK, asked)


def left(run: GuardedRun) -> tuple[int, int, list[Any]]:
    """What a call leaves behind: its row, its entries in the ledger and in the log."""
    with tenant_scope(run.tenant_id):
        return ToolCall.objects.filter(run=run).count(), SpendEntry.objects.count(), audited(run)


def test_it_is_one_statement_with_its_money_and_its_entry(tenant: Any) -> None:
    run, budget, seen = make_run(tenant), make_budget(tenant, "1"), list[str]()
    look_at(run)
    found = at_once.ordinary(run.ref, LOOK, make_call(estimate=Decimal("0.1")), None)
    assert found is not None

    def see(execute: Any, sql: str, *rest: Any) -> Any:
        seen.append(sql)
        return execute(sql, *rest)

    with statement_scope(tenant.pk), connection.execute_wrapper(see):
        at_once.admit_at_once(found, run.ref, LOOK, make_call(estimate=Decimal("0.1")))
    assert (len(seen), money(budget), money(run)) == (1, (ZERO, Decimal("0.1")), (ZERO, Decimal("0.1")))
    assert left(run) == (1, 1, [("tool_call", '{"intent":"retrieve_chunks","outcome":"started","seq":1}')])


def test_it_admits_as_the_long_way_does(tenant: Any, deployment: Any) -> None:
    run = make_run(tenant, deployment_id=deployment.pk)
    for fields in ({"period": "day"}, {"period": "month"}, {"period": "day", "deployment": deployment}):
        make_budget(tenant, "1", **fields)
    with tenant_scope(tenant):
        first = admit_call(run.ref, LOOK, make_call(estimate=Decimal("0.1")))
    second = ask(run)
    assert isinstance(first, Admitted) and second is not None
    assert second == replace(first, call_id=second.call_id, effect_key=str(second.call_id), seq=2)
    with tenant_scope(tenant):
        one, two = ToolCall.objects.filter(run=run).order_by("seq").values()
    apart = {"id", "seq", "effect_key", "created_at", "deadline"}
    assert {name for name in one if one[name] != two[name]} == apart


def test_chain_of_calls_that_were_admitted_at_once_holds(tenant: Any, handle: Handle) -> None:
    handle(answer(), LOOK)
    run = make_run(tenant)
    for _ in range(3):
        call(run, intent=LOOK)
    with tenant_scope(tenant):
        head, entries = audit.head_of(tenant.pk), audit.entries_of(tenant.pk)
        found = inspect(entries, chain=str(tenant.pk), head=head, checkpoints=(), keys={})
    assert (found.broken, found.head) == (None, head.entry_hash)
    assert [f'"seq":{each}' in data for each, (_, data) in zip((1, 1, 2, 2, 3, 3), audited(run), strict=True)] == [
        True
    ] * 6


def test_second_call_of_a_run_takes_the_short_way(tenant: Any, handle: Handle, monkeypatch: pytest.MonkeyPatch) -> None:
    handle(answer(), LOOK)
    run = make_run(tenant)
    assert isinstance(call(run, intent=LOOK), Done)
    monkeypatch.setattr("apps.guard.services.door.admit_call", never)
    assert isinstance(call(run, make_call(estimate=Decimal("0.1")), intent=LOOK), Done)
    assert reread(run).calls == 2


def test_policy_of_another_room_takes_the_long_way(
    tenant: Any, handle: Handle, monkeypatch: pytest.MonkeyPatch
) -> None:
    handle(answer(), LOOK)
    run = make_run(tenant)
    call(run, intent=LOOK)
    monkeypatch.setitem(registry._policies, LOOK, lambda *_: ("no", "Not today."))
    outcome = call(run, intent=LOOK)
    assert (outcome.gate, left(run)[0]) == ("no", 2)  # type: ignore[union-attr]  # a refusal has one


def test_run_that_nobody_looked_at_takes_the_long_way(tenant: Any) -> None:
    assert ask(make_run(tenant)) is None


@pytest.mark.parametrize(
    "fields", [{"acting": True}, {"access": frozenset()}, {"tool": "other", "access": frozenset({"look_up"})}]
)
def test_call_that_may_be_refused_is_not_even_asked_about(tenant: Any, fields: dict[str, Any]) -> None:
    run = make_run(tenant)
    look_at(run)
    assert at_once.ordinary(run.ref, LOOK, make_call(**fields), None) is None


SAID = [
    GateReport(audit=(("gate_blocked", {}),)),
    *(
        GateReport(policy=(GateResult("g", GateLane.POLICY, action, GateCode.CHECK_FAILED),))
        for action in (GateAction.BLOCK, GateAction.REQUIRE_APPROVAL)
    ),
]


@pytest.mark.parametrize("report", SAID)
def test_gates_that_had_something_to_say_take_the_long_way(tenant: Any, report: GateReport) -> None:
    run = make_run(tenant)
    look_at(run)
    assert at_once.ordinary(run.ref, LOOK, make_call(), report) is None
    assert at_once.ordinary(run.ref, LOOK, make_call(), GateReport()) is not None


def changed(**fields: Any) -> Callable[[Any, GuardedRun], None]:
    return lambda _, run: change_run(run, **fields)


def paused(pause: str) -> Callable[[Any, GuardedRun], None]:
    def step(tenant: Any, _: GuardedRun) -> None:
        with tenant_scope(tenant):
            SystemControl.objects.create(pause=pause)

    return step


def limited(amount: str, **fields: Any) -> Callable[[Any, GuardedRun], None]:
    def step(tenant: Any, _: GuardedRun) -> None:
        make_budget(tenant, amount, **fields)

    return step


def reached(tenant: Any, _: GuardedRun) -> None:
    today = now().date()
    make_budget(tenant, "5", window_start=today, paused_in=today)


def moved(tenant: Any, _: GuardedRun) -> None:
    type(tenant).objects.filter(pk=tenant.pk).update(timezone="Asia/Tokyo")


OTHERWISE = {
    "halt was asked for": changed(halt_state="halt_requested"),
    "halted": changed(halt_state="halted"),
    "paused": changed(halt_state="paused"),
    "over": changed(status="completed", ended_at=datetime(2026, 1, 1, tzinfo=UTC)),
    "tool taken away": changed(allow=["other"]),
    "tool forbidden": changed(deny=["look_up"]),
    "other limits": changed(limits={"calls": 9}),
    "critical no more": changed(critical=False),
    "everything paused": paused("pause_all"),
    "something paused": paused("pause_non_critical"),
    "limit without room": limited("0.099999999"),
    "month without room": limited("0", period="month"),
    "limit reached": reached,
    "other zone": moved,
}


@pytest.mark.parametrize("change", OTHERWISE.values(), ids=OTHERWISE.keys())
def test_what_changed_since_leaves_nothing_behind(tenant: Any, change: Callable[[Any, GuardedRun], None]) -> None:
    run = make_run(tenant)
    look_at(run)
    change(tenant, run)
    before = left(run)
    assert (ask(run), left(run), money(run), reread(run).seq) == (None, before, (ZERO, ZERO), 0)


def test_phase_that_began_since_leaves_nothing_behind(tenant: Any) -> None:
    run = make_run(tenant, origin="background", phase="analysis")
    look_at(run)
    change_run(run, phase="drafting")
    assert (ask(run), left(run)) == (None, (0, 0, []))


LIMITS = [
    {"limits": Limits(cost_usd=Decimal("0.099999999"))},
    {"limits": Limits(calls=0)},
    {"limits": Limits(tokens=0)},
    {"limits": Limits(wall_seconds=0)},
]


@pytest.mark.parametrize("fields", LIMITS)
def test_runs_own_limit_leaves_nothing_behind(tenant: Any, fields: dict[str, Any]) -> None:
    run = make_run(tenant, **fields)
    look_at(run)
    assert (ask(run), left(run)) == (None, (0, 0, []))


def test_runs_own_limit_is_reached_to_the_digit(tenant: Any) -> None:
    run = make_run(tenant, limits=Limits(cost_usd=Decimal("0.3"), calls=3, tokens=1, wall_seconds=3600))
    look_at(run)
    assert [ask(run) is not None for _ in range(4)] == [True, True, True, False]


@given(
    cap=st.none() | st.decimals(min_value=0, max_value=3, places=9),
    counts=st.tuples(*[st.none() | st.integers(0, 3)] * 3),
    used=st.tuples(st.decimals(min_value=0, max_value=3, places=9), *[st.integers(0, 4)] * 3),
    estimate=st.decimals(min_value=0, max_value=2, places=9),
)
def test_room_is_what_the_runs_limits_let_pass(cap: Any, counts: Any, used: Any, estimate: Decimal) -> None:
    calls, tokens, seconds = counts
    limits = Limits(cost_usd=cap, calls=calls, tokens=tokens, wall_seconds=seconds)
    run = replace(FACTS, limits=limits, committed=used[0], tokens=used[1], calls=used[2], seconds=used[3])
    fits = all(most is None or has <= most for has, most in zip(used, rules.room(limits, estimate), strict=True))
    assert fits == (rules.r4_run(run, estimate) is None)


def test_call_that_costs_nothing_passes_a_full_budget(tenant: Any) -> None:
    run, budget = make_run(tenant), make_budget(tenant, "0")
    look_at(run)
    found = ask(run, make_call())
    assert found is not None and (found.windows, found.day, money(budget)) == ((), None, (ZERO, ZERO))


def test_visitor_of_whom_nothing_was_spent_yet_takes_the_long_way(tenant: Any) -> None:
    run = make_run(tenant)
    visitor = replace(run.ref, visitor=uuid4())
    each_visitor(tenant, "0.25")
    look_at(run)
    assert ask(run, ref=visitor) is None
    with tenant_scope(tenant):
        assert isinstance(admit_call(visitor, LOOK, make_call(estimate=Decimal("0.1"))), Admitted)
    assert [ask(run, ref=visitor) is not None for _ in range(2)] == [True, False]


def test_tasks_budget_is_reserved_from(tenant: Any) -> None:
    task = uuid4()
    run, budget = make_run(tenant, task_ref=task), make_budget(tenant, "0.1", task_ref=task)
    look_at(run)
    assert [ask(run) is not None for _ in range(2)] == [True, False]
    assert money(budget) == (ZERO, Decimal("0.1"))


def test_installations_cap_holds(tenant: Any, platform: Any) -> None:
    platform("0.1")
    run = make_run(tenant)
    look_at(run)
    assert [ask(run) is not None for _ in range(2)] == [True, False]
    assert of_platform() == (ZERO, Decimal("0.1"))


def test_lease_that_ran_out_leaves_nothing_behind(tenant: Any) -> None:
    run = make_run(tenant)
    make_message(tenant)
    with tenant_scope(tenant):
        lease = bus.lease("executor", consumer="test")
    assert lease is not None
    ref = RunRef(tenant.pk, run.pk, lease.ref)
    look_at(run, ref)
    assert ask(run, ref=ref) is not None
    let_leases_run_out(tenant)
    assert ask(run, ref=ref) is None


def test_level_that_ended_leaves_nothing_behind(tenant: Any) -> None:
    run = make_run(tenant)
    look_at(run)
    over = make_call(access_until=now() - timedelta(seconds=1))
    assert (ask(run, over), left(run)) == (None, (0, 0, []))
    assert ask(run, make_call(access_until=now() + timedelta(hours=1))) is not None


@pytest.mark.parametrize("apart", [timedelta(minutes=-5), timedelta(minutes=5)])
def test_clock_that_is_not_the_databases_takes_the_long_way(
    tenant: Any, monkeypatch: pytest.MonkeyPatch, apart: timedelta
) -> None:
    run = make_run(tenant)
    look_at(run)
    monkeypatch.setattr(at_once, "now", lambda: now() + apart)
    assert ask(run) is None


def test_day_that_is_about_to_end_takes_the_long_way(tenant: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    run = make_run(tenant)
    look_at(run)
    monkeypatch.setattr(at_once, "now", lambda: datetime(2026, 3, 1, 23, 59, 30, tzinfo=UTC))
    monkeypatch.setattr(at_once, "write_admission_at_once", never)
    assert ask(run) is None


def test_run_of_another_tenant_is_not_admitted(tenant: Any, other_tenant: Any) -> None:
    run = make_run(tenant)
    look_at(run)
    assert at_once.ordinary(RunRef(other_tenant.pk, run.pk), LOOK, make_call(), None) is None
    mine = known.known(tenant.pk, run.pk)
    assert mine is not None
    forged: KnownRun = replace(mine, tenant_id=other_tenant.pk)
    with statement_scope(other_tenant.pk):
        assert at_once.admit_at_once(forged, RunRef(other_tenant.pk, run.pk), LOOK, make_call()) is None
    assert left(run) == (0, 0, [])


def test_refusal_after_the_short_way_is_written_once(tenant: Any, handle: Handle) -> None:
    handle(answer(), LOOK)
    run = make_run(tenant)
    for _ in range(2):
        call(run, intent=LOOK)
    with tenant_scope(tenant):
        services.narrow(run.pk, allow=["other"])
    assert call(run, intent=LOOK) == refused(RefusalCode.TOOL_NOT_GRANTED)
    change_run(run, halt_state="halt_requested")
    assert call(run, intent=LOOK) == refused(RefusalCode.HALTED)
    assert audited(run)[4:] == [
        ("tool_call", '{"intent":"retrieve_chunks","outcome":"tool_not_granted","seq":3}'),
        ("halted", '{"reason":"external_halt"}'),
    ]


def test_rivals_never_overspend(tenant: Any, handle: Handle) -> None:
    handle(answer(cost=None), LOOK)
    with tenant_scope(tenant):
        budget = services.set_budget(Period.DAY, Decimal("1"))
    runs = [make_run(tenant) for _ in range(8)]
    for run in runs:
        look_at(run)
    asked = make_call(estimate=Decimal("0.07"))

    def spend(run: GuardedRun) -> int:
        return sum(isinstance(call(run, asked, intent=LOOK), Done) for _ in range(4))

    done = race(*(partial(spend, run) for run in runs))
    assert (sum(done), money(budget)) == (14, (Decimal("0.98"), ZERO))  # type: ignore[arg-type]  # none raised


def test_rivals_of_one_run_are_numbered_without_a_gap(tenant: Any) -> None:
    run = make_run(tenant, limits=Limits(calls=5))
    look_at(run)
    found = [each for each in race(*[partial(ask, run)] * 8) if isinstance(each, Admitted)]
    assert sorted(each.seq for each in found) == [1, 2, 3, 4, 5]
