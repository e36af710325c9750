"""A widget without a screen: one conversation over a real socket, as stubborn as the real widget.

Keeps what was not acknowledged and sends it again (same `client_id`) when asked for patience and after a broken line;
comes back by itself with its resume token and the last `seq` it has seen. Everything heard is kept.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any
from uuid import uuid4

from websockets.asyncio.client import ClientConnection, connect, unix_connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from tests.faults.house import KEY, Answer, Web

Frame = dict[str, Any]
COME_BACK_SECONDS = 0.3
MARIA = "I am Maria Ortega, born on 12 March 1984."


class Visitor:
    """`async with Visitor(lambda: web) as visitor`; another web process may be given while it lives."""

    def __init__(self, web: Callable[[], Web], *, resume_token: str = "", key: str = KEY) -> None:
        self.web, self.key = web, key
        self.heard: list[Frame] = []
        self.unacknowledged: dict[str, str] = {}
        self.acknowledged: dict[str, int] = {}
        self.waited: dict[str, float] = {}
        self.lines = 0
        self.session_id, self.resume_token = "", resume_token
        self._line: ClientConnection | None = None
        self._news = asyncio.Condition()
        self._tasks: set[asyncio.Task[Any]] = set()

    async def __aenter__(self) -> Visitor:
        self._begin(self._stay())
        await self.until(lambda frame: frame["type"] == "ready")
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # -- saying ----------------------------------------------------------------------------------------------------

    async def say(self, text: str) -> str:
        """Send a message, or keep it until there is a line; its client id."""
        client_id = uuid4().hex
        self.unacknowledged[client_id] = text
        self.waited[client_id] = -time.monotonic()
        await self.send(type="message", text=text, client_id=client_id)
        return client_id

    async def send(self, **frame: Any) -> None:
        if self._line is not None:
            with suppress(ConnectionClosed):
                await self._line.send(json.dumps(frame))

    async def acknowledged_as(self, client_id: str, *, seconds: float = 30) -> int:
        await self.until(lambda frame: frame["type"] == "ack" and frame["client_id"] == client_id, seconds=seconds)
        return self.acknowledged[client_id]

    async def ask(self, text: str, *, seconds: float = 30) -> Frame:
        """Say `text`; what the bot says next."""
        seq = await self.acknowledged_as(await self.say(text), seconds=seconds)
        return await self.until(lambda frame: is_answer(frame) and frame["seq"] > seq, seconds=seconds)

    # -- hearing ---------------------------------------------------------------------------------------------------

    async def until(self, wanted: Callable[[Frame], bool], *, seconds: float = 30) -> Frame:
        """The first frame ever heard that is `wanted`."""
        async with asyncio.timeout(seconds), self._news:
            while (found := next(filter(wanted, self.heard), None)) is None:
                await self._news.wait()
            return found

    async def hears_all(self, *, seconds: float = 60) -> None:
        """Wait until everything said is acknowledged and has got an answer."""
        async with asyncio.timeout(seconds), self._news:
            while self.unacknowledged or len(self.answers()) < len(self.acknowledged):
                await self._news.wait()

    def answers(self) -> list[Frame]:
        return [frame for frame in self.heard if is_answer(frame)]

    def errors(self) -> list[Frame]:
        return [frame for frame in self.heard if frame["type"] == "error"]

    def seqs(self) -> list[int]:
        """Of recorded frames, as they came."""
        return [frame["seq"] for frame in self.heard if "timestamp" in frame and "seq" in frame]

    # -- the line --------------------------------------------------------------------------------------------------

    async def _stay(self) -> None:
        while True:
            with suppress(OSError, ConnectionClosed, InvalidHandshake, http.client.HTTPException, Refused):
                await self._one_line()
            self._line = None
            await asyncio.sleep(COME_BACK_SECONDS)

    async def _one_line(self) -> None:
        started = await asyncio.to_thread(start_session, self.web(), self.resume_token, self.key)
        self.session_id, self.resume_token = started["session_id"], started["resume_token"]
        async with _connect(self.web(), started["ws_path"]) as line:
            self.lines += 1
            await line.send(json.dumps({"type": "auth", "token": started["token"], "after_seq": self._last_seq()}))
            async for text in line:
                await self._hear(line, json.loads(text))

    async def _hear(self, line: ClientConnection, frame: Frame) -> None:
        if frame["type"] == "ready":
            self._line = line
            await self._send_again()
        if frame["type"] == "ack" and self.unacknowledged.pop(frame["client_id"], None):
            self.acknowledged[frame["client_id"]] = frame["seq"]
            self.waited[frame["client_id"]] += time.monotonic()
        if frame["type"] == "error" and "retry_after" in frame:
            self._begin(self._send_later(frame["retry_after"]))
        async with self._news:
            self.heard.append(frame)
            self._news.notify_all()

    async def _send_later(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        await self._send_again()

    async def _send_again(self) -> None:
        for client_id, text in list(self.unacknowledged.items()):
            await self.send(type="message", text=text, client_id=client_id)

    def _last_seq(self) -> int:
        return max(self.seqs(), default=0)

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _connect(web: Web, path: str) -> connect:
    if web.port:
        return connect(f"ws://127.0.0.1:{web.port}{path}", close_timeout=1)
    return unix_connect(str(web.path), f"ws://localhost{path}", close_timeout=1)


class Refused(Exception):
    """The platform gave no session."""


def ask_for_session(web: Web, resume_token: str = "", key: str = KEY) -> Answer:
    body = json.dumps({"resume_token": resume_token}).encode()
    return web.ask("POST", f"/api/v1/widget/{key}/sessions", body=body, headers={"Content-Type": "application/json"})


def start_session(web: Web, resume_token: str = "", key: str = KEY) -> dict[str, Any]:
    answer = ask_for_session(web, resume_token, key)
    if answer.status != 201:
        raise Refused(answer.status)
    return dict(json.loads(answer.body))


def is_answer(frame: Frame) -> bool:
    return bool(frame["type"] == "message" and frame["sender"] == "bot")
