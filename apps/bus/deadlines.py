"""Deadlines of a worker's child processes, in memory that their parent reads.

The memory is shared: mapped when the parent loads this module, before it forks. A child that hangs in C, is stopped or
ignores signals cannot keep its parent from reading, and the parent needs neither the database nor the broker. A process
that is no pool's child writes nothing, because no parent would end it.
"""

from __future__ import annotations

import mmap
import os
import struct
import time
from collections.abc import Iterator

from billiard import current_process
from django.conf import settings

# Limit for leaving the event loop: a thread that still runs by then never ends.
LEAVING_SECONDS = 15.0
_SLOTS = 256
_SLOT = struct.Struct("=qd")
_FREE = (0, 0.0)


class Deadlines:
    """One slot per child: its process id, and the time (monotonic, the same for all processes of a machine) after
    which its parent kills it."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, _SLOTS * _SLOT.size)

    def write(self, slot: int, pid: int, deadline: float) -> None:
        _SLOT.pack_into(self._memory, slot % _SLOTS * _SLOT.size, pid, deadline)

    def clear(self, slot: int) -> None:
        self.write(slot, *_FREE)

    def overdue(self) -> Iterator[tuple[int, int]]:
        """Yield (slot, process id) of every child whose deadline has passed."""
        now = time.monotonic()
        for slot, (pid, deadline) in enumerate(_SLOT.iter_unpack(self._memory[:])):
            if pid and 0 < deadline <= now:
                yield slot, pid


SHARED = Deadlines()


def set_deadline(seconds: float | None = None) -> None:
    """Let the parent kill this process unless it is done in `seconds`, by default the setting `DELIVERY_SECONDS`."""
    if (slot := getattr(current_process(), "index", None)) is not None:
        SHARED.write(slot, os.getpid(), time.monotonic() + (settings.DELIVERY_SECONDS if seconds is None else seconds))


def clear_deadline() -> None:
    """Remove the deadline: this process is idle."""
    if (slot := getattr(current_process(), "index", None)) is not None:
        SHARED.clear(slot)
