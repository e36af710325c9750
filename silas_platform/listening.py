"""Does this worker still hear its broker? A consumer that comes back after its broker died can be connected and deaf:
the descriptor of the old line is closed late and takes the new one, of the same number, out of the event loop.

A thread looks now and then. Where messages waited at several looks in a row and this worker neither took one nor had
anything to do, it ends itself, and whoever keeps it starts another: rows are the truth, so nothing is lost but time.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

_log = logging.getLogger(__name__)
LOOK_SECONDS, DEAF_LOOKS = 5.0, 4


@dataclass
class Ear:
    """`waiting` counts the messages that nobody has taken, and may raise while the broker is away; `busy` says whether
    this worker has anything to do."""

    waiting: Callable[[], int]
    busy: Callable[[], bool]
    in_vain: int = 0

    def hear(self) -> None:
        self.in_vain = 0

    def is_deaf(self) -> bool:
        """One look. Looks are counted, not seconds: a process that was stopped for a while has not been deaf."""
        try:
            idle_beside_work = not self.busy() and self.waiting() > 0
        except Exception:  # noqa: BLE001 (a broker that is away tells nothing about us)
            idle_beside_work = False
        self.in_vain = self.in_vain + 1 if idle_beside_work else 0
        return self.in_vain >= DEAF_LOOKS


def listen(app: Any) -> Ear:
    """Watch over this worker from now on. Called once its consumer is ready."""
    from celery.worker import state

    ear = Ear(partial(waiting_at, app), lambda: bool(state.reserved_requests or state.active_requests))
    threading.Thread(target=_watch, args=(ear,), name="listening", daemon=True).start()
    return ear


def waiting_at(app: Any) -> int:
    """How many messages the broker holds that nobody has taken."""
    with app.connection_for_read() as line:
        return int(line.default_channel.client.llen(app.conf.task_default_queue))


def _watch(ear: Ear) -> None:
    while not ear.is_deaf():
        time.sleep(LOOK_SECONDS)
    _log.critical("worker_deaf: messages wait and none arrives; this worker ends to be started again")
    os.kill(os.getpid(), signal.SIGTERM)
