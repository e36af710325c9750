"""A visitor of the benchmarks: a socket, an authentication, messages, frames."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from websockets.asyncio.client import ClientConnection, connect

from bench.stage import Stage


async def conversation(ready: Stage) -> ClientConnection:
    token, _ = await asyncio.to_thread(ready.new_session)
    talk = await connect(f"{ready.socket_url}/ws/widget/{ready.deployment.public_key}/")
    await talk.send(json.dumps({"type": "auth", "token": token}))
    await until(talk, lambda frame: frame["type"] == "ready")
    return talk


async def say(talk: ClientConnection, number: int, text: str) -> None:
    await talk.send(json.dumps({"type": "message", "text": text, "client_id": f"c{number}"}))


async def until(talk: ClientConnection, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    while not wanted(frame := json.loads(await asyncio.wait_for(talk.recv(), 30))):
        pass
    return dict(frame)


def is_answer(frame: dict[str, Any]) -> bool:
    return bool(frame["type"] == "message" and frame["sender"] == "bot")
