"""One call at a time through the door: what happens, in which order, and what is written down."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import connection

from apps.bus import services as bus
from apps.gates.schemas import GateSpec
from apps.guard import registry, services
from apps.guard.enums import Intent, RefusalCode
from apps.guard.models import SystemControl, ToolCall
from apps.guard.schemas import (
    ApprovedCalls,
    CallContext,
    CallFailed,
    Done,
    Failed,
    HandlerResult,
    Limits,
    NeedsApproval,
    Refused,
    RunRef,
    call_digest,
)
from kernel.errors import NotFound, SilasError
from kernel.tenancy import in_scope, tenant_scope
from tests.factories.bus import let_leases_run_out, make_message
from tests.factories.guard import answer, audited, change_run, make_call, make_run, reread
from tests.guard.conftest import call

Handle = Callable[..., None]


def refused(code: RefusalCode) -> Any:
    return Refused(code, str(code.label))


def never(_: CallContext) -> HandlerResult:
    raise AssertionError("dispatched")


def calls_of(run: Any) -> list[tuple[int, str, str]]:
    with tenant_scope(run.tenant_id):
        return list(ToolCall.objects.order_by("seq").values_list("seq", "state", "error_code"))


# What a normal call is


def test_call_answers_with_the_handlers_value(tenant: Any, handle: Handle) -> None:
    handle(answer("found"))
    outcome = call(make_run(tenant))
    assert isinstance(outcome, Done) and outcome.value == "found"


def test_handler_may_be_asynchronous(tenant: Any, handle: Handle) -> None:
    async def handler(_: CallContext) -> HandlerResult:
        await asyncio.sleep(0)
        return HandlerResult("awaited")

    handle(handler)
    outcome = call(make_run(tenant))
    assert isinstance(outcome, Done) and outcome.value == "awaited"


def test_handler_is_given_the_call_and_the_callers_context(tenant: Any, handle: Handle) -> None:
    seen: list[CallContext] = []
    handle(lambda context: seen.append(context) or HandlerResult(None))  # type: ignore[func-returns-value]
    run = make_run(tenant)
    call(run, context={"subject": "c-1"})
    assert (seen[0].run_id, seen[0].args, seen[0].context) == (run.pk, {"n": 1}, {"subject": "c-1"})


def test_normal_call_leaves_two_rows_without_names_or_arguments(tenant: Any, handle: Handle) -> None:
    handle(answer())
    run = make_run(tenant)
    call(run, make_call(tool="look_up", args={"who": "Ada Lovelace"}))
    assert audited(run) == [
        ("tool_call", '{"intent":"run_skill","outcome":"started","seq":1}'),
        ("tool_call", '{"cost_usd":"0","intent":"run_skill","outcome":"success","seq":1}'),
    ]


def test_dispatch_holds_no_transaction(tenant: Any, handle: Handle) -> None:
    seen: list[bool] = []
    handle(lambda _: seen.append(connection.in_atomic_block) or HandlerResult(None))  # type: ignore[func-returns-value]
    call(make_run(tenant))
    assert seen == [False]


def test_dispatch_holds_no_lock_on_its_run(tenant: Any, handle: Handle) -> None:
    run = make_run(tenant)

    def handler(_: CallContext) -> HandlerResult:
        with tenant_scope(tenant), connection.cursor() as cursor:
            cursor.execute("SELECT 1 FROM guard_guardedrun WHERE id = %s FOR UPDATE NOWAIT", [run.pk])
        return HandlerResult("free")

    handle(handler)
    assert isinstance(call(run), Done)


def test_intent_without_a_handler_is_a_programming_error(tenant: Any) -> None:
    with pytest.raises(ImproperlyConfigured):
        call(make_run(tenant), intent=Intent.NOTIFY)


def test_second_handler_for_an_intent_is_refused(handle: Handle) -> None:
    handle(answer())
    with pytest.raises(ImproperlyConfigured):
        registry.register(Intent.RUN_SKILL, answer())


def test_handler_for_a_model_run_is_refused() -> None:
    with pytest.raises(ImproperlyConfigured):
        registry.register(Intent.CONVERSE, answer())


def test_run_of_another_tenant_does_not_exist(tenant: Any, other_tenant: Any, handle: Handle) -> None:
    handle(never)
    foreign = make_run(other_tenant)
    with pytest.raises(NotFound):
        call(foreign, ref=RunRef(tenant.pk, foreign.pk))


# R5, R6, R4 and their order


@pytest.mark.parametrize(
    ("fields", "code", "reason"),
    [
        ({"halt_state": "halt_requested"}, RefusalCode.HALTED, "external_halt"),
        ({"halt_state": "halted"}, RefusalCode.HALTED, "external_halt"),
        ({"halt_state": "paused"}, RefusalCode.PAUSED, "paused"),
        ({"status": "completed", "ended_at": "2026-01-01T00:00Z"}, RefusalCode.NOT_RUNNING, "not_running"),
    ],
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
        lease = bus.lease("executor", consumer="test")
    assert lease is not None
    let_leases_run_out(tenant)
    assert call(run, ref=RunRef(tenant.pk, run.pk, lease.ref)) == refused(RefusalCode.LEASE_LOST)


def test_call_under_a_held_lease_happens(tenant: Any, handle: Handle) -> None:
    handle(answer())
    run = make_run(tenant)
    make_message(tenant)
    with tenant_scope(tenant):
        lease = bus.lease("executor", consumer="test")
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
    outcome = call(run, make_call(estimate=Decimal("0.6")))
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


# Gates and approval


BLOCKS = GateSpec(
    name="limit",
    on="on_tool_call",
    type="numeric_range",
    extract="amount",
    auto_approve={"min": 0, "max": 10},
    block={"outside": (0, 10)},
)
ASKS = GateSpec(name="ask", on="on_tool_call", type="approval_always")


def test_gate_that_blocks_refuses_with_its_name(tenant: Any, handle: Handle) -> None:
    handle(never)
    outcome = call(make_run(tenant), make_call(args={"amount": 500}, gates=(BLOCKS,)))
    assert isinstance(outcome, Refused) and (outcome.code, outcome.gate) == (RefusalCode.GATE_BLOCKED, "limit")


def test_gate_that_lets_through_changes_nothing(tenant: Any, handle: Handle) -> None:
    handle(answer())
    assert isinstance(call(make_run(tenant), make_call(args={"amount": 5}, gates=(BLOCKS,))), Done)


def test_gate_that_asks_answers_that_a_person_has_to(tenant: Any, handle: Handle) -> None:
    handle(never)
    outcome = call(make_run(tenant), make_call(gates=(ASKS,)))
    assert isinstance(outcome, NeedsApproval) and outcome.gate == "ask"


def test_halted_run_asks_no_gate(tenant: Any, handle: Handle) -> None:
    handle(never)
    run = make_run(tenant)
    change_run(run, halt_state="halted")
    call(run, make_call(args={"amount": 500}, gates=(BLOCKS,)))
    assert [event for event, _ in audited(run)] == ["halted"]


def test_what_a_gate_said_is_written_down_with_the_refusal(tenant: Any, handle: Handle) -> None:
    handle(never)
    run = make_run(tenant)
    call(run, make_call(args={"amount": 500}, gates=(BLOCKS,)))
    assert [event for event, _ in audited(run)] == ["gate_blocked", "tool_call"]


def approving(*calls: tuple[str, dict[str, Any]], nonce: str = "n-1") -> ApprovedCalls:
    return ApprovedCalls(nonce=nonce, calls=frozenset(call_digest(tool, args) for tool, args in calls))


ACT: dict[str, Any] = {"tool": "act", "args": {"to": "x"}, "acting": True}


def test_acting_call_without_any_approval_needs_one(tenant: Any, handle: Handle) -> None:
    handle(never)
    assert isinstance(call(make_run(tenant), make_call(**ACT)), NeedsApproval)


@pytest.mark.parametrize(
    "asked",
    [
        {**ACT, "args": {"to": "y"}},
        {**ACT, "args": {"to": "x", "more": 1}},
        {**ACT, "tool": "other"},
    ],
)
def test_acting_call_that_nobody_approved_exactly_is_refused(tenant: Any, handle: Handle, asked: Any) -> None:
    handle(never)
    run = make_run(tenant, approval=approving(("act", {"to": "x"})))
    assert call(run, make_call(**asked)) == refused(RefusalCode.APPROVAL_MISSING)


def test_approved_call_happens(tenant: Any, handle: Handle) -> None:
    handle(answer("done"))
    run = make_run(tenant, approval=approving(("act", {"to": "x"})))
    assert isinstance(call(run, make_call(**ACT)), Done)


def test_approved_call_is_audited_with_its_digest(tenant: Any, handle: Handle) -> None:
    handle(answer("done"))
    run = make_run(tenant, approval=approving(("act", {"to": "x"})))
    call(run, make_call(**ACT))
    assert all(call_digest("act", {"to": "x"}) in data for _, data in audited(run))


def test_approved_call_is_not_made_twice(tenant: Any, handle: Handle) -> None:
    handle(answer("done"))
    run = make_run(tenant, approval=approving(("act", {"to": "x"})))
    call(run, make_call(**ACT))
    assert call(run, make_call(**ACT)) == refused(RefusalCode.APPROVAL_SPENT)


def test_approved_call_is_not_made_again_by_the_next_attempt(tenant: Any, handle: Handle) -> None:
    handle(answer("done"))
    yes = approving(("act", {"to": "x"}))
    call(make_run(tenant, approval=yes), make_call(**ACT))
    assert call(make_run(tenant, approval=yes), make_call(**ACT)) == refused(RefusalCode.APPROVAL_SPENT)


def test_same_call_under_another_yes_happens(tenant: Any, handle: Handle) -> None:
    handle(answer("done"))
    outcomes = [
        call(make_run(tenant, approval=approving(("act", {"to": "x"}), nonce=nonce)), make_call(**ACT))
        for nonce in ("n-1", "n-2")
    ]
    assert [type(outcome) for outcome in outcomes] == [Done, Done]


def test_gates_question_is_answered_by_an_approval_of_the_exact_call(tenant: Any, handle: Handle) -> None:
    handle(answer("done"))
    run = make_run(tenant, approval=approving(("look_up", {"n": 1})))
    assert isinstance(call(run, make_call(gates=(ASKS,))), Done)


def test_call_rewritten_by_a_gate_is_made_as_rewritten(
    tenant: Any, handle: Handle, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []
    handle(lambda context: seen.append(context.args) or HandlerResult(None))  # type: ignore[func-returns-value]
    rewrite(monkeypatch, {"n": 2})
    call(make_run(tenant), make_call(gates=(ASKS,)))
    assert seen == [{"n": 2}]


def test_approved_call_rewritten_by_a_gate_is_no_longer_approved(
    tenant: Any, handle: Handle, monkeypatch: pytest.MonkeyPatch
) -> None:
    handle(never)
    rewrite(monkeypatch, {"to": "elsewhere"})
    run = make_run(tenant, approval=approving(("act", {"to": "x"})))
    assert call(run, make_call(**ACT, gates=(ASKS,))) == refused(RefusalCode.APPROVAL_MISSING)


def rewrite(monkeypatch: pytest.MonkeyPatch, args: dict[str, Any]) -> None:
    """A provider of somebody's own that rewrites the arguments (contract silas 6: modified_context)."""
    from apps.gates import providers
    from apps.gates.enums import GateAction, GateCode, GateLane
    from apps.gates.schemas import GateResult

    result = GateResult(
        "own", GateLane.POLICY, GateAction.CONTINUE, GateCode.PASSED, modified_context={"tool_args": args}
    )
    monkeypatch.setitem(providers.EVALUATE, "predicate", lambda _: result)


