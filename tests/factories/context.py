"""Items of a context window, short to write down."""

from __future__ import annotations

from typing import Any

from llm.context.budget import TokenBudget
from llm.context.enums import Kind, Zone
from llm.context.items import FRAME_TOKENS, ContextItem

SMALL = TokenBudget(total_tokens=1000, system_max=200)


def item(ctx_id: str, content: str = "Something was said here.", **fields: Any) -> ContextItem:
    """A visitor's message, unless told otherwise."""
    defaults: dict[str, Any] = {"zone": Zone.CHRONICLE, "kind": Kind.MESSAGE, "source": "visitor"}
    return ContextItem(ctx_id, content=content, **{**defaults, **fields})


def sized(ctx_id: str, tokens: int, **fields: Any) -> ContextItem:
    """An item that takes exactly `tokens` of its zone."""
    made = item(ctx_id, "x" * -int(-3.5 * (tokens - FRAME_TOKENS) // 1), **fields)
    assert made.token_count == tokens
    return made


def result(ctx_id: str, content: str = "x" * 700, **fields: Any) -> ContextItem:
    defaults: dict[str, Any] = {"kind": Kind.TOOL_RESULT, "source": "tool", "tool": "claim_status"}
    return item(ctx_id, content, **{**defaults, **fields})
