"""A calendar server on this machine (Radicale) with one calendar, and a name and password before it."""

from __future__ import annotations

import base64
import tempfile
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, make_server

from radicale.app import Application
from radicale.config import load

USERNAME, PASSWORD = "desk", "calendar-password"
_MAKE = b"""<mkcol xmlns="DAV:" xmlns:c="urn:ietf:params:xml:ns:caldav"><set><prop>
<resourcetype><collection/><c:calendar/></resourcetype><displayname>Pickups</displayname></prop></set></mkcol>"""


@dataclass
class CalendarServer:
    place: str

    @property
    def settings(self) -> dict[str, str]:
        return {"url": f"http://{self.place}/{USERNAME}/pickups/", "username": USERNAME}

    def ask(self, method: str, path: str = "", body: bytes | None = None) -> bytes:
        """As the person whose calendar it is."""
        known = base64.b64encode(f"{USERNAME}:{PASSWORD}".encode()).decode()
        url = self.settings["url"] + path
        request = urllib.request.Request(url, body, {"Authorization": f"Basic {known}"}, method=method)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return bytes(answer.read())


class _Quiet(WSGIRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def serving() -> Iterator[CalendarServer]:
    with tempfile.TemporaryDirectory() as folder:
        users = Path(folder) / "users"
        users.write_text(f"{USERNAME}:{PASSWORD}\n")
        config = load()
        auth = {"type": "htpasswd", "htpasswd_filename": str(users), "htpasswd_encryption": "plain"}
        config.update({"auth": auth, "storage": {"filesystem_folder": f"{folder}/calendars"}}, "test")
        with make_server("127.0.0.1", 0, Application(config), handler_class=_Quiet) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            calendar = CalendarServer(f"127.0.0.1:{server.server_port}")
            calendar.ask("MKCOL", body=_MAKE)
            yield calendar
            server.shutdown()
