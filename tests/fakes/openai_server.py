"""What does a provider do to us? A local OpenAI-compatible chat server that streams, calls tools, fails, stalls and
lies.

Only the standard library, so that tests and `bench/` can use it. Give it replies in order (the last one repeats) or a
function from the request to a reply; afterwards read `requests` and `first_token_at`.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

_FOREVER = 3600.0
_REASONS = {200: "OK", 429: "Too Many Requests", 500: "Internal Server Error", 401: "Unauthorized"}


@dataclass(frozen=True)
class Reply:
    """One model answer: `text`, or `calls` as (tool, JSON text of its arguments), sent in `pieces` characters at a
    time.

    Seconds: `before_first`, `between`. Nothing is sent before `held_until` is set. `stall_after` and `cut_after` count
    pieces: then silence, or a dropped connection. `raw` replaces the events of the stream by these lines. `vectors`
    answer a request for embeddings.
    """

    text: str = ""
    calls: tuple[tuple[str, str], ...] = ()
    pieces: int = 16
    before_first: float = 0.0
    between: float = 0.0
    stall_after: int | None = None
    cut_after: int | None = None
    status: int = 200
    usage: tuple[int, int] | None = (100, 20)
    raw: tuple[str, ...] = ()
    held_until: threading.Event | None = None
    vectors: tuple[tuple[float, ...], ...] = ()


def final(output: Mapping[str, Any] | str, **options: Any) -> Reply:
    """The structured output of a run, as models of this family give it: a call of `final_result`."""
    text = output if isinstance(output, str) else json.dumps(output)
    return Reply(calls=(("final_result", text),), **options)


def direct(message: str, **options: Any) -> Reply:
    return final(route_decision(message), **options)


def route_decision(message: str) -> dict[str, Any]:
    return {
        "route": "direct",
        "reason": "answered",
        "interaction_register": "status",
        "interaction_mode": "act_and_report",
        "context_profile": "conversation",
        "response": {"message": message},
    }


Replies = Sequence[Reply] | Callable[[dict[str, Any]], Reply]


@dataclass
class FakeOpenAI:
    """`base_url` is known once it serves. Times are `time.perf_counter()`. `models` is what it lists."""

    replies: Replies
    base_url: str = ""
    models: list[str] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    first_token_at: list[float] = field(default_factory=list)
    sent: list[tuple[float, str]] = field(default_factory=list)
    under_way: set[int] = field(default_factory=set)
    most_at_once: int = 0

    def message_began_at(self) -> float:
        """When the first letter of the answer's `message` was sent, after the JSON before it."""
        text = ""
        for moment, piece in self.sent:
            text += piece
            if text.partition('"message": "')[2]:
                return moment
        raise ValueError("no message was sent")

    @property
    def running(self) -> int:
        return len(self.under_way)

    def _next(self, request: dict[str, Any]) -> Reply:
        self.requests.append(request)
        if callable(self.replies):
            return self.replies(request)
        return self.replies[min(len(self.requests), len(self.replies)) - 1]

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                headers, request = await _read_request(reader)
                self.keys.append(headers.get("authorization", "").removeprefix("Bearer "))
                if not request:
                    return await _send(writer, 200, {"data": [{"id": name} for name in self.models]})
                self.under_way.add(id(request))
                self.most_at_once = max(self.most_at_once, self.running)
                try:
                    await self._answer(writer, request, self._next(request))
                finally:
                    self.under_way.discard(id(request))
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def _answer(self, writer: asyncio.StreamWriter, request: dict[str, Any], reply: Reply) -> None:
        if reply.status != 200:
            await asyncio.sleep(reply.before_first)
            return await _send(writer, reply.status, {"error": {"message": "fake failure", "type": "fake"}})
        if not request.get("stream"):
            await asyncio.sleep(reply.before_first)
            made = _completion(request, reply)
            if "input" in request:
                made = _embeddings(request, reply) if reply.vectors else _response(request, reply)
            return await _send(writer, 200, made)
        writer.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
            b"transfer-encoding: chunked\r\nconnection: close\r\n\r\n"
        )
        await self._stream(writer, request, reply)
        return None

    async def _stream(self, writer: asyncio.StreamWriter, request: dict[str, Any], reply: Reply) -> None:
        await _event(writer, _chunk(request, {"role": "assistant", "content": ""}))
        await asyncio.sleep(reply.before_first)
        if reply.held_until is not None:
            await asyncio.to_thread(reply.held_until.wait, 120)
        for number, delta in enumerate(_deltas(reply)):
            if number == reply.stall_after:
                await asyncio.sleep(_FOREVER)
            if number == reply.cut_after:
                return writer.transport.abort()
            if number == 0:
                self.first_token_at.append(time.perf_counter())
            self.sent.append((time.perf_counter(), _text_of(delta)))
            await _event(writer, delta if isinstance(delta, str) else _chunk(request, delta))
            await asyncio.sleep(reply.between)
        await self._end(writer, request, reply)
        return None

    async def _end(self, writer: asyncio.StreamWriter, request: dict[str, Any], reply: Reply) -> None:
        if not reply.raw:
            await _event(writer, _chunk(request, {}, finish="tool_calls" if reply.calls else "stop"))
        if reply.usage is not None:
            await _event(writer, _chunk(request, None, usage=_usage(reply.usage)))
        self.under_way.discard(id(request))  # who reads the last word may ask again before we are back
        await _event(writer, "[DONE]")
        writer.write(b"0\r\n\r\n")


