"""Many at the door at once, a person who presses halt, and processes that die between admit and settle."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from functools import partial
from typing import Any

import pytest
from django.db.models.functions import Now

from apps.bus.services import lease
from apps.guard import services
from apps.guard.enums import Intent, RefusalCode
from apps.guard.models import GuardedRun, ToolCall
from apps.guard.schemas import Admitted, CallContext, Done, Failed, HandlerResult, Limits
from apps.guard.services.admission import precheck
from apps.guard.services.settlement import CallLost
from kernel.tenancy import in_scope, tenant_scope
from tests import nursery
from tests.factories.bus import let_leases_run_out, make_message
from tests.factories.guard import audited, make_budget, make_call, make_run, reread, settle_lost
from tests.guard.conftest import Handle, admit, admitted, approving, call, money, never, refused, settle, spend
from tests.rivals import interrupted, race

RIVALS = 8
ACT = make_call(tool="act", args={"to": "x"}, acting=True)


def test_sixty_four_workers_with_random_prices_overspend_nothing(tenant: Any) -> None:
    chance = random.Random(64)
    budget = make_budget(tenant, "2")
    prices = [Decimal(chance.randint(1, 100_000_000)) / 10**9 for _ in range(64)]

    def spend_one(estimate: Decimal, run: Any) -> Decimal:
        found = admit(run, estimate)
        return settle(found, str(estimate)) if isinstance(found, Admitted) else Decimal(0)

    spent = race(*(partial(spend_one, each, make_run(tenant)) for each in prices))
    left = 2 - sum(spent)  # type: ignore[arg-type]  # what a rival raised could not be added
    unpaid = [price for price, paid in zip(prices, spent, strict=True) if not paid]
    assert left >= 0
    assert money(budget) == (2 - left, Decimal(0))
    assert left < max(unpaid)


@pytest.mark.parametrize(
    ("limits", "estimate"), [({"cost_usd": Decimal("0.35")}, "0.1"), ({"calls": 3}, "0")], ids=["cost", "calls"]
)
def test_rivals_of_one_run_never_pass_its_limit(tenant: Any, limits: dict[str, Any], estimate: str) -> None:
    run = make_run(tenant, limits=Limits(**limits))
    answers = race(*(partial(admit, run, estimate) for _ in range(RIVALS)))
    assert sum(isinstance(found, Admitted) for found in answers) == 3
    assert sum(money(run)) == 3 * Decimal(estimate)


def test_rivals_on_two_budgets_do_not_block_each_other_for_good(tenant: Any) -> None:
    for period in ("day", "month"):
        make_budget(tenant, "100", period=period)

    def spend_often() -> None:
        run = make_run(tenant)
        for _ in range(5):
            spend(run, "0.05")

    assert race(*[spend_often] * RIVALS) == [None] * RIVALS


def test_rivals_for_one_approved_call_make_it_once(tenant: Any, handle: Handle) -> None:
    made: list[str] = []
    handle(lambda context: made.append(context.effect_key) or HandlerResult(None))  # type: ignore[func-returns-value]
    runs = [make_run(tenant, approval=approving(ACT)) for _ in range(RIVALS)]
    answers = race(*(partial(call, run, ACT) for run in runs))
    assert sum(isinstance(found, Done) for found in answers) == 1
    assert len(made) == 1


@pytest.mark.parametrize("seconds", [1, 300])
def test_lease_that_ends_while_the_run_is_locked_makes_no_call(tenant: Any, seconds: int) -> None:
    make_message(tenant)
    with tenant_scope(tenant):
        holding = lease("executor", consumer="test", scope_id="scope", seconds=seconds)
    assert holding is not None
    run = make_run(tenant)

    def hold(meet: Callable[[], None]) -> None:
        with tenant_scope(tenant):
            GuardedRun.objects.select_for_update().get(pk=run.pk)
            meet()
            if seconds == 1:
                time.sleep(1)
            else:
                let_leases_run_out(tenant)

    def begin() -> Any:
        with tenant_scope(tenant):
            return precheck(replace(run.ref, lease=holding.ref), Intent.RUN_SKILL, make_call())

    _, answer = interrupted(hold, begin)
    assert getattr(answer, "code", answer) == RefusalCode.LEASE_LOST


def test_halt_is_answered_while_a_call_is_under_way_and_stops_the_next(tenant: Any, handle: Handle) -> None:
    inside, go_on = threading.Event(), threading.Event()

    def slow(_: CallContext) -> HandlerResult:
        inside.set()
        assert go_on.wait(60)
        return HandlerResult("finished")

    handle(slow)
    run = make_run(tenant)

    async def story() -> tuple[Any, bool, Any]:
        under_way = asyncio.create_task(services.guarded_call(run.ref, Intent.RUN_SKILL, make_call()))
        await asyncio.to_thread(inside.wait, 10)
        halted = await asyncio.wait_for(in_scope(tenant, services.halt, run.pk), 5)
        go_on.set()
        first = await under_way
        return first, halted, await services.guarded_call(run.ref, Intent.RUN_SKILL, make_call())

    first, halted, second = asyncio.run(story())
    assert isinstance(first, Done)
    assert halted is True
    assert second.code is RefusalCode.HALTED
    events = [event for event, _ in audited(run)]
    assert events == ["tool_call", "halt_requested", "tool_call", "halted"]


DOOMED = """
import asyncio, sys, time, uuid
from decimal import Decimal
import tests.factories.guard  # noqa: F401 (registers the tool)
from apps.guard import registry, services
from apps.guard.enums import Intent
from apps.guard.schemas import ApprovedCalls, RunRef
from tests.factories.guard import make_call

