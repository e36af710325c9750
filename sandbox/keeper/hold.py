"""Create the namespaces of one run and hold them open with its process 1, which only this process can end.

`open_hold` returns when the file system is built and this process has entered it. This process stays outside of the new
process namespace, so nothing inside sees or signals it. When process 1 is killed, the kernel kills all the others.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import signal
from dataclasses import dataclass

from . import root
from .system import (
    CLONE_NEWCGROUP,
    CLONE_NEWIPC,
    CLONE_NEWNET,
    CLONE_NEWNS,
    CLONE_NEWPID,
    CLONE_NEWUSER,
    CLONE_NEWUTS,
    PR_SET_DUMPABLE,
    PR_SET_PDEATHSIG,
    enter,
    prctl,
    unshare,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from .config import Config

_READY = b"\n"
_BWRAP_INFO, _BWRAP_FILTER = 3, 4


@dataclass(frozen=True)
class Hold:
    """`first`: a pidfd of process 1. `line`: the pipe it waits on. `own`: how many processes inside are ours."""

    first: int
    line: int
    own: int

    def kill(self, command: int | None) -> None:
        """Kill all processes inside and wait. `command`: our own child in there, if not collected yet."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.first, signal.SIGKILL)
        if command is not None:
            os.waitpid(command, 0)
        poller = select.poll()
        poller.register(self.first, select.POLLIN)
        poller.poll()


def open_hold(config: Config, base: str) -> Hold:
    """Raises OSError, with the tool's message, if this machine does not allow it."""
    namespaces = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP | CLONE_NEWNET
    namespaces |= CLONE_NEWUSER if config["user_namespace"] else 0
    if config["bwrap"]:
        return _bubblewrap(config, namespaces)
    return _own_namespaces(config, namespaces, base)


# --- bubblewrap: its reaper is process 1, `cat` is process 2 and says when all is built ---


def _bubblewrap(config: Config, namespaces: int) -> Hold:
    line_read, line = os.pipe()
    status_read, status = os.pipe()
    info_read, info = os.pipe()
    rules = os.memfd_create("rules")
    os.write(rules, config["filter"])
    os.lseek(rules, 0, os.SEEK_SET)
    flags = ["--info-fd", str(_BWRAP_INFO), "--seccomp", str(_BWRAP_FILTER)]
    argv = ["bwrap", *flags, *(config["bwrap"] or ()), "--", "cat"]
    # `cat` hands this on once bwrap has built everything and started it; then it waits for more, which never comes.
    os.write(line, _READY)
    placed = ((line_read, 0), (status, 1), (status, 2), (info, _BWRAP_INFO), (rules, _BWRAP_FILTER))
    # First out of the way of the numbers they shall have.
    moved = [(_beyond(descriptor), number) for descriptor, number in placed]
    actions = [(os.POSIX_SPAWN_DUP2, descriptor, number) for descriptor, number in moved]
    os.posix_spawnp("bwrap", argv, {"PATH": config["path"]}, file_actions=actions)
    for descriptor in (*(descriptor for descriptor, _ in moved), line_read, status, info, rules):
        os.close(descriptor)
    _await_ready(status_read)
    described = json.loads(os.read(info_read, 4096))
    os.close(info_read)
    # A pidfd, since a number could belong to another process by the time of the kill.
    first = os.pidfd_open(described["child-pid"])
    enter(first, namespaces)
    return Hold(first, line, own=2)


def _beyond(descriptor: int) -> int:
    return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 64)


def _await_ready(status: int) -> None:
    """Wait for the line feed that says all is built; anything else is the reason for failure."""
    words = os.read(status, 4096)
    if words != _READY:
        while more := os.read(status, 4096):
            words += more
        raise OSError(words.decode("utf-8", "replace").strip() or "ended at once")
    os.close(status)


# --- without it: namespaces of our own, process 1 a copy of this process that only waits ---


def _own_namespaces(config: Config, namespaces: int, base: str) -> Hold:
    unshare(namespaces, as_user=0)
    line_read, line = os.pipe()
    status_read, status = os.pipe()
    first = os.fork()
    if first == 0:
        os.close(line)
        _be_process_one(config, base, line_read, status)
    os.close(line_read)
    os.close(status)
    _await_ready(status_read)
    return Hold(os.pidfd_open(first), line, own=1)


def _be_process_one(config: Config, base: str, line: int, status: int) -> NoReturn:
    """Build the file system, report, then only wait. Reaps all children; dies with the overseer."""
    try:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        prctl(PR_SET_DUMPABLE, 0)
        # Process 1 inherits every orphan; the kernel then collects them itself.
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        assert config["root"] is not None
        root.build(config["root"], base)
        for descriptor in range(256):
            if descriptor not in (line, status):
                _close(descriptor)
        os.write(status, _READY)
        os.close(status)
        os.read(line, 1)  # until the overseer is gone
    except BaseException as error:  # noqa: BLE001 - said aloud; then nothing runs
        os.write(status, f"{type(error).__name__}: {error}".encode())
    finally:
        os._exit(1)


def _close(descriptor: int) -> None:
    with contextlib.suppress(OSError):
        os.close(descriptor)
