"""Readers that were taken over: what they may try in the sandbox, and what they may say."""

from __future__ import annotations

import json
import os
import socket
from typing import Any

DOCUMENT = {"title": "t", "text": "x", "url": "", "part": ""}


def say(data: bytes, **_: str) -> tuple[Any, bytes]:
    return json.loads(data), b""


def say_much(data: bytes, **_: str) -> tuple[Any, bytes]:
    return {"documents": [DOCUMENT | {"text": "x" * 3_000_000}] * 20, "problems": []}, b""


def say_deep(data: bytes, **_: str) -> tuple[Any, bytes]:
    with open("/sandbox/out/answer.json", "w") as out:
        out.write("[" * 1_000_000)
    os._exit(0)


def break_off(data: bytes, **_: str) -> tuple[Any, bytes]:
    os._exit(3)


def look_around(data: bytes, **_: str) -> tuple[Any, bytes]:
    """What it can reach, as a document."""
    found = [name for name in ("/etc/passwd", "/etc/hostname", "/boot", "/srv", "/var") if os.path.exists(name)]
    found += [name for name in os.environ if "SILAS" in name or "DATABASE" in name or "SECRET" in name]
    for place in (("127.0.0.1", 5432), ("169.254.169.254", 80), ("1.1.1.1", 53)):
        try:
            socket.create_connection(place, timeout=1).close()
            found.append(str(place))
        except OSError:
            continue
    return {"documents": [DOCUMENT | {"text": f"reached: {found}"}], "problems": []}, b""
