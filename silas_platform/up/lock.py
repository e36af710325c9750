"""Lock that allows one `manage.py up` for each `var`. The system releases it when the process dies."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from silas_platform.up.environment import StartRefused
from silas_platform.up.lines import Screen


@contextmanager
def only_run(var: Path, screen: Screen, *, wait_seconds: float = 10.0) -> Iterator[None]:
    """Hold `var/up.lock`. Waits `wait_seconds` for a run that is ending; raises `StartRefused` beside another."""
    var.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (var / "up.lock").open("a+") as lock:
        if not _acquire(lock):
            screen.say(f"another run ({_holder(lock)}) uses {var}; waiting for it to end")
            deadline = time.monotonic() + wait_seconds
            while not _acquire(lock):
                if time.monotonic() > deadline:
                    raise StartRefused(f"another run ({_holder(lock)}) uses {var}; stop it first, or set SILAS_VAR")
                time.sleep(0.1)
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        yield


def is_running(var: Path) -> bool:
    """Return whether a run holds `var` now."""
    try:
        with (var / "up.lock").open("a+") as lock:
            return not _acquire(lock)
    except FileNotFoundError:
        return False


def _acquire(lock: IO[str]) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _holder(lock: IO[str]) -> str:
    lock.seek(0)
    return f"process {lock.read() or 'unknown'}"
