"""Supervise programs: restart those that end, and stop all of them.

A program that ends by itself is restarted with growing delays while it keeps failing; the rest of its process group is
ended first. A stop signals all programs at once, waits, then kills, and ends the servers that they need last. One
thread, one loop: signals only set a flag. `manage.py up` owns the only instance. What the programs print appears on one
screen in whole lines, each prefixed with the program's name.
"""

import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TextIO

from silas_platform.up.processes import end_group

_COLOURS = (36, 32, 35, 33, 34)
_WIDTH = 8
# How often the programs are looked at while they start and stop, and once all is up.
TICK_SECONDS, CALM_TICK_SECONDS = 0.1, 0.5
GRACE_SECONDS = 30.0
_MIN_PAUSE, _MAX_PAUSE, _STABLE_SECONDS = 0.5, 30.0, 30.0


@dataclass
class Screen:
    """Writes to the terminal, in colours if it is one; `closed` once its reader is gone (`| head`, a closed window)."""

    out: TextIO = field(default_factory=lambda: sys.stdout)
    colours: dict[str, int] = field(default_factory=dict)
    closed: bool = False

    def say(self, text: str) -> None:
        """Print a line without a name, so that scripts can look for `ready …`."""
        if self.closed:
            return
        try:
            print(text, file=self.out, flush=True)
        except OSError:
            self.closed = True

    def show(self, name: str, text: str) -> None:
        prefix = f"{name:<{_WIDTH}}|"
        if self.out.isatty():
            colour = self.colours.setdefault(name, _COLOURS[len(self.colours) % len(_COLOURS)])
            prefix = f"\x1b[{colour}m{prefix}\x1b[0m"
        self.say(f"{prefix} {text}")


@dataclass
class LineBuffer:
    """Turns the pieces that a pipe delivers into whole lines; `finish` returns an unfinished one."""

    rest: bytes = b""

    def feed(self, piece: bytes) -> list[str]:
        *whole, self.rest = (self.rest + piece).split(b"\n")
        return [line.decode(errors="replace").rstrip("\r") for line in whole]

    def finish(self) -> list[str]:
        return self.feed(b"\n") if self.rest else []


@dataclass(frozen=True)
class Program:
    """`start` launches it in its own process group, `first` is the signal that asks it to end; servers end last."""

    name: str
    start: Callable[[], subprocess.Popen[bytes]]
    first: signal.Signals = signal.SIGTERM
    server: bool = False


@dataclass
class _Supervised:
    program: Program
    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    pause: float = _MIN_PAUSE
    due: float = 0.0

    @property
    def runs(self) -> bool:
        if self.process is None:
            return False
        # `end_group` alone reaps a program, and kills the rest of its process group first.
        return os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None


class Supervisor:
    def __init__(self, screen: Screen, *, grace: float = GRACE_SECONDS) -> None:
        self.screen = screen
        self.grace = grace
        self.stopping = False
        self.impatient = False
        self._kept: list[_Supervised] = []
        self._pipes = selectors.DefaultSelector()

    def ask_to_stop(self) -> None:
        """Stop gracefully; a second call kills at once. Safe in a signal handler."""
        self.impatient = self.stopping
        self.stopping = True

    def supervise(self, program: Program) -> None:
        """Start `program` now and restart it whenever it ends. Errors of the first start are raised."""
        kept = _Supervised(program)
        self._start(kept)
        self._kept.append(kept)

    def run_until(self, done: Callable[[], bool], *, tick: float = TICK_SECONDS) -> None:
        """Forward output, at once, and restart programs until `done()` or a stop."""
        while not self.stopping and not self.screen.closed and not done():
            self._tick(tick)
            for kept in self._kept:
                self._restart_if_ended(kept)

    def stop(self) -> None:
        """Stop everything: programs first, all at once, then the servers."""
        self.stopping = True
        for servers in (False, True):
            self._end([kept for kept in self._kept if kept.program.server is servers])
        while ready := self._pipes.select(0) if self._pipes.get_map() else []:
            for key, _ in ready:
                self._forward(key)

    def _tick(self, seconds: float = TICK_SECONDS) -> None:
        """Forward pending output, waiting for one tick at most."""
        for key, _ in self._pipes.select(seconds) if self._pipes.get_map() else []:
            self._forward(key)
        if not self._pipes.get_map():
            time.sleep(seconds)

    def _forward(self, key: selectors.SelectorKey) -> None:
        name, lines = key.data
        piece = os.read(key.fd, 65536)
        for line in lines.feed(piece) if piece else lines.finish():
            self.screen.show(name, line)
        if not piece:
            self._pipes.unregister(key.fileobj)
            os.close(key.fd)

    def _start(self, kept: _Supervised) -> None:
        kept.process = kept.program.start()
        kept.started = time.monotonic()
        if kept.process.stdout is not None:
            # The pipe outlives the process, whose last lines matter most.
            pipe = os.dup(kept.process.stdout.fileno())
            self._pipes.register(pipe, selectors.EVENT_READ, (kept.program.name, LineBuffer()))
            kept.process.stdout.close()

    def _restart_if_ended(self, kept: _Supervised) -> None:
        if kept.runs:
            return
        if kept.process is not None:
            self._collect(kept)
        elif time.monotonic() >= kept.due:
            try:
                self._start(kept)
            except (OSError, RuntimeError) as error:
                self._postpone(kept, f"could not start again: {error}")

    def _collect(self, kept: _Supervised) -> None:
        assert kept.process is not None
        code = end_group(kept.process)
        kept.process = None
        if time.monotonic() - kept.started > _STABLE_SECONDS:
            kept.pause = _MIN_PAUSE
        self._postpone(kept, f"ended with {code}")

    def _postpone(self, kept: _Supervised, why: str) -> None:
        self.screen.show(kept.program.name, f"{why}; starting again in {kept.pause:g} s")
        kept.due = time.monotonic() + kept.pause
        kept.pause = min(kept.pause * 2, _MAX_PAUSE)

    def _end(self, group: list[_Supervised]) -> None:
        for kept in group:
            if kept.process is not None:
                os.kill(kept.process.pid, kept.program.first)
        deadline = time.monotonic() + self.grace
        while any(kept.runs for kept in group) and time.monotonic() < deadline and not self.impatient:
            self._tick()
        for kept in group:
            if kept.process is not None:
                end_group(kept.process)
                kept.process = None
