"""Serve MCP servers over streamable HTTP inside the web process, on the official SDK.

A server is stateless, so that any web process can answer; credentials are checked on every request, before it comes
here. Only POST is served: a server sends nothing on its own, and a GET stream would stay open for ever.
"""

from __future__ import annotations

import asyncio
import contextvars
import weakref
from collections.abc import Awaitable, Callable, Hashable
from typing import Any

from django.http import JsonResponse
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings

from kernel.errors import SilasError

Application = Callable[[dict[str, Any], Any, Any], Awaitable[None]]
Managers = dict[Hashable, tuple[asyncio.Future[StreamableHTTPSessionManager], asyncio.Task[None]]]
_running: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Managers] = weakref.WeakKeyDictionary()


async def serve(
    name: Hashable,
    create: Callable[[], Server[Any]],
    scope: dict[str, Any],
    receive: Any,
    send: Any,
    *,
    max_bytes: int,
) -> None:
    """Answer one request by the server of this name, which is created with its first request."""
    manager = await _manager(name, create, max_bytes)
    await manager.handle_request(scope, receive, send)


async def refuse(send: Any, error: SilasError, *, challenge: str = "Bearer") -> None:
    """Answer with an error; `challenge` is the WWW-Authenticate header of a 401."""
    response = JsonResponse(error.as_json(), status=error.status)
    headers = [(name.lower().encode(), value.encode()) for name, value in response.items()]
    if error.status == 401:
        headers.append((b"www-authenticate", challenge.encode()))
    if error.status == 405:
        headers.append((b"allow", b"POST"))
    await send({"type": "http.response.start", "status": error.status, "headers": headers})
    await send({"type": "http.response.body", "body": response.content})


def bearer_of(scope: dict[str, Any]) -> str:
    """The bearer credential of a request, or an empty string."""
    given = next((value for name, value in scope["headers"] if name == b"authorization"), b"")
    scheme, _, token = given.decode("latin-1").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


async def _manager(name: Hashable, create: Callable[[], Server[Any]], max_bytes: int) -> StreamableHTTPSessionManager:
    """Get or start the manager of this event loop and name; after a failure the next call starts another."""
    running = _running.setdefault(asyncio.get_running_loop(), {})
    if name not in running:
        ready: asyncio.Future[StreamableHTTPSessionManager] = asyncio.get_running_loop().create_future()
        # An empty context: the manager outlives the request whose tenant and language would otherwise go with it.
        task = asyncio.create_task(_run_manager(create(), ready, max_bytes), context=contextvars.Context())
        running[name] = (ready, task)
        task.add_done_callback(lambda _: (running.pop(name, None), ready.cancel()))
    # A client that goes away must not cancel the start for the requests that wait beside it.
    return await asyncio.shield(running[name][0])


async def _run_manager(
    server: Server[Any], ready: asyncio.Future[StreamableHTTPSessionManager], max_bytes: int
) -> None:
    # Cookies do not authenticate here, so a foreign page gains nothing by DNS rebinding.
    manager = StreamableHTTPSessionManager(
        app=server,
        json_response=True,
        stateless=True,
        security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        max_request_body_size=max_bytes,
    )
    async with manager.run():
        ready.set_result(manager)
        # For ever: the manager lives as long as its event loop.
        await asyncio.Event().wait()
