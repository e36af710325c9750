"""ASGI application of the web process: pages by Django, sockets by Channels, and background loops beside them."""

from __future__ import annotations

import asyncio
import functools
import os
from typing import Any

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "silas_platform.settings.local")
django_application = get_asgi_application()  # before importing anything that needs Django

from channels.routing import ProtocolTypeRouter, URLRouter
from django.conf import settings
from django.urls import re_path

from apps.console.routing import websocket_urlpatterns as console_sockets
from apps.sessions.routing import websocket_urlpatterns as visitor_sockets
from kernel.first_imports import FIRST_IMPORTS
from kernel.tenancy import refuse_closed_companies
from silas_platform import connection_limits
from silas_platform.background import with_background
from silas_platform.client_address import with_client_address
from silas_platform.telemetry import instruments, traces


async def _serve_http(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """MCP below `/mcp/`, pages and the API elsewhere."""
    serve = await asyncio.to_thread(_mcp_application) if scope["path"].startswith("/mcp/") else django_application
    await serve(scope, receive, send)


@functools.cache
def _mcp_application() -> Any:
    """Import the MCP servers with the first request to one: they bring the SDK and 20 MB."""
    with FIRST_IMPORTS:
        from apps.protocols.mcp_server import with_deployments
        from apps.safety.mcp_server import with_safety

    return with_safety(with_deployments(django_application))


async def _refuse_socket(_scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Answer a socket at an unknown address with 403; `URLRouter` alone raises, which is 500 and a traceback."""
    await receive()
    await send({"type": "websocket.close"})


_NO_SOCKET = re_path("", _refuse_socket)  # type: ignore[arg-type]  # an ASGI application, as Channels routes them
refuse_closed_companies()
connection_limits.install()
instruments.start("web")
traces.start("web")
protocols = ProtocolTypeRouter(
    {
        "http": _serve_http,
        "websocket": URLRouter([*visitor_sockets, *console_sockets, _NO_SOCKET]),
    }
)
application = with_background(with_client_address(protocols, trusted=settings.TRUSTED_PROXIES))
