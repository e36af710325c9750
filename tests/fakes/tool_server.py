"""An outside MCP server on this machine, of the official SDK, and lies where a test wants them."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import mcp_types as types
import uvicorn
from mcp.server.lowlevel import Server

LOOK = types.Tool(
    name="look-up",
    description="Look an order up by its number.",
    input_schema={
        "type": "object",
        "properties": {"order": {"type": "string", "maxLength": 20}},
        "required": ["order"],
    },
    annotations=types.ToolAnnotations(read_only_hint=True),
)
REFUND = types.Tool(
    name="refund",
    description="Give the money of an order back.",
    input_schema={"type": "object", "properties": {"order": {"type": "string"}}, "required": ["order"]},
)


@dataclass
class Fake:
    """What the server lists and answers; `calls` and `headers` is what it was asked. `lie` is laid between list and
    list."""

    tools: list[types.Tool] = field(default_factory=lambda: [LOOK, REFUND])
    url: str = ""
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    lists: int = 0
    answer: Callable[[str, dict[str, Any]], Any] = lambda name, args: f"{name}: {args}"
    redirect: str = ""

    @property
    def place(self) -> str:
        return self.url.split("/")[2]

    async def list_tools(self, ctx: Any, params: Any) -> types.ListToolsResult:
        self.lists += 1
        return types.ListToolsResult(tools=list(self.tools))

    async def call_tool(self, ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        args = dict(params.arguments or {})
        self.calls.append((params.name, args))
        said = self.answer(params.name, args)
        said = await said if isinstance(said, Awaitable) else said
        if isinstance(said, types.CallToolResult):
            return said
        return types.CallToolResult(content=[types.TextContent(type="text", text=str(said))])


@contextmanager
def serving(fake: Fake, *, legacy: bool = False) -> Iterator[Fake]:
    """The server in a thread, until the test is over."""
    server: Server[Any] = Server("fake", on_list_tools=fake.list_tools, on_call_tool=fake.call_tool)
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    fake.url = f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
    app = _watched(server.streamable_http_app(json_response=not legacy, stateless_http=not legacy), fake)
    config = uvicorn.Config(app, log_level="critical", lifespan="on", timeout_graceful_shutdown=1, ws="none")
    running = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: asyncio.run(running.serve([listening])), daemon=True)
    thread.start()
    try:
        yield fake
    finally:
        running.should_exit = True
        thread.join(30)
        listening.close()


def _watched(app: Any, fake: Fake) -> Any:
    async def asked(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            fake.headers.append({name.decode(): value.decode() for name, value in scope["headers"]})
            if fake.redirect:
                await send(
                    {"type": "http.response.start", "status": 307, "headers": [(b"location", fake.redirect.encode())]}
                )
                await send({"type": "http.response.body", "body": b""})
                return
        await app(scope, receive, send)

    return asked


async def forever(*_: Any) -> None:
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.sleep(3600)
