"""One call through the door: what is handed on, what is written down, and how calls end."""

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
from apps.guard import registry, services
from apps.guard.enums import Intent
from apps.guard.models import ToolCall
from apps.guard.schemas import (
    CallContext,
    CallFailed,
    Done,
    Failed,
    HandlerResult,
    Limits,
    RunRef,
)
from kernel.errors import NotFound, SilasError
from kernel.tenancy import in_scope, tenant_scope
from tests.factories.guard import answer, audited, make_call, make_run, reread
from tests.guard.conftest import call, never

Handle = Callable[..., None]


def calls_of(run: Any) -> list[tuple[int, str, str]]:
    with tenant_scope(run.tenant_id):
        return list(ToolCall.objects.order_by("seq").values_list("seq", "state", "error_code"))


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


def test_intent_without_a_handler_is_a_programming_error(tenant: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(registry._handlers, Intent.NOTIFY, raising=False)
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
    return bus.send_message("runtime", kind="system_event", scope_id=uuid4(), sender="runtime").pk


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
