"""The address of the console's socket, for members who are logged in. Visitors' sockets look up no login."""

from __future__ import annotations

from channels.auth import AuthMiddlewareStack
from django.urls import path

from apps.console.consumers import ConsoleConsumer

websocket_urlpatterns = [path("ws/console/", AuthMiddlewareStack(ConsoleConsumer.as_asgi()))]
