"""Does the visitor see exactly the beginning of the message, whatever pieces the output comes in?"""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic_ai.messages import (
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ToolCallPart,
    ToolCallPartDelta,
)

from llm.streaming import MessageStream, StreamedText, planner_message, proxy_message


class Screen:
    """What a visitor sees."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.shown = StreamedText(self._see)

    async def _see(self, piece: str) -> None:
        self.pieces.append(piece)

    @property
    def text(self) -> str:
        return "".join(self.pieces)


async def stream(screen: Screen, output: str, sizes: list[int], *, tool: str = "final_result") -> None:
    follower = MessageStream(screen.shown, proxy_message)
    await follower.feed(PartStartEvent(index=0, part=ToolCallPart(tool_name=tool, args="")))
    while output:
        size = sizes.pop(0) if sizes else len(output)
        piece, output = output[:size], output[size:]
        await follower.feed(PartDeltaEvent(index=0, delta=ToolCallPartDelta(args_delta=piece)))


def decision(message: str, route: str = "direct") -> str:
    return json.dumps({"route": route, "reason": "r", "response": {"message": message, "suggestions": ["x"]}})


@settings(deadline=None)
@given(message=st.text(min_size=1), sizes=st.lists(st.integers(1, 9), max_size=200))
async def test_pieces_cut_anywhere_make_up_the_message(message: str, sizes: list[int]) -> None:
    screen = Screen()
    await stream(screen, decision(message), sizes)
    assert screen.text == message


@settings(deadline=None)
@given(message=st.text(min_size=1), cut=st.integers(0, 400))
async def test_output_cut_off_shows_a_beginning_of_the_message(message: str, cut: int) -> None:
    screen = Screen()
    await stream(screen, decision(message)[:cut], [3] * 200)
    assert message.startswith(screen.text)


async def test_emoji_cut_between_its_escapes_is_shown_whole() -> None:
    screen = Screen()
    await stream(screen, '{"route":"direct","response":{"message":"a\\ud83d\\ude00"}}', [46, 6, 40])
    assert "\ud83d" not in screen.text
    assert screen.text == "a\U0001f600"


async def test_message_before_the_route_waits_for_the_route() -> None:
    screen = Screen()
    await stream(screen, '{"response": {"message": "Hi there"}, "route": "direct"}', [30, 10])
    assert screen.pieces == ["Hi there"]


async def test_message_of_a_planner_route_is_not_shown() -> None:
    screen = Screen()
    await stream(screen, decision("I did it!", route="planner"), [5] * 20)
    assert screen.pieces == []


async def test_arguments_of_another_tool_are_not_shown() -> None:
    screen = Screen()
    await stream(screen, decision("secret"), [5] * 20, tool="update_address")
    assert screen.pieces == []


async def test_json_text_is_shown_like_a_tool_call() -> None:
    screen = Screen()
    follower = MessageStream(screen.shown, planner_message)
    await follower.feed(PartStartEvent(index=0, part=TextPart('{"message": "Pre')))
    await follower.feed(PartDeltaEvent(index=0, delta=TextPartDelta(content_delta='pared."}')))
    assert screen.pieces == ["Pre", "pared."]


async def test_plain_text_is_not_shown() -> None:
    screen = Screen()
    await MessageStream(screen.shown, proxy_message).feed(PartStartEvent(index=0, part=TextPart("Hello!")))
    assert screen.pieces == []


async def test_ready_object_of_arguments_is_shown() -> None:
    screen = Screen()
    args: dict[str, Any] = {"route": "direct", "response": {"message": "Hi"}}
    part = ToolCallPart(tool_name="final_result", args=args)
    await MessageStream(screen.shown, proxy_message).feed(PartStartEvent(index=0, part=part))
    assert screen.pieces == ["Hi"]


async def test_second_try_with_the_same_beginning_goes_on() -> None:
    screen = Screen()
    await stream(screen, decision("Yes, it is covered.")[:75], [4] * 30)
    await stream(screen, decision("Yes, it is covered, and more."), [4] * 30)
    assert screen.text == "Yes, it is covered, and more."


async def test_second_try_with_other_words_stays_silent() -> None:
    screen = Screen()
    await stream(screen, decision("Yes, it is covered.")[:75], [4] * 30)
    seen = screen.text
    await stream(screen, decision("No, it is not."), [4] * 30)
    assert screen.text == seen != ""
