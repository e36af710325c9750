"""Encode the report of a run as length-prefixed chunks: the overseer's process id, the reason, the exit code, and name
and content of each file that was left.
"""

from __future__ import annotations

import os
import struct


def packed(*chunks: bytes) -> bytes:
    return b"".join(struct.pack("!Q", len(chunk)) + chunk for chunk in chunks)


def broken(error: Exception) -> list[bytes]:
    """The chunks that report a run that could not be made."""
    return [b"sandbox_failed", b"", b"detail", f"{type(error).__name__}: {error}".encode()]


def write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
