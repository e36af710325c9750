"""The web process under measurement: the platform, and a bare consumer with one committed INSERT and an echo.

`STOCK_PATH` is Channels as it comes; on `TUNED_PATH` the same work goes by our threads and our pool. On `BARE_MCP_PATH`
stands an MCP server whose one tool does nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from channels.routing import URLRouter
from django.urls import path

from bench.bare import insert, tuned_insert
from bench.bare_mcp import BARE_MCP_PATH, mounted
from bench.stage import STOCK_PATH, TUNED_PATH
from silas_platform.asgi import application as platform


async def _in_our_threads(text: str) -> None:
    from kernel.tenancy import in_thread

    await in_thread(tuned_insert, text)


class EchoConsumer(AsyncWebsocketConsumer):  # type: ignore[misc]  # Channels has no types
    keep: Callable[[str], Awaitable[None]] = staticmethod(database_sync_to_async(insert))

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        await self.keep(text_data or "")
        await self.send(text_data=text_data)


class TunedConsumer(EchoConsumer):
    keep = staticmethod(_in_our_threads)


_echo = URLRouter(
    [
        path(STOCK_PATH.lstrip("/"), EchoConsumer.as_asgi()),
        path(TUNED_PATH.lstrip("/"), TunedConsumer.as_asgi()),
    ]
)


_bare_mcp = mounted()


class Application:
    """The platform, with the bare consumers beside it."""

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope.get("path") == BARE_MCP_PATH:
            await _bare_mcp(scope, receive, send)
            return
        await (_echo if scope.get("path") in (STOCK_PATH, TUNED_PATH) else platform)(scope, receive, send)


application = Application()
