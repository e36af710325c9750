"""Oversee one run from its configuration to its report, in a process outside of the sandbox.

Always holds: everything inside is dead before a file is read and before the report is sent.
"""

from __future__ import annotations

import contextlib
import os
import signal

from . import command, doors
from .collect import collect
from .hold import open_hold
from .report import broken, packed, write_all
from .watch import Watch, judge

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from .config import Config

_FIRST = -20


def oversee(config: Config, *, stdout: int, stderr: int, report: int, control: int, extras: dict[str, int]) -> None:
    """Run it and send the report; our process id is sent first."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    # First of all: who waits outside can kill us by it at any time later.
    write_all(report, packed(str(os.getpid()).encode()))
    try:
        chunks = _run(config, stdout, stderr, control, extras)
    except Exception as error:  # noqa: BLE001 - the report says what it was
        chunks = broken(error)
    write_all(report, packed(*chunks))


def _run(config: Config, stdout: int, stderr: int, control: int, extras: dict[str, int]) -> list[bytes]:
    with _before_everybody():
        reason, code, out = _watched(config, stdout, stderr, control, extras)
    problem, artifacts = ("", []) if reason else collect(out, config)
    return [(reason or problem).encode(), b"" if code is None else str(code).encode(), *artifacts]


def _watched(
    config: Config, stdout: int, stderr: int, control: int, extras: dict[str, int]
) -> tuple[str, int | None, int]:
    """Run until no process is left inside: (reason, exit code, descriptor of out/)."""
    hold = open_hold(config, command.BASE)
    started: int | None = None
    reason, code = "", None
    try:
        out = command.stage(config)
        if "door" in extras:
            doors.hand_out(extras.pop("door"))
        started = command.start(config, stdout, stderr, extras)
        for descriptor in (stdout, stderr, *extras.values()):  # from here on they belong to the command alone
            os.close(descriptor)
        reason, ended = Watch(config, hold.own).until_it_ends(started, control)
        if ended is not None:
            _, status, usage = os.wait4(started, 0)
            started = None
            reason, code = judge(status, usage, config)
    finally:
        hold.kill(started)
    return reason, code, out


@contextlib.contextmanager
def _before_everybody() -> Iterator[None]:
    """Raise our priority while the run is on.

    If the machine's root is the user of a run, the kernel counts none of its processes (RLIMIT_NPROC exempts that
    user): the watch is the limit then, and a fork bomb must not starve it. Set before the namespaces take the right
    away. Other users may not, and need not, raise it.
    """
    before = os.getpriority(os.PRIO_PROCESS, 0)
    with contextlib.suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, _FIRST)
    try:
        yield
    finally:
        os.setpriority(os.PRIO_PROCESS, 0, before)
