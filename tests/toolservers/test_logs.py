"""Neither an outside tool server's words nor a search query gets into our logs, at the levels of a run (`LOGGING`)."""

from __future__ import annotations

import asyncio
import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from apps.toolservers.client import list_tools
from apps.toolservers.enums import Transport
from apps.toolservers.schemas import Address, ServerFailed
from tests.toolservers.conftest import SECRET

CANARY = "canary-0c77-said-by-a-server"
NOTE = json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": CANARY}})
EVENTS = {
    "a notification that does not hold": f"event: message\ndata: {NOTE}\n\n",
    "an event that nobody knows": f"event: {CANARY}\ndata: {{}}\n\n",
    "an event that cannot be read": f"event: message\ndata: {CANARY}\n\n",
    "a method that nobody knows": f'event: message\ndata: {{"jsonrpc":"2.0","method":"{CANARY}"}}\n\n',
}


class Hostile(http.server.BaseHTTPRequestHandler):
    """Answers every request with its words: in the status line, a header and the events."""

    says = ""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self.send_response(200, CANARY)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Mcp-Session-Id", CANARY)
        self.end_headers()
        self.wfile.write(self.says.encode())

    do_GET = do_DELETE = do_POST

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def saying(text: str) -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), type("Saying", (Hostile,), {"says": text})) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize("says", EVENTS.values(), ids=EVENTS)
def test_words_of_a_server_are_in_no_log_line(says: str, settings: Any, caplog: pytest.LogCaptureFixture) -> None:
    with saying(says) as place:
        settings.EGRESS_PRIVATE = [place]
        with pytest.raises(ServerFailed):
            asyncio.run(list_tools(Address(Transport.HTTP, url=f"http://{place}/mcp", secret=SECRET)))
    assert CANARY not in caplog.text
    assert SECRET not in caplog.text