@asynccontextmanager
async def serving(replies: Replies) -> AsyncIterator[FakeOpenAI]:
    """Serve in this event loop until the block ends."""
    fake = FakeOpenAI(replies)
    busy: set[asyncio.Task[None]] = set()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(fake.handle(reader, writer))
        busy.add(task)
        task.add_done_callback(busy.discard)

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    fake.base_url = f"http://{host}:{port}/v1"
    try:
        yield fake
    finally:
        server.close()
        for task in busy:
            task.cancel()
        await asyncio.gather(*busy, return_exceptions=True)


@contextmanager
def serving_in_thread(replies: Replies) -> Iterator[FakeOpenAI]:
    """Serve in a thread of its own, for callers without an event loop."""
    ready: list[FakeOpenAI] = []
    started, loop = threading.Event(), asyncio.new_event_loop()
    stop = asyncio.Event()

    async def serve() -> None:
        async with serving(replies) as fake:
            ready.append(fake)
            started.set()
            await stop.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),), daemon=True)
    thread.start()
    started.wait(60)
    try:
        yield ready[0]
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(10)
        loop.close()


async def _read_request(reader: asyncio.StreamReader) -> tuple[dict[str, str], dict[str, Any]]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    lines = (line.partition(":") for line in head.split("\r\n")[1:] if line)
    headers = {name.strip().lower(): value.strip() for name, _, value in lines}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    request: dict[str, Any] = json.loads(body or b"{}")
    return headers, request


async def _send(writer: asyncio.StreamWriter, status: int, body: dict[str, Any]) -> None:
    data = json.dumps(body).encode()
    head = f"HTTP/1.1 {status} {_REASONS.get(status, 'Status')}\r\ncontent-type: application/json\r\n"
    writer.write(f"{head}content-length: {len(data)}\r\nconnection: close\r\n\r\n".encode() + data)
    await writer.drain()


async def _event(writer: asyncio.StreamWriter, data: dict[str, Any] | str) -> None:
    line = f"data: {data if isinstance(data, str) else json.dumps(data)}\n\n".encode()
    writer.write(b"%x\r\n%s\r\n" % (len(line), line))
    await writer.drain()


def _deltas(reply: Reply) -> Iterator[dict[str, Any] | str]:
    if reply.raw:
        yield from reply.raw
        return
    for start in range(0, len(reply.text), reply.pieces):
        yield {"content": reply.text[start : start + reply.pieces]}
    for index, (name, arguments) in enumerate(reply.calls):
        yield _call_delta(index, id=f"call_{index}", type="function", function={"name": name, "arguments": ""})
        for start in range(0, len(arguments), reply.pieces):
            yield _call_delta(index, function={"arguments": arguments[start : start + reply.pieces]})


def _text_of(delta: dict[str, Any] | str) -> str:
    if isinstance(delta, str):
        return delta
    calls = delta.get("tool_calls") or []
    return str(delta.get("content") or "") + "".join(call["function"].get("arguments", "") for call in calls)


def _call_delta(index: int, **part: Any) -> dict[str, Any]:
    return {"tool_calls": [{"index": index, **part}]}


def _chunk(
    request: dict[str, Any],
    delta: dict[str, Any] | None,
    *,
    finish: str | None = None,
    usage: dict[str, int] | None = None,
) -> dict[str, Any]:
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
    body = {"id": "fake", "object": "chat.completion.chunk", "created": 1, "model": request.get("model", "fake")}
    return {**body, "choices": choices, **({"usage": usage} if usage else {})}


def _completion(request: dict[str, Any], reply: Reply) -> dict[str, Any]:
    calls = [
        {"id": f"call_{index}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for index, (name, arguments) in enumerate(reply.calls)
    ]
    message = {"role": "assistant", "content": reply.text or None, **({"tool_calls": calls} if calls else {})}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
    body = {"id": "fake", "object": "chat.completion", "created": 1, "model": request.get("model", "fake")}
    return {**body, "choices": [choice], "usage": _usage(reply.usage or (0, 0))}


def _response(request: dict[str, Any], reply: Reply) -> dict[str, Any]:
    """The same, of the other address at which OpenAI's models are asked."""
    text = {"type": "output_text", "text": reply.text, "annotations": []}
    message = {"type": "message", "id": "fake", "role": "assistant", "status": "completed", "content": [text]}
    body = {"id": "fake", "object": "response", "created_at": 1, "model": request.get("model", "fake")}
    more = {"status": "completed", "parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
    return {**body, **more, "output": [message]}


def _embeddings(request: dict[str, Any], reply: Reply) -> dict[str, Any]:
    data = [{"object": "embedding", "index": index, "embedding": vector} for index, vector in enumerate(reply.vectors)]
    tokens = sum(len(text.split()) for text in request["input"])
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "data": data, "model": request.get("model", "fake"), "usage": usage}


def _usage(tokens: tuple[int, int]) -> dict[str, int]:
    return {"prompt_tokens": tokens[0], "completion_tokens": tokens[1], "total_tokens": sum(tokens)}
