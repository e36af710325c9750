"""The other end of the widget's socket, played by a test: says what a server may say at the worst moment.

Speaks the protocol of contract interfaces (widget socket) and keeps a record, so that a widget can catch up.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

from playwright.async_api import WebSocketRoute

from apps.access import tokens


class Peer:
    def __init__(self) -> None:
        self.record: list[dict[str, Any]] = []
        self.heard: list[dict[str, Any]] = []
        self.ready: dict[str, Any] = {}
        self.answers_auth = True
        self.acknowledges = True
        self.connections = 0
        self.session_id = ""
        self._line: WebSocketRoute | None = None
        self._news = asyncio.Event()

    def connected(self, line: WebSocketRoute) -> None:
        self.connections += 1
        self._line = line
        line.on_message(self._hear)

    def send(self, frame: dict[str, Any]) -> None:
        assert self._line is not None
        self._line.send(json.dumps(frame))

    def say(self, type: str = "message", **fields: Any) -> dict[str, Any]:
        """Record a frame and send it."""
        frame = self.note(type, **fields)
        self.send(frame)
        return frame

    def note(self, type: str = "message", **fields: Any) -> dict[str, Any]:
        """Record a frame that is lost on its way."""
        frame = {"type": type, "seq": len(self.record) + 1, "timestamp": "2026-01-05T09:00:00+00:00", **fields}
        if type == "message":
            frame = {"sender": "bot", **frame}
        self.record.append(frame)
        return frame

    async def hang_up(self, code: int) -> None:
        assert self._line is not None
        await self._line.close(code=code)

    def said(self) -> list[dict[str, Any]]:
        """The visitor's `message` frames, repeats included."""
        return [frame for frame in self.heard if frame["type"] == "message"]

    async def hears(self, count: int, type: str = "message", *, within: float = 30) -> list[dict[str, Any]]:
        """Wait until the visitor's widget has sent `count` frames of a type."""
        async with asyncio.timeout(within):
            while len(found := [frame for frame in self.heard if frame["type"] == type]) < count:
                self._news.clear()
                await self._news.wait()
        return found

    def _hear(self, text: str | bytes) -> None:
        frame = json.loads(text)
        self.heard.append(frame)
        self._news.set()
        if frame["type"] == "auth" and self.answers_auth:
            self._greet(frame)
        if frame["type"] == "message" and self.acknowledges:
            self._acknowledge(frame)

    def _greet(self, frame: dict[str, Any]) -> None:
        visitor = tokens.read(frame["token"])
        assert visitor is not None
        self.session_id = str(visitor.session_id)
        whose = {"session_id": self.session_id, "access_level": "public", "owner": "bot"}
        state = {"type": "ready", "seq": len(self.record), **whose}
        self.send({**state, **self.ready})
        for missed in self.record[frame.get("after_seq", 0) :]:
            self.send(missed)

    def _acknowledge(self, frame: dict[str, Any]) -> None:
        known = next((old for old in self.record if old.get("client_id") == frame["client_id"]), None)
        mine = {"sender": "visitor", "text": frame["text"], "client_id": frame["client_id"]}
        recorded = known or self.say("message", **mine)
        self.send({"type": "ack", "client_id": frame["client_id"], "seq": recorded["seq"]})
