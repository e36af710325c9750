"""What does a log line look like? Text for people, JSON for collectors; both through structlog's formatter."""

from __future__ import annotations

import logging

import structlog
from structlog.typing import Processor

_SHARED: list[Processor] = [
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
]


def text_formatter() -> logging.Formatter:
    return structlog.stdlib.ProcessorFormatter(
        processor=structlog.dev.ConsoleRenderer(
            colors=False,
            # Never with local variables: they hold what visitors wrote.
            exception_formatter=structlog.dev.plain_traceback,
        ),
        foreign_pre_chain=_SHARED,
    )


def json_formatter() -> logging.Formatter:
    return structlog.stdlib.ProcessorFormatter(
        processor=structlog.processors.JSONRenderer(),
        foreign_pre_chain=[*_SHARED, structlog.processors.format_exc_info],
    )
