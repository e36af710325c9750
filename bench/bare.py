"""The baseline of the conversation figures: a Channels consumer that does one committed INSERT and echoes.

As good as it gets on the same stack: the same Daphne, the same pool of database threads, one statement and its commit.
"""

from __future__ import annotations

from typing import Any

from channels.generic.websocket import AsyncWebsocketConsumer
from channels.routing import URLRouter
from django.db import connection, transaction
from django.urls import path

from silas_platform.asgi import application as platform

PATH = "/ws/bare/"


def insert(text: str) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("INSERT INTO bench_echo (said) VALUES (%s)", [text])


class EchoConsumer(AsyncWebsocketConsumer):  # type: ignore[misc]  # Channels has no types
    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        from kernel.tenancy import in_thread

        await in_thread(insert, text_data or "")
        await self.send(text_data=text_data)


_echo = URLRouter([path(PATH.lstrip("/"), EchoConsumer.as_asgi())])


class Application:
    """The platform, with the bare consumer beside it."""

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        await (_echo if scope.get("path") == PATH else platform)(scope, receive, send)


application = Application()