# How calls end


def test_tools_coded_failure_is_an_answer(tenant: Any, handle: Handle) -> None:
    def fails(_: CallContext) -> HandlerResult:
        raise CallFailed("no_such_claim", "There is no such claim.")

    handle(fails)
    assert call(make_run(tenant)) == Failed("no_such_claim", "There is no such claim.")


def test_tools_exception_is_an_answer_without_its_text(tenant: Any, handle: Handle) -> None:
    def fails(_: CallContext) -> HandlerResult:
        raise RuntimeError("secret inside")

    handle(fails)
    assert call(make_run(tenant)) == Failed("tool_failed", "It failed unexpectedly.")


def test_failed_call_still_leaves_two_rows(tenant: Any, handle: Handle) -> None:
    def fails(_: CallContext) -> HandlerResult:
        raise RuntimeError("secret inside")

    handle(fails)
    run = make_run(tenant)
    call(run)
    assert [data for _, data in audited(run)] == [
        '{"intent":"run_skill","outcome":"started","seq":1}',
        '{"cost_usd":"0","intent":"run_skill","outcome":"error","seq":1}',
    ]


def test_approved_call_that_failed_without_effect_may_be_retried(tenant: Any, handle: Handle) -> None:
    def fails(_: CallContext) -> HandlerResult:
        raise CallFailed("busy", "Not now.", effect_free=True)

    yes = approving(("act", {"to": "x"}))
    handle(fails)
    call(make_run(tenant, approval=yes), make_call(**ACT))
    handle(answer("done"))
    assert isinstance(call(make_run(tenant, approval=yes), make_call(**ACT)), Done)


