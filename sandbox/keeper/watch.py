"""Watch a running sandbox for the limits that no rlimit covers: sums over all its processes."""

from __future__ import annotations

import os
import select
import signal
import time

from .command import BASE

TYPE_CHECKING = False
if TYPE_CHECKING:
    import resource

    from .config import Config

_TICK_SECONDS = 0.02
_LASTING_TICK_SECONDS = 0.25
_MANY_INODES = 19_900
_CLOCK_TICKS = os.sysconf("SC_CLK_TCK")
_KIB = 1024


class Watch:
    """`own`: how many processes of the sandbox, from process 1 on, are ours and are not counted."""

    def __init__(self, config: Config, own: int) -> None:
        self.memory, self.processes = config["memory_bytes"], config["processes"]
        self.cpu_seconds = config["cpu_seconds"]
        self.own = own
        self.slowest = _LASTING_TICK_SECONDS if config["lasting"] else _TICK_SECONDS
        self.deadline = time.monotonic() + config["timeout_seconds"]

    def until_it_ends(self, command: int, control: int) -> tuple[str, int | None]:
        """(reason, wait status): one of the two says how the run ended. Closing `control` stops it."""
        poller = select.poll()
        ended = os.pidfd_open(command)
        poller.register(ended, select.POLLIN)
        poller.register(control, select.POLLIN | select.POLLHUP)
        tick = _TICK_SECONDS / 4  # the first look comes soon, the next ones a little later each
        while True:
            ready = {descriptor for descriptor, _ in poller.poll(tick * 1000)}
            if ended in ready:
                os.close(ended)
                return "", command
            if control in ready:
                return "stopped", None
            tick = min(tick + _TICK_SECONDS / 4, self.slowest)
            if reason := self.verdict():
                return reason, None

    def verdict(self) -> str:
        """The limit that is reached, or ""."""
        if time.monotonic() >= self.deadline:
            return "timeout"
        entries = [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]
        if sum(entry > self.own for entry in entries) >= self.processes:
            return "process_limit"  # before any of them is looked at: a bomb grows while we read
        memory, seconds = self.usage(entries)
        if memory > self.memory:
            return "memory_limit"
        if seconds > self.cpu_seconds:
            return "cpu_limit"
        space = os.statvfs(BASE)
        return "disk_limit" if space.f_files - space.f_ffree > _MANY_INODES else ""

    def usage(self, entries: list[int]) -> tuple[int, float]:
        """Bytes, and processor seconds, including those of dead processes, which their parents inherit."""
        memory, seconds = 0, 0.0
        for entry in entries:
            try:
                seconds += _seconds(entry)
                if entry > self.own:
                    memory += _bytes(entry)
            # It ended between the listing and the look.
            except (OSError, ValueError, IndexError):
                continue
        return memory, seconds


def _seconds(process: int) -> float:
    # The name stands in brackets and may hold any character, a bracket included: what follows the last one is safe.
    fields = _read(f"/proc/{process}/stat").rpartition(b")")[2].split()
    return sum(map(int, fields[11:15])) / _CLOCK_TICKS


def _bytes(process: int) -> int:
    """Private and shared memory of a process; shared memory is in no file and has to be counted here."""
    lines = _read(f"/proc/{process}/status").split(b"\n")
    return sum(int(line.split()[1]) * _KIB for line in lines if line.startswith((b"RssAnon:", b"RssShmem:")))


def _read(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return os.read(descriptor, 8192)
    finally:
        os.close(descriptor)


def judge(status: int, usage: resource.struct_rusage, config: Config) -> tuple[str, int]:
    """(reason, exit code) of a command that ended by itself."""
    code = os.waitstatus_to_exitcode(status)
    space = os.statvfs(BASE)
    spent = usage.ru_utime + usage.ru_stime
    if code == -signal.SIGXCPU or (code == -signal.SIGKILL and spent >= config["cpu_seconds"] - 0.1):
        return "cpu_limit", code
    # A full disk that the command did not mind is no failure.
    if code != 0 and (space.f_bavail == 0 or space.f_ffree == 0 or code == -signal.SIGXFSZ):
        return "disk_limit", code
    return "", code
