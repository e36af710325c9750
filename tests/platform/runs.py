"""A real `manage.py up` on a `var` of its own, as a person would start it, for the tests of starting and stopping."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import psutil

from silas_platform.up.environment import ROOT
from silas_platform.up.processes import is_alive, marked, running
from silas_platform.up.programs import MARK
from tests.ports import free_port

_OURS = (
    "DATABASE_URL",
    "DATABASE_OWNER_URL",
    "DATABASE_WORK_URL",
    "REDIS_URL",
    "DJANGO_SETTINGS_MODULE",
    "SILAS_VAR",
    "MAKELEVEL",
)


class Run:
    """`manage.py up` in the background; `lines` is everything it has said so far."""

    def __init__(
        self, var: Path, *options: str, command: Sequence[str] = ("up",), under: Sequence[str] = (), **env: str
    ) -> None:
        self.var = var
        self.port = free_port()
        told = {name: value for name, value in os.environ.items() if name not in _OURS}
        told |= {"SILAS_VAR": str(var), "PORT": str(self.port), **env}
        argv = [sys.executable, "manage.py", *command, *options]
        if under:
            argv = [*under, f"{shlex.join(argv)}; true"]
        self.process = subprocess.Popen(
            argv, cwd=ROOT, env=told, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as said:
            for line in said:
                self.lines.append(line.rstrip("\n"))

    def wait_for(self, start: str, *, seconds: float = 240) -> str:
        """The first line that begins with `start`."""
        found = eventually(lambda: next((line for line in self.lines if line.startswith(start)), ""), seconds=seconds)
        assert found, f"never said {start!r}:\n" + "\n".join(self.lines[-40:])
        return found

    def children(self, word: str) -> list[psutil.Process]:
        """The run's own processes with `word` among their arguments or as a module's last name, the trusted worker's
        under that word alone; one that dies while it is asked is none."""
        found = []
        for child in marked(MARK, str(self.var)):
            with suppress(psutil.NoSuchProcess):
                words = [argument.rpartition(".")[2] for argument in child.cmdline()]
                found += [child] if word in words and (word == "trusted" or "trusted" not in words) else []
        return found

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send `number` (to a process that has ended it goes nowhere) and return the exit code."""
        self.process.send_signal(number)
        return self.wait()

    def whole(self) -> str:
        """All that a run which ends by itself has said."""
        self.wait()
        return "\n".join(self.lines)

    def wait(self, *, seconds: float = 120) -> int:
        code = self.process.wait(seconds)
        self._reader.join(10)
        return code


def remains(var: Path) -> list[str]:
    """Command lines of whatever still runs for `var`: our programs and the servers working inside it."""
    found = []
    for process in running():
        with suppress(psutil.Error, OSError):
            ours = process.environ().get(MARK) == str(var) or process.cwd().startswith(str(var))
            if ours and is_alive(process):
                found.append(" ".join(process.cmdline()))
    return found


T = TypeVar("T")


def eventually(ask: Callable[[], T], *, seconds: float = 60) -> T:
    """What `ask` returns as soon as it is true, or at the end."""
    give_up = time.monotonic() + seconds
    while not (found := ask()) and time.monotonic() < give_up:
        time.sleep(0.05)
    return found


def python(code: str) -> Sequence[str]:
    return [sys.executable, "-c", code]
