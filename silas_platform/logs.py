"""Log formatters: text for people, JSON for collectors, both through structlog."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Mapping, MutableMapping
from typing import TextIO

import structlog
from structlog.typing import ExcInfo, Processor

from kernel import tracing

_MAX_LINES = 200
_TEXTS = {"traceback", "args", "kwargs", "return_value"}


def _add_trace_id(_logger: object, _name: str, event: MutableMapping[str, object]) -> MutableMapping[str, object]:
    """Name the trace to which a line belongs; only while traces are recorded."""
    if trace_id := tracing.current_trace_id():
        event["trace_id"] = trace_id
    return event


_SHARED: list[Processor] = [
    _add_trace_id,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
]


def text_formatter() -> logging.Formatter:
    return structlog.stdlib.ProcessorFormatter(
        processor=structlog.dev.ConsoleRenderer(
            colors=False,
            exception_formatter=_write_frames,
        ),
        foreign_pre_chain=_SHARED,
    )


def json_formatter() -> logging.Formatter:
    return structlog.stdlib.ProcessorFormatter(
        processor=structlog.processors.JSONRenderer(),
        foreign_pre_chain=[*_SHARED, structlog.processors.ExceptionRenderer(_frames)],
    )


def _write_frames(out: TextIO, exc_info: ExcInfo) -> None:
    out.write("\n" + _frames(exc_info))


def _frames(exc_info: ExcInfo) -> str:
    """Classes and locations of an exception chain.

    No messages, source lines or local variables, because they hold what visitors wrote and what tools returned.
    """
    lines: list[str] = []
    error: BaseException | None = exc_info[1]
    while error is not None and len(lines) < _MAX_LINES:
        frames = traceback.extract_tb(error.__traceback__)
        lines.append(f"{type(error).__module__}.{type(error).__qualname__}")
        lines += [f"  {frame.filename}:{frame.lineno} in {frame.name}" for frame in frames]
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return "\n".join(lines[:_MAX_LINES])


class WithoutTexts(logging.Filter):
    """Remove exception texts, arguments and tracebacks that Celery puts into log lines; only the class stays."""

    def filter(self, record: logging.LogRecord) -> bool:
        values = record.args
        if record.name.startswith("celery") and isinstance(values, Mapping) and "exc" in values:
            kind = record.exc_info[0].__name__ if record.exc_info and record.exc_info[0] else "unknown"
            record.args = {**values, **dict.fromkeys(_TEXTS & set(values), ""), "exc": kind}
            if isinstance(getattr(record, "data", None), Mapping):
                record.data = record.args
        return True
