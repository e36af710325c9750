"""One call through the door: what is handed on, what is written down, and how calls end."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import connection

from apps.bus import services as bus
from apps.bus.models import QueueMessage
from apps.guard import registry, services
from apps.guard.enums import Intent
from apps.guard.models import ToolCall
from apps.guard.schemas import CallContext, CallFailed, Done, Failed, HandlerResult, Limits, RunRef
from kernel.error_codes import ErrorCode
from kernel.errors import NotFound, SilasError
from kernel.tenancy import in_scope, tenant_scope
from tests.factories.guard import answer, audited, make_call, make_run, reread
from tests.guard.conftest import Handle, call, failing, never

STARTED = '{"intent":"run_skill","outcome":"started","seq":1}'


def calls_of(run: Any) -> list[tuple[int, str, str]]:
    with tenant_scope(run.tenant_id):
        return list(ToolCall.objects.order_by("seq").values_list("seq", "state", "error_code"))


def make_in_scope() -> UUID:
    return bus.send_message("runtime", kind="system_event", scope_id=uuid4(), sender="runtime").pk


def exists(tenant: Any, pk: UUID) -> bool:
    with tenant_scope(tenant):
        return bool(QueueMessage.objects.filter(pk=pk).exists())


async def sleeps(_: CallContext) -> HandlerResult:
    await asyncio.sleep(30)
    return HandlerResult(None)


def test_call_answers_with_the_handlers_value_and_leaves_two_rows_without_names_or_arguments(
    tenant: Any, handle: Handle
) -> None:
    handle(answer("found"))
    run = make_run(tenant)
    outcome = call(run, make_call(tool="look_up", args={"who": "Ada Lovelace"}))
    assert isinstance(outcome, Done)
    assert outcome.value == "found"
    assert audited(run) == [
        ("tool_call", STARTED),
        ("tool_call", '{"cost_usd":"0","intent":"run_skill","outcome":"success","seq":1}'),
    ]


def test_handler_may_be_asynchronous(tenant: Any, handle: Handle) -> None:
    async def handler(_: CallContext) -> HandlerResult:
        await asyncio.sleep(0)
        return HandlerResult("awaited")

    handle(handler)
    outcome = call(make_run(tenant))
    assert isinstance(outcome, Done)
    assert outcome.value == "awaited"


def test_handler_is_given_the_call_and_the_callers_context_outside_of_any_transaction(
    tenant: Any, handle: Handle
) -> None:
    handle(lambda context: HandlerResult((context, connection.in_atomic_block)))
    run = make_run(tenant)
    outcome = call(run, context={"subject": "c-1"})
    assert isinstance(outcome, Done)
    context, is_in_transaction = outcome.value
    assert context.run_id == run.pk
    assert context.args == {"n": 1}
    assert context.context == {"subject": "c-1"}
    assert is_in_transaction is False


def test_dispatch_holds_no_lock_on_its_run(tenant: Any, handle: Handle) -> None:
    run = make_run(tenant)

    def handler(_: CallContext) -> HandlerResult:
        with tenant_scope(tenant), connection.cursor() as cursor:
            cursor.execute("SELECT 1 FROM guard_guardedrun WHERE id = %s FOR UPDATE NOWAIT", [run.pk])
        return HandlerResult("free")

    handle(handler)
    assert isinstance(call(run), Done)


def test_intent_has_one_handler_and_a_model_run_none(tenant: Any, handle: Handle, monkeypatch: Any) -> None:
    handle(answer())
    monkeypatch.delitem(registry._handlers, Intent.NOTIFY, raising=False)
    with pytest.raises(ImproperlyConfigured):
        call(make_run(tenant), intent=Intent.NOTIFY)
    for intent in (Intent.RUN_SKILL, Intent.CONVERSE):
        with pytest.raises(ImproperlyConfigured):
            registry.register(intent, answer())


def test_run_of_another_tenant_does_not_exist(tenant: Any, other_tenant: Any, handle: Handle) -> None:
    handle(never)
    foreign = make_run(other_tenant)
    with pytest.raises(NotFound):
        call(foreign, ref=RunRef(tenant.pk, foreign.pk))


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (CallFailed("no_such_claim", "There is no such claim."), Failed("no_such_claim", "There is no such claim.")),
        (RuntimeError("secret inside"), Failed("tool_failed", "It failed unexpectedly.")),
    ],
)
def test_failure_of_a_tool_is_an_answer_and_leaves_two_rows(
    tenant: Any, handle: Handle, error: Exception, outcome: Failed
) -> None:
    handle(failing(error))
    run = make_run(tenant)
    assert call(run) == outcome
    ended = '{"cost_usd":"0","intent":"run_skill","outcome":"error","seq":1}'
    assert [data for _, data in audited(run)] == [STARTED, ended]


def test_call_beyond_its_patience_is_uncertain(tenant: Any, handle: Handle) -> None:
    handle(sleeps)
    run = make_run(tenant)
    assert call(run, make_call(patience_seconds=0.05)) == Failed("timeout", "It took too long.", uncertain=True)
    assert calls_of(run) == [(1, "uncertain", "timeout")]
    assert [data for _, data in audited(run)] == [STARTED, STARTED.replace("started", "uncertain")]


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (None, None),
        (SilasError(ErrorCode.RECORD_CHANGED, "It changed."), Failed("record_changed", "It changed.")),
        (RuntimeError("secret"), Failed("effect_failed", "Its effect could not be stored.")),
    ],
)
def test_effect_happens_with_the_settlement_or_not_at_all(
    tenant: Any, handle: Handle, error: Exception | None, outcome: Failed | None
) -> None:
    made: list[UUID] = []

    def effect() -> None:
        made.append(make_in_scope())
        if error is not None:
            raise error

    handle(lambda _: HandlerResult("ok", on_settle=effect))
    run = make_run(tenant)
    found = call(run)
    assert exists(tenant, made[0]) is (error is None)
    assert calls_of(run) == ([(1, "error", outcome.code)] if outcome else [(1, "executed", "")])
    assert found == outcome if outcome else isinstance(found, Done)


def test_caller_that_swallows_a_refusal_and_rolls_back_loses_nothing(tenant: Any, handle: Handle) -> None:
    handle(never)
    run = make_run(tenant, limits=Limits(cost_usd=Decimal(0)))

    def fail_after_writing() -> None:
        make_in_scope()
        raise RuntimeError("caller")

    async def swallow() -> None:
        await services.guarded_call(run.ref, Intent.RUN_SKILL, make_call(estimate=Decimal(1)))
        await in_scope(tenant, fail_after_writing)

    with pytest.raises(RuntimeError, match="caller"):
        asyncio.run(swallow())
    assert reread(run).cost_cap_reached is True
    assert [event for event, _ in audited(run)] == ["cost_cap_reached"]
