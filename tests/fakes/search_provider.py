"""A provider of web searches on this machine, in the words of Brave, Tavily and SearXNG; it lies where a test wants."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

PAGES = [
    ("Opening hours", "https://shop.example.org/hours", "We are open from <strong>nine</strong> to five."),
    ("Holidays", "https://news.example.com/holidays", "Closed on Sundays."),
]


@dataclass
class SearchFake:
    """`asked` is what it was asked: path, headers, query or body. `status`, `body` and `headers` are what it answers
    instead of `pages`; `held` keeps it silent until it is set."""

    pages: list[tuple[str, Any, str]] = field(default_factory=lambda: list(PAGES))
    status: int = 200
    body: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)
    held: threading.Event | None = None
    url: str = ""
    asked: list[dict[str, Any]] = field(default_factory=list)

    @property
    def place(self) -> str:
        return self.url.removeprefix("http://")

    def answer(self, path: str) -> bytes:
        if self.body is not None:
            return self.body
        if path == "/res/v1/web/search":
            found = [{"title": title, "url": url, "description": text} for title, url, text in self.pages]
            return json.dumps({"type": "search", "web": {"type": "search", "results": found}}).encode()
        told = [{"title": title, "url": url, "content": text, "score": 0.9} for title, url, text in self.pages]
        return json.dumps({"query": "", "results": told}).encode()


@contextmanager
def searching(fake: SearchFake) -> Iterator[SearchFake]:
    """The provider in a thread, until the test is over."""

    class Provider(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            self._said(parts.path, {name: values[0] for name, values in parse_qs(parts.query).items()})

        def do_POST(self) -> None:
            self._said(self.path, json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

        def _said(self, path: str, wanted: dict[str, Any]) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            fake.asked.append({"path": path, "headers": headers, "wanted": wanted})
            if fake.held is not None:
                fake.held.wait(30)
            body = fake.answer(path)
            try:
                self.send_response(fake.status)
                for name, value in {"Content-Length": str(len(body)), **fake.headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)
            except OSError:
                self.close_connection = True

        def log_message(self, *_: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Provider)
    server.daemon_threads = True
    fake.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield fake
    finally:
        if fake.held is not None:
            fake.held.set()
        server.shutdown()
        server.server_close()
        thread.join(10)
