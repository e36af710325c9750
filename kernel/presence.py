"""Count the live sockets of this process, for /health. The consumers keep the count."""

from __future__ import annotations

_open = 0


def presence_opened() -> None:
    global _open
    _open += 1


def presence_closed() -> None:
    global _open
    _open -= 1


def open_presences() -> int:
    return _open
