"""The baseline of the conversation figures: a Channels consumer that does one committed INSERT and echoes.

As good as it gets on the same stack: the same Daphne, the same pool of database threads, one round trip and its commit.
"""

from __future__ import annotations

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "silas_platform.settings.prod")

from silas_platform.asgi import application as platform  # noqa: E402  (sets Django up)

from channels.generic.websocket import AsyncWebsocketConsumer  # noqa: E402
from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402
from django.db import connection, transaction  # noqa: E402
from django.urls import path  # noqa: E402

from kernel.tenancy import in_thread  # noqa: E402

TABLE = (
    "CREATE TABLE IF NOT EXISTS bench_echo (id bigserial PRIMARY KEY, said text NOT NULL, at timestamptz DEFAULT now())"
)


def insert(text: str) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("INSERT INTO bench_echo (said) VALUES (%s)", [text])


class EchoConsumer(AsyncWebsocketConsumer):  # type: ignore[misc]  # Channels has no types
    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        await in_thread(insert, text_data or "")
        await self.send(text_data=text_data)


echo = URLRouter([path("ws/bare/", EchoConsumer.as_asgi())])


class Application:
    """The platform, with the bare consumer beside it."""

    async def __call__(self, scope: dict, receive: object, send: object) -> None:
        await (echo if scope.get("path") == "/ws/bare/" else platform)(scope, receive, send)


application = Application()
