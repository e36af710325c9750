"""What does a log line look like? Text for people, JSON for collectors; both through structlog's formatter."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Mapping
from typing import TextIO

import structlog
from structlog.typing import ExcInfo, Processor

_MOST_LINES = 200
_TEXTS = {"traceback", "args", "kwargs", "return_value"}

_SHARED: list[Processor] = [
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
    """Classes and places of an exception and of what led to it: no text of it, no line of source and no local variable,
    because these hold what visitors wrote and what tools returned."""
    lines: list[str] = []
    error: BaseException | None = exc_info[1]
    while error is not None and len(lines) < _MOST_LINES:
        found = traceback.extract_tb(error.__traceback__)
        lines.append(f"{type(error).__module__}.{type(error).__qualname__}")
        lines += [f"  {frame.filename}:{frame.lineno} in {frame.name}" for frame in found]
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return "\n".join(lines[:_MOST_LINES])


class WithoutTexts(logging.Filter):
    """Celery writes a task's exception, its arguments and its traceback into the line itself: only the class stays."""

    def filter(self, record: logging.LogRecord) -> bool:
        said = record.args
        if record.name.startswith("celery") and isinstance(said, Mapping) and "exc" in said:
            kind = record.exc_info[0].__name__ if record.exc_info and record.exc_info[0] else "unknown"
            record.args = {**said, **dict.fromkeys(_TEXTS & set(said), ""), "exc": kind}
            if isinstance(getattr(record, "data", None), Mapping):
                record.data = record.args
        return True
