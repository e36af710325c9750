"""The messages that this room carries out."""

from __future__ import annotations

from apps.bus.enums import Kind
from apps.bus.registry import register_job
from apps.toolservers import handlers

register_job(Kind.TOOL_SERVER_CHECK, handlers.check_server, recurring=True, max_concurrency=8)
