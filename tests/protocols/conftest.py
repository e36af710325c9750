"""A running server, and an outside agent's client that reads what its runs are told."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import httpx2
import pytest
from ag_ui.core import Event
from pydantic import TypeAdapter

from apps.tenants.enums import KeyScope
from apps.tenants.services import create_api_key
from kernel.tenancy import tenant_scope
from tests.events.conftest import Web, web

__all__ = ["web"]
_EVENT: TypeAdapter[Any] = TypeAdapter(Event)
WAIT_SECONDS = 60.0


def user(text: Any, message_id: str = "") -> dict[str, Any]:
    return {"id": message_id or str(uuid4()), "role": "user", "content": text}


def text_of(events: list[Any]) -> str:
    return "".join(event.delta for event in events if event.type == "TEXT_MESSAGE_CONTENT")


def types_of(events: list[Any]) -> list[str]:
    return [str(event.type.value) for event in events]


@dataclass
class Reading:
    """One run, read in a thread."""

    events: list[Any] = field(default_factory=list)
    status: int = 0
    refusal: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.ended, self._stop, self._came = threading.Event(), threading.Event(), threading.Condition()

    def close(self) -> None:
        self._stop.set()

    def wait_for(self, kind: str) -> None:
        with self._came:
            assert self._came.wait_for(lambda: kind in types_of(self.events), WAIT_SECONDS), types_of(self.events)

    def all(self) -> list[Any]:
        assert self.ended.wait(WAIT_SECONDS), types_of(self.events)
        return self.events

    def read(self, url: str, key: str, body: dict[str, Any]) -> None:
        headers = {"Authorization": f"Bearer {key}", "Accept": "text/event-stream"}
        try:
            with httpx2.stream("POST", url, json=body, headers=headers, timeout=WAIT_SECONDS) as answer:
                self.status = answer.status_code
                if self.status != 200:
                    self.refusal = json.loads(answer.read())["error"]
                    return
                for line in answer.iter_lines():
                    if self._stop.is_set():
                        return
                    if line.startswith("data: "):
                        with self._came:
                            self.events.append(_EVENT.validate_json(line.removeprefix("data: ")))
                            self._came.notify_all()
        finally:
            self.ended.set()


@dataclass
class Agent:
    """An AG-UI client of one deployment, with an API key of its own."""

    url: str
    key: str
    actor: str
    thread: str = field(default_factory=lambda: str(uuid4()))

    def start(self, *messages: dict[str, Any], **more: Any) -> Reading:
        body = {"threadId": self.thread, "runId": str(uuid4()), "messages": list(messages), **more}
        reading = Reading()
        threading.Thread(target=reading.read, args=(self.url, self.key, body), daemon=True).start()
        return reading

    def run(self, *messages: dict[str, Any], **more: Any) -> list[Any]:
        reading = self.start(*messages, **more)
        events = reading.all()
        assert reading.status == 200, reading.refusal
        return events

    def refusal(self, *messages: dict[str, Any], **more: Any) -> tuple[int, str]:
        reading = self.start(*messages, **more)
        reading.all()
        return reading.status, str(reading.refusal.get("code", ""))


def make_agent(web: Web, deployment: Any, *scopes: KeyScope, tenant: Any = None) -> Agent:
    with tenant_scope(tenant or deployment.tenant_id):
        made = create_api_key("Agent", scopes=scopes)
    return Agent(f"{web.url}/api/v1/agents/{deployment.pk}/agui", made.key, f"api_key:{made.row.pk}")


@pytest.fixture
def agent_of(web: Web, deployment: Any) -> Agent:
    return make_agent(web, deployment, KeyScope.SESSIONS_WRITE)
