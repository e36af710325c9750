"""Estimate the tokens of requests whose provider reported none, at three characters a token.

A provider that reports nothing, or zero, would otherwise be free of charge and bypass every cap. The requests stay
marked as unmeasured, so that no later estimate learns from them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from llm.attachments import TOKENS
from llm.pricing import BYTES_PER_TOKEN, estimate_tokens
from llm.runs import new_usage

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage
    from pydantic_ai.usage import RunUsage

_FILE_SIZE = TOKENS * BYTES_PER_TOKEN


@contextmanager
def estimate_unreported(spent: RunUsage) -> Iterator[list[ModelMessage]]:
    """Add to `spent` what the run in this block used and its provider did not report, even if it fails.

    Yields the messages of the run, as they come.
    """
    from pydantic_ai import capture_run_messages

    with capture_run_messages() as messages:
        try:
            yield messages
        finally:
            spent.incr(unreported_usage(messages))


def unreported_usage(messages: Sequence[ModelMessage]) -> RunUsage:
    """Estimated usage of the responses among these messages, beyond their reported usage."""
    from pydantic_ai.messages import ModelResponse

    total, read = new_usage(), 0
    for message in messages:
        if isinstance(message, ModelResponse):
            usage = message.usage
            unread, unwritten = not usage.input_tokens, not usage.output_tokens
            size = _size(message)
            total.input_tokens += _tokens(read) if unread else 0
            total.output_tokens += _tokens(size) if unwritten else 0
            total.unmeasured_requests += int((unread or (unwritten and size > 0)) and not usage.unmeasured_requests)
            read += size
        else:
            read += _size(message)
    return total


def called_tools(messages: Sequence[ModelMessage]) -> list[str]:
    """Names of the tools that a model called, in order, whether or not such tools exist."""
    from pydantic_ai.messages import ModelResponse, ToolCallPart

    parts = (part for message in messages if isinstance(message, ModelResponse) for part in message.parts)
    return [part.tool_name for part in parts if isinstance(part, ToolCallPart)]


def _size(message: ModelMessage) -> int:
    """Bytes of what a model reads or writes in this message."""
    from pydantic_ai.messages import BinaryContent, ModelRequest

    size = len((message.instructions or "").encode()) if isinstance(message, ModelRequest) else 0
    for part in message.parts:
        content = getattr(part, "args", None) or getattr(part, "content", None) or ""
        pieces = content if isinstance(content, list) else [content]
        size += sum(_FILE_SIZE if isinstance(piece, BinaryContent) else len(str(piece).encode()) for piece in pieces)
    return size


def _tokens(size: int) -> int:
    return max(estimate_tokens(size), 1) if size else 0
