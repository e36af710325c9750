"""Many at the door at once, a person who presses halt, and processes that die between admit and settle."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any

import pytest

from apps.guard import services
from apps.guard.enums import Intent, RefusalCode
from apps.guard.models import ToolCall
from apps.guard.schemas import (
    Admitted,
    ApprovedCalls,
    CallContext,
    Done,
    Failed,
    HandlerResult,
    Limits,
    Refused,
    call_digest,
)
from apps.guard.services.settlement import CallLost
from kernel.tenancy import in_scope, tenant_scope
from tests.factories.guard import answer, audited, make_budget, make_call, make_run, reread, settle_lost
from tests.guard.conftest import admit, admitted, call, money, settle
from tests.rivals import race

Handle = Callable[..., None]
RIVALS = 8


@pytest.mark.parametrize("seed", range(5))
def test_rivals_with_random_prices_never_overspend_a_budget(tenant: Any, seed: int) -> None:
    chance = random.Random(seed)
    budget = make_budget(tenant, "1")
    prices = [[Decimal(chance.randint(0, 400)) / 1000 for _ in range(5)] for _ in range(RIVALS)]

    def spend(run: Any, wanted: list[Decimal]) -> None:
        for estimate in wanted:
            found = admit(run, estimate)
            assert sum(money(budget)) <= 1
            if isinstance(found, Admitted):
                settle(found, str(estimate))

    answers = race(*(partial(spend, make_run(tenant), wanted) for wanted in prices))
    assert (answers, money(budget)[0] <= 1, money(budget)[1]) == ([None] * RIVALS, True, Decimal(0))


def test_sixty_four_workers_with_random_prices_overspend_nothing(tenant: Any) -> None:
    chance = random.Random(64)
    budget = make_budget(tenant, "2")
    prices = [Decimal(chance.randint(1, 100_000_000)) / 10**9 for _ in range(64)]

    def spend(estimate: Decimal, run: Any) -> Decimal:
        found = admit(run, estimate)
        return settle(found, str(estimate)) if isinstance(found, Admitted) else Decimal(0)

    spent = race(*(partial(spend, each, make_run(tenant)) for each in prices))
    left = 2 - sum(spent)  # type: ignore[arg-type]  # what a rival raised could not be added
    unpaid = [price for price, paid in zip(prices, spent, strict=True) if not paid]
    assert (max(-left, 0), money(budget)) == (0, (2 - left, Decimal(0)))
    assert (len(unpaid) > 0, left < max(unpaid)) == (True, True)


def test_rivals_of_one_run_never_pass_its_cap(tenant: Any) -> None:
    run = make_run(tenant, limits=Limits(cost_usd=Decimal("0.35")))
    answers = race(*(partial(admit, run, "0.1") for _ in range(RIVALS)))
    assert (sum(isinstance(found, Admitted) for found in answers), sum(money(run))) == (3, Decimal("0.3"))


def test_rivals_of_one_run_never_pass_its_count(tenant: Any) -> None:
    run = make_run(tenant, limits=Limits(calls=3))
    answers = race(*(partial(admit, run, "0") for _ in range(RIVALS)))
    assert sum(isinstance(found, Admitted) for found in answers) == 3


def test_rivals_on_two_budgets_do_not_block_each_other_for_good(tenant: Any) -> None:
    for period in ("day", "month"):
        make_budget(tenant, "100", period=period)

    def spend() -> None:
        run = make_run(tenant)
        for _ in range(5):
            settle(admitted(run), "0.05")

    assert race(*[spend] * RIVALS) == [None] * RIVALS


def test_rivals_for_one_approved_call_make_it_once(tenant: Any, handle: Handle) -> None:
    made: list[str] = []
    handle(lambda context: made.append(context.effect_key) or HandlerResult(None))  # type: ignore[func-returns-value]
    yes = ApprovedCalls(nonce="n-1", calls=frozenset({call_digest("act", {"to": "x"})}))
    runs = [make_run(tenant, approval=yes) for _ in range(RIVALS)]
    asked = make_call(tool="act", args={"to": "x"}, acting=True)
    answers = race(*(partial(call, run, asked) for run in runs))
    assert (sum(isinstance(found, Done) for found in answers), len(made)) == (1, 1)


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
    assert (type(first), halted, second.code) == (Done, True, RefusalCode.HALTED)


def test_halt_leaves_its_rows_in_order(tenant: Any, handle: Handle) -> None:
    handle(answer())
    run = make_run(tenant)
    with tenant_scope(tenant):
        services.halt(run.pk, actor="user:1")
    call(run)
    assert [event for event, _ in audited(run)] == ["halt_requested", "halted"]


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


@pytest.fixture
def killed(tenant: Any) -> Any:
    """A run whose process was killed with -9 between admit and settle of an approved call."""
    yes = ApprovedCalls(nonce="n-1", calls=frozenset({call_digest("act", {"to": "x"})}))
    run = make_run(tenant, approval=yes)
    program = "import django; django.setup()\n" + DOOMED
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tenant.pk), str(run.pk)],
        stdout=subprocess.PIPE,
        env=dict(os.environ),
        text=True,
    ) as doomed:
        assert doomed.stdout is not None
        assert doomed.stdout.readline() == "inside\n"
        doomed.send_signal(signal.SIGKILL)
    return run


def let_deadlines_pass(tenant: Any) -> None:
    from django.db.models.functions import Now

    with tenant_scope(tenant):
        ToolCall.objects.filter(state="admitted").update(deadline=Now())


def test_call_of_a_killed_process_becomes_uncertain_and_keeps_its_reservation(tenant: Any, killed: Any) -> None:
    let_deadlines_pass(tenant)
    settle_lost()
    with tenant_scope(tenant):
        states = list(ToolCall.objects.values_list("state", flat=True))
    assert (states, money(killed)) == (["uncertain"], (Decimal(0), Decimal("0.2")))


def test_call_of_a_killed_process_is_not_made_again(tenant: Any, killed: Any, handle: Handle) -> None:
    def never(_: CallContext) -> HandlerResult:
        raise AssertionError("made again")

    handle(never)
    let_deadlines_pass(tenant)
    settle_lost()
    outcome = call(killed, make_call(tool="act", args={"to": "x"}, acting=True))
    assert isinstance(outcome, Refused) and outcome.code is RefusalCode.EFFECT_UNCERTAIN


def test_lost_call_has_its_two_rows(tenant: Any) -> None:
    run = make_run(tenant)
    admitted(run)
    let_deadlines_pass(tenant)
    settle_lost()
    assert [data for _, data in audited(run)] == [
        '{"intent":"converse","outcome":"started","seq":1}',
        '{"intent":"converse","outcome":"uncertain","seq":1}',
    ]


def test_sweep_leaves_a_call_within_its_patience_alone(tenant: Any) -> None:
    admitted(make_run(tenant))
    with tenant_scope(tenant):
        assert services.mark_lost_calls() == 0


def test_settlement_after_the_sweep_is_refused_and_its_effect_undone(tenant: Any, handle: Handle) -> None:
    effects: list[str] = []

    def handler(_: CallContext) -> HandlerResult:
        let_deadlines_pass(tenant)
        settle_lost()
        return HandlerResult("late", on_settle=lambda: effects.append("undone with its transaction"))

    handle(handler)
    run = make_run(tenant)
    outcome = call(run)
    assert (isinstance(outcome, Failed) and outcome.code, len(audited(run))) == ("call_lost", 2)


def test_model_run_settled_after_the_sweep_is_refused(tenant: Any) -> None:
    run = make_run(tenant)
    late = admitted(run, "0.2")
    let_deadlines_pass(tenant)
    settle_lost()
    with pytest.raises(CallLost):
        settle(late, "0.1")
    assert reread(run).cost_reserved == Decimal("0.2")
