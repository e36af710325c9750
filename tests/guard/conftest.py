"""The door, from synchronous tests: a stand-in handler per intent, and a call from start to end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from apps.guard import registry, services
from apps.guard.enums import Intent, RefusalCode
from apps.guard.models import GuardedRun
from apps.guard.schemas import Call, CallContext, CallOutcome, HandlerResult, Refused, RunRef
from tests.factories.guard import make_call


@pytest.fixture
def handle(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
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


def refused(code: RefusalCode) -> Refused:
    return Refused(code, str(code.label))
