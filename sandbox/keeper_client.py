"""Start and talk to the keeper of this process. There is one keeper a process, started when it is first needed.

It gets an empty environment but for PATH, no descriptor of ours, and the directory of its own modules. Thread-safe; a
forked copy of this process starts a keeper of its own. The keeper ends with this process.
"""

import atexit
import os
import socket
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path

from sandbox.backends import PATH, PYTHON
from sandbox.spec import SandboxUnavailable

_HOME = str(Path(__file__).resolve().parent)
_SERVE = f"import sys; sys.path.insert(0, {_HOME!r}); from keeper.serve import main; main()"


class Keeper:
    """The running keeper process and our end of its socket."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self.process = subprocess.Popen(
                # Isolated: no variable, user site or current directory decides what the keeper imports.
                [PYTHON, "-I", "-S", "-B", "-c", _SERVE],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={"PATH": os.environ.get("PATH", PATH)},
                cwd="/",
                start_new_session=True,
            )
        self.socket = ours
        self._asking = threading.Lock()

    def ask(self, descriptors: Sequence[int]) -> None:
        with self._asking:
            socket.send_fds(self.socket, [b"run"], descriptors)

    def end(self) -> None:
        """Kill the keeper with its idle fork; runs in progress end by themselves."""
        self.process.kill()
        self.process.wait()
        with self._asking:  # a descriptor that is being written to must not be reused
            self.socket.close()


_lock = threading.Lock()
# By process: a forked copy has inherited its parent's keeper, and leaves it alone.
_keepers: dict[int, Keeper] = {}


def request_run(descriptors: Sequence[int]) -> Keeper:
    """Request a run with these descriptors: configuration, output, error output, report, control.

    Returns the keeper that was asked; a dead one is replaced once.
    """
    try:
        return _send(descriptors)
    except OSError:
        pass
    try:
        return _send(descriptors)
    except OSError as error:
        raise SandboxUnavailable(f"the keeper of sandboxes does not start: {error.strerror}") from error


def replace_keeper(keeper: Keeper) -> None:
    """Drop a keeper that does not serve requests; the next run uses a new one."""
    with _lock:
        if _keepers.get(os.getpid()) is keeper:
            del _keepers[os.getpid()]
    keeper.end()


def own_keeper() -> Keeper:
    """The keeper of this process, started at the first request."""
    with _lock:
        return _keepers.get(os.getpid()) or _keepers.setdefault(os.getpid(), Keeper())


def _send(descriptors: Sequence[int]) -> Keeper:
    keeper = own_keeper()
    try:
        keeper.ask(descriptors)
    except OSError:
        replace_keeper(keeper)
        raise
    return keeper


def _end_own() -> None:
    if keeper := _keepers.pop(os.getpid(), None):
        keeper.end()


def _reset_after_fork() -> None:
    """Replace the lock: the thread that held it does not exist in the forked process."""
    global _lock
    _lock = threading.Lock()


atexit.register(_end_own)
os.register_at_fork(after_in_child=_reset_after_fork)
