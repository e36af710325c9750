"""The text of a tool's exception holds what it was given: it reaches no log, no trace, no audit entry and no row."""

from __future__ import annotations

import asyncio
import io
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from apps.audit.models import AuditEntry
from apps.guard import registry, services
from apps.guard.enums import Intent
from apps.guard.models import ToolCall
from apps.guard.schemas import CallContext, CallFailed, Failed, HandlerResult
from kernel.tenancy import tenant_scope
from silas_platform.logs import json_formatter, text_formatter
from tests.factories.guard import make_call, make_run
from tests.guard.conftest import handle as handle

SECRET, VISITOR = "sk-live-4f9a8c7b6d5e", "my daughter is ill and I cannot pay"
INTENTS = [intent for intent in Intent if intent in registry._handlers]


class Unkind(Exception):
    """Says what it was given, in its text, its arguments and its notes."""


def raising(_: CallContext) -> HandlerResult:
    try:
        raise ValueError(f"token {SECRET}")
    except ValueError as error:
        unkind = Unkind(f"{VISITOR}: {SECRET}")
        unkind.add_note(VISITOR)
        raise unkind from error


def failing(_: CallContext) -> HandlerResult:
    raise CallFailed("tool_failure", f"{VISITOR}: {SECRET}")


def exits(_: CallContext) -> HandlerResult:
    raise SystemExit(f"{VISITOR}: {SECRET}")


@pytest.fixture
def written() -> Iterator[list[io.StringIO]]:
    """What every log would hold, at any level, as text and as JSON."""
    streams, handlers = [io.StringIO(), io.StringIO()], []
    for stream, formatter in zip(streams, (text_formatter(), json_formatter()), strict=True):
        handler = logging.StreamHandler(stream)
        handler.setFormatter(formatter)
        handlers.append(handler)
    root = logging.getLogger()
    before = root.level
    root.setLevel(logging.DEBUG)
    for handler in handlers:
        root.addHandler(handler)
    yield streams
    root.setLevel(before)
    for handler in handlers:
        root.removeHandler(handler)


def called(tenant: Any, intent: Intent) -> Any:
    run = make_run(tenant)
    return asyncio.run(services.guarded_call(run.ref, intent, make_call()))


@pytest.mark.parametrize("handler", [raising, failing])
@pytest.mark.parametrize("intent", INTENTS)
def test_exception_text_of_a_tool_is_written_nowhere(
    tenant: Any, handle: Callable[..., None], written: list[io.StringIO], intent: Intent, handler: Any
) -> None:
    handle(handler, intent)
    outcome = called(tenant, intent)
    with tenant_scope(tenant):
        rows = [repr(vars(row)) for row in ToolCall.objects.all()]
        entries = [repr(vars(row)) for row in AuditEntry.objects.all()]
    logged = [stream.getvalue() for stream in written]
    for text in (*rows, *entries, *logged):
        assert SECRET not in text
        assert VISITOR not in text
    if isinstance(outcome, Failed):
        assert SECRET not in outcome.code
        assert VISITOR not in outcome.code
