"""With which code does our end of a socket close? With the one that was asked for (contract interfaces, close codes).

Daphne's library refuses to say some codes for an application (1009, 1013) and drops a line that broke the protocol
without a word, so that a browser could not tell why. Here every close is said. Installed by `asgi`.
"""

from __future__ import annotations

from daphne.ws_protocol import WebSocketFactory, WebSocketProtocol


class Line(WebSocketProtocol):  # type: ignore[misc]  # Daphne has no types
    """One socket as Daphne serves it; the names are Autobahn's and Daphne's."""

    failByDrop = False

    def serverClose(self, code: int | None = None) -> None:
        self.sendCloseFrame(code=1000 if code is None else code)


def install() -> None:
    WebSocketFactory.protocol = Line
