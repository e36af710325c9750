"""How does the web process answer? Pages by Django, sockets by Channels, and the conversations' upkeep beside them."""

from __future__ import annotations

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "silas_platform.settings.dev")
django_application = get_asgi_application()

from channels.auth import AuthMiddlewareStack  # noqa: E402  (after Django is set up)
from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402

from apps.console.routing import websocket_urlpatterns as console_sockets  # noqa: E402
from apps.sessions.routing import websocket_urlpatterns as visitor_sockets  # noqa: E402
from silas_platform import wire  # noqa: E402
from silas_platform.background import with_background  # noqa: E402

wire.install()
application = with_background(
    ProtocolTypeRouter(
        {
            "http": django_application,
            "websocket": AuthMiddlewareStack(URLRouter([*visitor_sockets, *console_sockets])),
        }
    )
)
