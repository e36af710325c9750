"""Baseline of the safety loop: the official SDK's server with one tool that does nothing.

Over HTTP beside the platform in the same web process, over stdio as a program of its own. No key is looked at.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.types import CallToolRequestParams, CallToolResult, ListToolsResult, TextContent, Tool

BARE_MCP_PATH = "/mcp/bare"
TOOL = "nothing"


async def _list(_: Any, __: Any) -> ListToolsResult:
    return ListToolsResult(tools=[Tool(name=TOOL, inputSchema={"type": "object"})])


async def _call(_: Any, asked: CallToolRequestParams) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text="{}")])


def server() -> Server[Any]:
    return Server("bare", version="1", on_list_tools=_list, on_call_tool=_call)


def mounted() -> Callable[[dict[str, Any], Any, Any], Awaitable[None]]:
    """An ASGI application whose manager runs from its first request until the process ends."""
    manager = StreamableHTTPSessionManager(app=server(), json_response=True, stateless=True)
    running: list[asyncio.Task[None]] = []

    async def run(begun: asyncio.Event) -> None:
        async with manager.run():
            begun.set()
            await asyncio.Event().wait()

    async def serve(scope: dict[str, Any], receive: Any, send: Any) -> None:
        if not running:
            begun = asyncio.Event()
            running.append(asyncio.create_task(run(begun)))
            await begun.wait()
        await manager.handle_request(scope, receive, send)

    return serve


async def _over_a_pipe() -> None:
    async with stdio_server() as (reads, writes):
        bare = server()
        await bare.run(reads, writes, bare.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(_over_a_pipe())
