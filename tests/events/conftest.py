"""A web process that a test may kill, and a reader of its streams."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests import nursery
from tests.ports import free_port

WAIT_SECONDS = 30.0
START_SECONDS = 120.0


@dataclass
class Web:
    """Daphne in a process of its own, on one port however often it is started."""

    port: int
    log: Path
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        bind = ["--bind", "127.0.0.1", "--port", str(self.port)]
        with self.log.open("ab") as log:
            self.process = nursery.start(
                [sys.executable, "-m", "daphne", *bind, "tests.e2e.web:application"],
                stdout=log,
                stderr=log,
                env={**os.environ, "SILAS_EVENT_STREAMS": "4"},
            )
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until:
            with suppress(OSError), urllib.request.urlopen(f"{self.url}/health/ready", timeout=5) as answer:
                if answer.status == 200:
                    return
            time.sleep(0.1)
        self.kill()  # one that started late would answer the messages of other tests
        raise AssertionError(self.log.read_text()[-3000:])

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()


@dataclass
class Reader:
    """Reads one stream in a thread: each event as (id, type, content), in order."""

    url: str
    key: str
    params: dict[str, str] = field(default_factory=dict)
    last_id: str = ""
    status: int = 0
    headers: Any = None
    refusal: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.events: queue.Queue[tuple[int, str, dict[str, Any]]] = queue.Queue()
        self.began, self.ended, self._stop = threading.Event(), threading.Event(), threading.Event()
        threading.Thread(target=self._read, daemon=True).start()
        assert self.began.wait(WAIT_SECONDS)

    def next(self, seconds: float = WAIT_SECONDS) -> tuple[int, str, dict[str, Any]]:
        return self.events.get(timeout=seconds)

    def close(self) -> None:
        self._stop.set()

    def _read(self) -> None:
        headers = {"Authorization": f"Bearer {self.key}", "Accept": "text/event-stream"}
        headers |= {"Last-Event-ID": self.last_id} if self.last_id else {}
        try:
            with httpx2.stream(
                "GET", f"{self.url}/api/v1/events", params=self.params, headers=headers, timeout=WAIT_SECONDS
            ) as answer:
                self.status, self.headers = answer.status_code, answer.headers
                if self.status != 200:
                    self.refusal = json.loads(answer.read())["error"]
                    return
                lines: dict[str, str] = {}
                for line in answer.iter_lines():
                    if self._stop.is_set():
                        return
                    if line:
                        name, _, value = line.partition(": ")
                        lines[name] = value
                        continue
                    self.last_id = lines.get("id", self.last_id)
                    if "data" in lines:
                        self.events.put((int(lines["id"]), lines["event"], json.loads(lines["data"])))
                    lines = {}
                    self.began.set()
        except httpx2.HTTPError:
            pass
        finally:
            self.began.set()
            self.ended.set()


@pytest.fixture(scope="module")
def web(migrated: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    web = Web(free_port(), tmp_path_factory.mktemp("web") / "log")
    web.start()
    yield web
    web.kill()
