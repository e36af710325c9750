"""Read and write the tool calls of a plan: one fenced block each.

A block is a top-level fence of three backticks at the start of its line whose info string is exactly `call`. Any other
top-level fence named `call` is refused and never treated as prose; quoted, nested or commented text is prose. Arguments
are one line of JSON without duplicate keys, so no value can close its block or open another.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kernel.canonical import canonical_json
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from llm.fences import top_fences

if TYPE_CHECKING:
    from markdown_it.token import Token

_LINE_BREAK = re.compile("\r\n?")


@dataclass(frozen=True)
class PlannedCall:
    """One concrete call: a tool's name and its arguments."""

    tool: str
    args: dict[str, Any]


def is_plain_json(value: object) -> bool:
    """Whether the value is JSON; NaN and infinity come through the readers of providers, and are not."""
    try:
        canonical_json(value)
    except ValueError:
        return False
    return True


def call_block(call: PlannedCall) -> str:
    return f"```call\n{canonical_json({'args': call.args, 'tool': call.tool})}\n```"


def parse_calls(body: str) -> tuple[PlannedCall, ...]:
    """The calls of a plan body in order. Raises `SilasError("bad_call_block")` if a call block cannot be read."""
    return tuple(_parse_call(token.content) for token in _call_fences(body))


def replace_calls(body: str, calls: Sequence[PlannedCall]) -> str:
    """Replace the calls in the body's call blocks, in order; there are as many calls as blocks."""
    lines = _LINE_BREAK.sub("\n", body).split("\n")
    for fence, call in reversed(list(zip(_call_fences(body), calls, strict=True))):
        assert fence.map is not None
        lines[slice(*fence.map)] = call_block(call).splitlines()
    return "\n".join(lines)


def _call_fences(body: str) -> list[Token]:
    blocks = [token for token in top_fences(body) if token.info.strip() == "call"]
    lines = _LINE_BREAK.sub("\n", body).split("\n") if blocks else []
    for token in blocks:
        if not token.map or lines[token.map[0]].rstrip() != "```call":
            raise SilasError(
                ErrorCode.BAD_CALL_BLOCK, "A call block opens with exactly ```call at the start of its line."
            )
    return blocks


def _reject_duplicate_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Refuse duplicate keys, because one reader takes the first and another the last."""
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a key stands twice")
    return value


def _parse_call(content: str) -> PlannedCall:
    try:
        value = json.loads(content, object_pairs_hook=_reject_duplicate_keys)
    except (ValueError, RecursionError):
        raise SilasError(ErrorCode.BAD_CALL_BLOCK, "A call block of the plan is not JSON.") from None
    match value:
        case {"tool": str(tool), "args": dict(args), **rest} if tool and not rest:
            return PlannedCall(tool, args)
    raise SilasError(ErrorCode.BAD_CALL_BLOCK, "A call block needs exactly a tool and its args.")
