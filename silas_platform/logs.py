"""Log formatters: text for people, JSON for collectors."""

from __future__ import annotations

import json
import logging
import traceback
from collections.abc import Mapping

from kernel import tracing
from kernel.clock import now

_MAX_LINES = 200
_TEXTS = {"traceback", "args", "kwargs", "return_value"}


def text_formatter() -> logging.Formatter:
    return _Text()


def json_formatter() -> logging.Formatter:
    return _Json()


class _Text(logging.Formatter):
    """`2026-11-29T22:04:49.603368Z [info     ] what happened              [apps.bus] trace_id=…`, then the frames of an
    exception."""

    def format(self, record: logging.LogRecord) -> str:
        fields = _fields(record)
        written = (
            f"{fields.pop('timestamp')} [{fields.pop('level'):<9}] {fields.pop('event'):<30} [{fields.pop('logger')}]"
        )
        frames = fields.pop("exception", "")
        rest = "".join(f" {name}={value if value.isalnum() else repr(value)}" for name, value in fields.items())
        return written + rest + (f"\n{frames}" if frames else "")


class _Json(logging.Formatter):
    """An object in one line."""

    def format(self, record: logging.LogRecord) -> str:
        return json.dumps(_fields(record))


def _fields(record: logging.LogRecord) -> dict[str, str]:
    """What a line says. `trace_id` names its trace; only while traces are recorded."""
    fields = {"event": record.getMessage()}
    if record.stack_info:
        fields["stack_info"] = record.stack_info
    if trace_id := tracing.current_trace_id():
        fields["trace_id"] = trace_id
    fields |= {"level": record.levelname.lower(), "logger": record.name}
    fields["timestamp"] = now().isoformat(timespec="microseconds").replace("+00:00", "Z")
    if record.exc_info and record.exc_info[1] is not None:
        fields["exception"] = _frames(record.exc_info[1])
    return fields


def _frames(raised: BaseException) -> str:
    """Classes and locations of an exception chain.

    No messages, source lines or local variables, because they hold what visitors wrote and what tools returned.
    """
    lines: list[str] = []
    error: BaseException | None = raised
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
