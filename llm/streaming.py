"""Stream a growing answer to the visitor by reading `message` from a partly received structured output.

Reads the arguments of the output tool and plain JSON text. All pieces together are always the beginning of one message;
after a try that failed with text already shown, a new try stays silent unless it begins with the same text.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from pydantic_ai.messages import (
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ToolCallPart,
    ToolCallPartDelta,
)
from pydantic_core import from_json

OnDelta = Callable[[str], Awaitable[None]]
Reader = Callable[[dict[str, object]], object]
OUTPUT_TOOL = "final_result"


def proxy_message(output: dict[str, object]) -> object:
    """The text of a `RouteDecision` that is known to be direct."""
    response = output.get("response")
    return response.get("message") if output.get("route") == "direct" and isinstance(response, dict) else None


def planner_message(output: dict[str, object]) -> object:
    return output.get("message")


class StreamedText:
    """The text of this run that the visitor has seen so far, over all tries."""

    def __init__(self, on_delta: OnDelta | None) -> None:
        self._on_delta = on_delta
        self._text = ""

    async def grow(self, message: str) -> None:
        """Show the part of `message` that is new; nothing if it is another text."""
        if self._on_delta is None or len(message) <= len(self._text) or not message.startswith(self._text):
            return
        piece, self._text = message[len(self._text) :], message
        await self._on_delta(piece)


class MessageStream:
    """Follows the events of one model response; pass each to `feed` as soon as it arrives."""

    def __init__(self, shown: StreamedText, reader: Reader | None) -> None:
        self._shown = shown
        self._reader = reader
        self._json: dict[int, str] = {}

    async def feed(self, event: object) -> None:
        if self._reader is None:
            return
        match event:
            case PartStartEvent(index=index, part=ToolCallPart(tool_name=name, args=args)) if name == OUTPUT_TOOL:
                await self._received(index, args, first=True)
            case PartStartEvent(index=index, part=TextPart(content=text)):
                await self._received(index, text, first=True)
            case PartDeltaEvent(index=index, delta=ToolCallPartDelta(args_delta=args)):
                await self._received(index, args)
            case PartDeltaEvent(index=index, delta=TextPartDelta(content_delta=text)):
                await self._received(index, text)
            case _:
                pass

    async def _received(self, index: int, piece: object, *, first: bool = False) -> None:
        """Only parts that began as an output are followed; `piece` is JSON text or, from some providers, a ready
        object.
        """
        if first:
            self._json[index] = ""
        if index not in self._json:
            return
        if isinstance(piece, str):
            self._json[index] += piece
        await self._show(_read(self._json[index]) if isinstance(piece, str) else piece)

    async def _show(self, output: object) -> None:
        message = self._reader(output) if self._reader and isinstance(output, dict) else None
        if isinstance(message, str):
            await self._shown.grow(message)


def _read(text: str) -> object:
    try:
        return from_json(text, allow_partial="trailing-strings")
    except ValueError:
        return None
