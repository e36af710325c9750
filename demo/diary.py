"""A calendar to try connections with, where the house has none: `python demo/diary.py`. Keeps all in memory.

As much CalDAV as the skill `caldav` speaks, for one calendar with one name and password, on this machine only. It is no
part of the platform and no product: stopping it empties the calendar.
"""

import base64
import hmac
import re
import secrets
import sys
from collections.abc import Callable, Iterable
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, make_server

PORT = 5232
NAME = "desk"
HOME = f"/{NAME}/appointments/"
LARGEST = 100_000
_FILE = re.compile(re.escape(HOME) + r"([\w-]{1,80}\.ics)")
_RANGE = re.compile(rb'time-range start="(\d{8}T\d{6})Z" end="(\d{8}T\d{6})Z"')
_START = re.compile(r"^DTSTART[^:]*:(\d{8}T\d{6})", re.MULTILINE)
_STATUS = {200: "OK", 201: "Created", 204: "No Content", 207: "Multi-Status", 401: "Unauthorized"}
_STATUS |= {404: "Not Found", 405: "Method Not Allowed", 412: "Precondition Failed", 413: "Too Large"}
_CALENDAR = (
    "<d:response><d:href>{href}</d:href><d:propstat><d:prop><d:displayname>Appointments</d:displayname>"
    "<d:resourcetype><d:collection/><c:calendar/></d:resourcetype></d:prop></d:propstat></d:response>"
)
_EVENT = (
    "<d:response><d:href>{href}</d:href><d:propstat><d:prop><c:calendar-data>{text}</c:calendar-data></d:prop>"
    "</d:propstat></d:response>"
)
Answer = tuple[int, str]


class Calendar:
    """A WSGI application. `events`: iCalendar texts by file name."""

    def __init__(self, password: str) -> None:
        self.known = "Basic " + base64.b64encode(f"{NAME}:{password}".encode()).decode()
        self.events: dict[str, str] = {}

    def __call__(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        status, text = self._answer(environ)
        body = text.encode()
        kind = "application/xml" if status == 207 else "text/calendar"
        headers = [("Content-Type", f"{kind}; charset=utf-8"), ("Content-Length", str(len(body)))]
        start(f"{status} {_STATUS[status]}", headers)
        return [body]

    def _answer(self, environ: dict[str, Any]) -> Answer:
        size = int(environ.get("CONTENT_LENGTH") or 0)
        if not hmac.compare_digest(environ.get("HTTP_AUTHORIZATION", "").encode(), self.known.encode()):
            return 401, ""
        if size > LARGEST:
            return 413, ""
        body, path, method = environ["wsgi.input"].read(size), environ["PATH_INFO"], environ["REQUEST_METHOD"]
        if file := _FILE.fullmatch(path):
            return self._event(method, file[1], body, once=environ.get("HTTP_IF_NONE_MATCH") == "*")
        if method == "PROPFIND" and HOME.startswith(path):
            return 207, _several([_CALENDAR.format(href=HOME)])
        if method == "REPORT" and path == HOME:
            return 207, _several(self._within(body))
        return (405, "") if path == HOME else (404, "")

    def _event(self, method: str, name: str, body: bytes, *, once: bool) -> Answer:
        if method == "PUT":
            if once and name in self.events:
                return 412, ""
            self.events[name] = body.decode("utf-8", "replace")
            return 201, ""
        if name not in self.events:
            return 404, ""
        if method == "DELETE":
            del self.events[name]
            return 204, ""
        return (200, self.events[name]) if method == "GET" else (405, "")

    def _within(self, body: bytes) -> list[str]:
        """The events that begin within what is asked for."""
        found = _RANGE.search(body)
        first, last = (found[1].decode(), found[2].decode()) if found else ("", "9")
        begins = {name: _START.search(text) for name, text in self.events.items()}
        right = [name for name, start in begins.items() if start and first <= start[1] < last]
        return [_EVENT.format(href=HOME + name, text=_escaped(self.events[name])) for name in sorted(right)]


def _several(responses: Iterable[str]) -> str:
    spaces = 'xmlns:d="DAV:" xmlns:c="urn:ietf:params:xml:ns:caldav"'
    return f'<?xml version="1.0"?><d:multistatus {spaces}>{"".join(responses)}</d:multistatus>'


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


class Quiet(WSGIRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


def main() -> None:
    password = secrets.token_urlsafe(12)
    port = int(sys.argv[1]) if len(sys.argv) > 1 else PORT
    with make_server("127.0.0.1", port, Calendar(password), handler_class=Quiet) as server:
        place = f"127.0.0.1:{server.server_port}"
        lines = (f"url       http://{place}{HOME}", f"username  {NAME}", f"password  {password}")
        sys.stdout.write("\n".join((*lines, f"start the platform with  SILAS_EGRESS_PRIVATE={place}", "")))
        sys.stdout.flush()
        server.serve_forever()


if __name__ == "__main__":
    main()