def handler(context):
    print("inside", flush=True)
    time.sleep(60)

registry._handlers[Intent.RUN_SKILL] = handler
asked = make_call(tool="act", args={"to": "x"}, acting=True, estimate=Decimal("0.2"))
yes = ApprovedCalls(nonce="n-1", calls=frozenset({asked.digest}))
ref = RunRef(uuid.UUID(sys.argv[1]), uuid.UUID(sys.argv[2]), approval=yes)
asyncio.run(services.guarded_call(ref, Intent.RUN_SKILL, asked))
"""


def lose_calls(tenant: Any) -> None:
    """The deadline of every call that is under way passes, and the worker looks for such calls."""
    with tenant_scope(tenant):
        ToolCall.objects.filter(state="admitted").update(deadline=Now())
    settle_lost()


def test_call_of_a_killed_process_becomes_uncertain_keeps_its_reservation_and_is_not_made_again(
    tenant: Any, handle: Handle
) -> None:
    """The process is killed with -9 between admit and settle of an approved call."""
    run = make_run(tenant, approval=approving(ACT))
    program = "import django; django.setup()\n" + DOOMED
    with nursery.start(
        [sys.executable, "-c", program, str(tenant.pk), str(run.pk)],
        stdout=subprocess.PIPE,
        env=dict(os.environ),
        text=True,
    ) as doomed:
        assert doomed.stdout is not None
        assert doomed.stdout.readline() == "inside\n"
        doomed.send_signal(signal.SIGKILL)
    lose_calls(tenant)
    with tenant_scope(tenant):
        assert ToolCall.objects.get().state == "uncertain"
    assert money(run) == (Decimal(0), Decimal("0.2"))
    handle(never)
    assert call(run, ACT) == refused(RefusalCode.EFFECT_UNCERTAIN)


def test_sweep_leaves_a_call_within_its_patience_alone(tenant: Any) -> None:
    admitted(make_run(tenant))
    with tenant_scope(tenant):
        assert services.mark_lost_calls() == 0


def test_settlement_after_the_sweep_is_refused_and_its_effect_undone(tenant: Any, handle: Handle) -> None:
    def handler(_: CallContext) -> HandlerResult:
        lose_calls(tenant)
        return HandlerResult("late", on_settle=lambda: GuardedRun.objects.filter(pk=run.pk).update(critical=False))

    handle(handler)
    run = make_run(tenant)
    outcome = call(run)
    assert isinstance(outcome, Failed)
    assert outcome.code == "call_lost"
    assert reread(run).critical is True


def test_model_run_settled_after_the_sweep_is_refused_and_leaves_two_rows(tenant: Any) -> None:
    run = make_run(tenant)
    late = admitted(run, "0.2")
    lose_calls(tenant)
    with pytest.raises(CallLost):
        settle(late, "0.1")
    assert reread(run).cost_reserved == Decimal("0.2")
    assert [data for _, data in audited(run)] == [
        '{"intent":"converse","outcome":"started","seq":1}',
        '{"intent":"converse","outcome":"uncertain","seq":1}',
    ]
