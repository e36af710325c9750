"""Guarded calls from synchronous tests: a stand-in handler per intent, a call from start to end, and its money."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from apps.guard import registry, services
from apps.guard.enums import Intent, RefusalCode
from apps.guard.models import Budget, GuardedRun
from apps.guard.schemas import (
    Admitted,
    ApprovedCalls,
    Call,
    CallContext,
    CallOutcome,
    HandlerResult,
    NeedsApproval,
    Refused,
    RunRef,
)
from kernel.tenancy import tenant_scope
from tests.factories.guard import make_call, reread

Handle = Callable[..., None]


@pytest.fixture
def handle(monkeypatch: pytest.MonkeyPatch) -> Handle:
    """`handle(handler)`: let it carry out `run_skill`, or the intent given."""

    def register(handler: registry.Handler, intent: Intent = Intent.RUN_SKILL) -> None:
        monkeypatch.setitem(registry._handlers, intent, handler)

    return register


def call(
    run: GuardedRun,
    asked: Call | None = None,
    *,
    intent: Intent = Intent.RUN_SKILL,
    context: Any = None,
    ref: RunRef | None = None,
) -> CallOutcome:
    return asyncio.run(services.guarded_call(ref or run.ref, intent, asked or make_call(), context=context))


def never(_: CallContext) -> HandlerResult:
    raise AssertionError("dispatched")


def failing(error: Exception) -> registry.Handler:
    def fails(_: CallContext) -> HandlerResult:
        raise error

    return fails


def refused(code: RefusalCode) -> Refused:
    return Refused(code, str(code.label))


def approving(*calls: Call, nonce: str = "n-1", token: str = "") -> ApprovedCalls:
    return ApprovedCalls(nonce=nonce, calls=frozenset(each.digest for each in calls), token=token)


def admit(
    run: GuardedRun, estimate: Decimal | str | None = "0.1", *, visitor: UUID | None = None, **fields: Any
) -> Admitted | Refused | NeedsApproval:
    """Admit a model run."""
    amount = None if estimate is None else Decimal(estimate)
    asked = make_call(**{"tool": "converse", "estimate": amount, **fields})
    with tenant_scope(run.tenant_id):
        return services.admit(replace(run.ref, visitor=visitor), Intent.CONVERSE, asked)


def admitted(run: GuardedRun, estimate: str | None = "0.1", **fields: Any) -> Admitted:
    found = admit(run, estimate, **fields)
    assert isinstance(found, Admitted), found
    return found


def refusal(run: GuardedRun, estimate: str | None = "0.1", **fields: Any) -> RefusalCode | None:
    found = admit(run, estimate, **fields)
    assert not isinstance(found, NeedsApproval)
    return found.code if isinstance(found, Refused) else None


def settle(call: Admitted, cost: str | None, **more: Any) -> Decimal:
    with tenant_scope(call.run.tenant_id):
        return services.settle(call, cost=None if cost is None else Decimal(cost), **more)


def spend(run: GuardedRun, amount: str, **fields: Any) -> None:
    settle(admitted(run, amount, **fields), amount)


def money(row: GuardedRun | Budget) -> tuple[Decimal, Decimal]:
    """(charged, reserved) as it stands now."""
    fresh = reread(row)
    return (fresh.spent, fresh.reserved) if isinstance(fresh, Budget) else (fresh.cost_total, fresh.cost_reserved)
