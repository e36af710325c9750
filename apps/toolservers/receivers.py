"""The messages that this room carries out."""

from __future__ import annotations

from apps.bus.enums import Kind
from apps.bus.registry import register_later
from apps.toolservers import watching

register_later(Kind.TOOL_SERVER_CHECK, watching.look, standing=True, at_once=8)
