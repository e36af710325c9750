"""The web process of the browser tests, which also handles the cards about a "thing" that tests open.

A page of the console loads some forty static files, and each browser profile loads them again. What the platform has
answered for one is kept and given again, because Django and a thread for each file take more processor time than the
page itself.
"""

from importlib import import_module
from typing import Any

from silas_platform.asgi import application as platform

import_module("tests.factories.approvals")  # after the platform, which loads the rooms

# The headers on which an answer for a static file depends.
_DEPENDS_ON = frozenset({b"accept-encoding", b"if-modified-since", b"if-none-match", b"origin", b"range"})
_kept: dict[object, list[dict[str, Any]]] = {}


async def application(scope: dict[str, Any], receive: Any, send: Any) -> None:
    if scope["type"] != "http" or not scope["path"].startswith("/static/"):
        await platform(scope, receive, send)
        return
    headers = frozenset((name, value) for name, value in scope["headers"] if name in _DEPENDS_ON)
    request = (scope["method"], scope["path"], scope["query_string"], headers)
    if request in _kept:
        for event in _kept[request]:
            await send(event)
        return
    events: list[dict[str, Any]] = []

    async def send_and_note(event: dict[str, Any]) -> None:
        events.append(event)
        await send(event)

    await platform(scope, receive, send_and_note)
    # A client that went away leaves half an answer.
    if events and events[-1]["type"] == "http.response.body" and not events[-1].get("more_body"):
        _kept[request] = events


__all__ = ["application"]
