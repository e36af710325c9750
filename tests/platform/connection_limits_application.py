"""What stands behind the wire in `test_wire`: an application that says back what it hears, as slowly as it is told."""

from __future__ import annotations

import asyncio
from typing import Any

import django

django.setup()

from silas_platform import connection_limits  # noqa: E402 (it needs the settings)

connection_limits.install()


async def application(scope: dict[str, Any], receive: Any, send: Any) -> None:
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"here"})
        return
    await receive()
    await send({"type": "websocket.accept"})
    while (event := await receive())["type"] == "websocket.receive":
        text = event.get("text") or ""
        if text == "sleep":
            await asyncio.sleep(0.5)
        elif text == "pour":
            while True:
                await send({"type": "websocket.send", "text": "x" * 60_000})
                await asyncio.sleep(0.001)
        elif text in ("4001", "1013"):
            await send({"type": "websocket.close", "code": int(text)})
        elif text == "close":
            await send({"type": "websocket.close", "code": 4008})
        else:
            await send({"type": "websocket.send", "text": text})