def test_approved_call_that_failed_in_an_unknown_way_is_not_made_again(tenant: Any, handle: Handle) -> None:
    def fails(_: CallContext) -> HandlerResult:
        raise RuntimeError("half way")

    yes = approving(("act", {"to": "x"}))
    handle(fails)
    call(make_run(tenant, approval=yes), make_call(**ACT))
    handle(never)
    assert call(make_run(tenant, approval=yes), make_call(**ACT)) == refused(RefusalCode.EFFECT_UNCERTAIN)


def test_call_beyond_its_patience_is_uncertain(tenant: Any, handle: Handle) -> None:
    async def sleeps(_: CallContext) -> HandlerResult:
        await asyncio.sleep(30)
        return HandlerResult(None)

    handle(sleeps)
    run = make_run(tenant)
    outcome = call(run, make_call(patience_seconds=0.05))
    assert (outcome, calls_of(run)) == (
        Failed("timeout", "It took too long.", uncertain=True),
        [(1, "uncertain", "timeout")],
    )


def test_effect_happens_with_the_settlement(tenant: Any, handle: Handle) -> None:
    made: list[UUID] = []
    handle(lambda _: HandlerResult("ok", on_settle=lambda: made.append(make_in_scope())))
    call(make_run(tenant))
    assert exists(tenant, made[0])


