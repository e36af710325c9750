"""A website for tests: pages on this machine, as friendly or hostile as a test wants them."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Served:
    body: bytes = b""
    kind: str = "text/html; charset=utf-8"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    # So many times the body, without ever saying how long it is.
    times: int = 1


@dataclass
class Website:
    """`asked` is every path that was looked at, in order."""

    origin: str
    pages: dict[str, Served] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def page(self, path: str, html: str, **how: Any) -> None:
        self.pages[path] = Served(html.encode(), **how)


@contextmanager
def serving() -> Iterator[Website]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            site.asked.append(self.path)
            served = site.pages.get(self.path, Served(b"Nothing here", status=404))
            self.send_response(served.status)
            for name, value in {"Content-Type": served.kind, **served.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            try:
                for _ in range(served.times):
                    self.wfile.write(served.body)
            except OSError:
                """Whoever asked has heard enough."""

        def log_message(self, *_: Any) -> None:
            """Quiet: the test says what it saw."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    site = Website(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
