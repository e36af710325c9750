"""Texts of exceptions hold what tools returned and visitors wrote: a log line names classes and places only."""

from __future__ import annotations

import io
import logging
import sys
from typing import Any

import pytest

from apps.guard.schemas import CallContext, HandlerResult
from silas_platform import logs
from tests.factories.guard import make_run
from tests.guard.conftest import call
from tests.guard.conftest import handle as handle

SECRET = "IBAN DE44 5001 0517 5407 3249 31"


def fail() -> None:
    try:
        raise ValueError(f"inner {SECRET}")
    except ValueError as error:
        raise RuntimeError(f"outer {SECRET}") from error


def written(formatter: logging.Formatter, name: str, message: str, *args: Any) -> str:
    out = io.StringIO()
    handler = logging.StreamHandler(out)
    handler.setFormatter(formatter)
    handler.addFilter(logs.WithoutTexts())
    try:
        fail()
    except RuntimeError:
        record = logging.LogRecord(name, logging.ERROR, __file__, 1, message, args, sys.exc_info())
    if isinstance(record.args, dict):
        record.data = dict(record.args)
    if handler.filter(record):
        handler.emit(record)
    return out.getvalue()


@pytest.mark.parametrize("formatter", [logs.text_formatter, logs.json_formatter])
def test_line_names_the_classes_and_places_of_an_exception_and_not_its_text(formatter: Any) -> None:
    line = written(formatter(), "apps.any", "it_failed")
    assert "it_failed" in line
    assert "RuntimeError" in line
    assert "ValueError" in line
    assert "in fail" in line
    assert "IBAN" not in line


@pytest.mark.parametrize("formatter", [logs.text_formatter, logs.json_formatter])
def test_celerys_own_line_of_a_failed_task_holds_no_text(formatter: Any) -> None:
    said = {"name": "bus.drain", "id": "7", "exc": f"RuntimeError({SECRET!r})", "traceback": SECRET, "args": SECRET}
    said |= {"kwargs": SECRET, "description": "raised unexpected"}
    line = written(formatter(), "celery.app.trace", "Task %(name)s[%(id)s] %(description)s: %(exc)s", said)
    assert "Task bus.drain[7] raised unexpected: RuntimeError" in line
    assert "IBAN" not in line


def test_tools_exception_reaches_no_log(tenant: Any, handle: Any, caplog: pytest.LogCaptureFixture) -> None:
    def breaks(_: CallContext) -> HandlerResult:
        fail()
        raise AssertionError

    handle(breaks)
    call(make_run(tenant))
    assert "guarded_call_failed" in caplog.text
    assert "RuntimeError" in caplog.text
    assert "IBAN" not in caplog.text


def test_effects_exception_reaches_no_log(tenant: Any, handle: Any, caplog: pytest.LogCaptureFixture) -> None:
    handle(lambda _: HandlerResult("done", on_settle=fail))
    call(make_run(tenant))
    assert "guarded_effect_failed" in caplog.text
    assert "IBAN" not in caplog.text
