"""Until when each child process of a worker may be busy, written where its parent reads it.

The memory is shared: made when the parent loads this module, before it forks. A child that hangs in C, is stopped or
ignores signals cannot keep its parent from reading, and the parent asks neither the database nor the broker. In a
process that is no pool's child nothing is written, because nobody would end it.
"""

from __future__ import annotations

import mmap
import os
import struct
import time
from collections.abc import Iterator

from billiard import current_process
from django.conf import settings

# For leaving the event loop behind: what still runs in a thread by then never ends.
LEAVING_SECONDS = 15.0
_SLOTS = 256
_SLOT = struct.Struct("=qd")
_FREE = (0, 0.0)


class Deadlines:
    """One slot a child: its process id, and the moment (monotonic, the same for all processes of a machine) after which
    its parent ends it."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, _SLOTS * _SLOT.size)

    def write(self, place: int, pid: int, moment: float) -> None:
        _SLOT.pack_into(self._memory, place % _SLOTS * _SLOT.size, pid, moment)

    def clear(self, place: int) -> None:
        self.write(place, *_FREE)

    def overdue(self) -> Iterator[tuple[int, int]]:
        """(place, process id) of whoever should have been done by now."""
        now = time.monotonic()
        for place, (pid, moment) in enumerate(_SLOT.iter_unpack(self._memory[:])):
            if pid and 0 < moment <= now:
                yield place, pid


SHARED = Deadlines()


def within(seconds: float | None = None) -> None:
    """What this process does now is over by then, or the process is ended. `DELIVERY_SECONDS` of the settings for what
    names no time of its own."""
    if (place := getattr(current_process(), "index", None)) is not None:
        SHARED.write(place, os.getpid(), time.monotonic() + (settings.DELIVERY_SECONDS if seconds is None else seconds))


def clear() -> None:
    """This process has nothing to do."""
    if (place := getattr(current_process(), "index", None)) is not None:
        SHARED.clear(place)