def test_effect_of_a_refused_settlement_has_not_happened(tenant: Any, handle: Handle) -> None:
    made: list[UUID] = []

    def effect() -> None:
        made.append(make_in_scope())
        raise SilasError("record_changed", "Somebody changed it meanwhile.", status=409)

    handle(lambda _: HandlerResult("ok", on_settle=effect))
    run = make_run(tenant)
    outcome = call(run)
    assert (outcome, exists(tenant, made[0]), calls_of(run)) == (
        Failed("record_changed", "Somebody changed it meanwhile."),
        False,
        [(1, "error", "record_changed")],
    )


def make_in_scope() -> UUID:
    return bus.enqueue("runtime", kind="system_event", scope_id=uuid4(), sender="runtime").pk


def exists(tenant: Any, pk: UUID) -> bool:
    from apps.bus.models import QueueMessage

    with tenant_scope(tenant):
        found: bool = QueueMessage.objects.filter(pk=pk).exists()
    return found


def test_caller_that_swallows_a_refusal_and_rolls_back_loses_nothing(tenant: Any, handle: Handle) -> None:
    handle(never)
    run = make_run(tenant, limits=Limits(cost_usd=Decimal(0)))
    with pytest.raises(RuntimeError, match="caller"):
        asyncio.run(swallow(tenant, run))
    assert (reread(run).cost_cap_reached, [event for event, _ in audited(run)]) == (True, ["cost_cap_reached"])


async def swallow(tenant: Any, run: Any) -> None:
    await services.guarded_call(run.ref, Intent.RUN_SKILL, make_call(estimate=Decimal(1)))
    await in_scope(tenant, fail_after_writing)


def fail_after_writing() -> None:
    make_in_scope()
    raise RuntimeError("caller")
