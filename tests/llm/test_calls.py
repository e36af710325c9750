"""The calls of a plan: one spelling of a call block, and what resembles one is refused rather than read as prose."""

from __future__ import annotations

import pytest

from kernel.errors import SilasError
from llm.calls import PlannedCall, call_block, parse_calls, replace_calls

CALL = PlannedCall("refund", {"order": "H-1"})
JSON = '{"args":{"order":"H-1"},"tool":"refund"}'


def test_written_call_is_read() -> None:
    assert parse_calls(f"Do it.\n\n{call_block(CALL)}\n\nStop.") == (CALL,)


@pytest.mark.parametrize(
    "block",
    [
        f"~~~call\n{JSON}\n~~~",
        f"~~~ call\n{JSON}\n~~~",
        f"````call\n{JSON}\n````",
        f"  ```call\n{JSON}\n  ```",
        f"``` call\n{JSON}\n```",
        '```call\n{"tool":"refund","args":{},"args":{"order":"H-1"}}\n```',
        '```call\n{"tool":"refund","args":{"order":"H-1","order":"H-2"}}\n```',
    ],
)
def test_block_that_only_resembles_a_call_is_refused(block: str) -> None:
    with pytest.raises(SilasError) as refusal:
        parse_calls(f"Do it.\n\n{block}\n")
    assert refusal.value.code == "bad_call_block"


@pytest.mark.parametrize("prose", [f"> ```call\n> {JSON}\n> ```", f"`````\n```call\n{JSON}\n```\n`````", "call"])
def test_quoted_or_nested_block_is_prose(prose: str) -> None:
    assert parse_calls(prose) == ()


@pytest.mark.parametrize("break_", ["\r", "\r\n", "\x0b", "\x0c", "\u2028", "\x85"])
def test_calls_are_exchanged_in_their_own_lines_whatever_else_breaks_a_line(break_: str) -> None:
    body = f"one{break_}two\n\n{call_block(CALL)}\n\nafter"
    other = PlannedCall("refund", {"order": "H-2"})
    changed = replace_calls(body, [other])
    assert parse_calls(changed) == (other,)
    assert changed.endswith("after")
    assert "H-1" not in changed
