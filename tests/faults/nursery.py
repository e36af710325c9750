"""One process that has imported the platform, and becomes by fork each process that is started in its place.

Chaos starts a hundred, and nine tenths of a start are imports; everything else that a program does when it starts, its
child does. A child has a session, an end and a log of its own, dies with the nursery, and stays a zombie until it is
waited for, so that its number is nobody else's meanwhile. `python -m tests.faults.nursery SOCKET` is the nursery.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import os
import runpy
import signal
import socket
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from silas_platform.up import processes

ROOT = Path(__file__).resolve().parents[2]
# What web, worker and beat come to import anyway. Not Daphne: its event loop must be made after the fork.
_IMPORTED = (
    "silas_platform.urls",
    "silas_platform.background",
    "silas_platform.worker_watchdog",
    "apps.console.routing",
    "apps.safety.mcp_server",
    "apps.sessions.routing",
    "celery.bin.celery",
    "celery.apps.beat",
    "celery.concurrency.prefork",
)
START_SECONDS = 90.0
_PR_SET_PDEATHSIG = 1


class Forked:
    """As much of a `Popen` as a house asks of one."""

    def __init__(self, nursery: Nursery, pid: int) -> None:
        self._nursery, self.pid = nursery, pid
        self.returncode: int | None = None

    def wait(self) -> int:
        if self.returncode is None:
            self.returncode = self._nursery.ask(wait=self.pid)
        return self.returncode or 0

    def poll(self) -> int | None:
        if self.returncode is None:
            self.returncode = self._nursery.ask(poll=self.pid)
        return self.returncode


class Nursery:
    """Start it from the main thread: it dies with it, and all its children do."""

    def __init__(self, path: Path, *, under: list[str], env: Mapping[str, str]) -> None:
        argv = [*under, sys.executable, "-m", "tests.faults.nursery", str(path)]
        with socket.socket(socket.AF_UNIX) as door, path.with_suffix(".log").open("wb") as log:
            door.bind(str(path))
            door.listen()
            door.settimeout(START_SECONDS)
            self._process = processes.spawn(argv, env=env, cwd=ROOT, output=log)
            with door.accept()[0] as line:
                self._line = line.makefile("rw")

    def fork(self, module: list[str], log: Path) -> Forked:
        return Forked(self, self.ask(module=module, log=str(log)))

    def ask(self, **wanted: Any) -> Any:
        self._line.write(json.dumps(wanted) + "\n")
        self._line.flush()
        return json.loads(self._line.readline())

    def stop(self) -> None:
        self._line.close()
        processes.end_group(self._process)


def main(path: str) -> None:
    import django

    django.setup()
    for name in _IMPORTED:
        importlib.import_module(name)
    gc.freeze()  # nothing of this is garbage, and whoever looks through it copies it
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(path)
        told = line.makefile("rw")
        for wanted in map(json.loads, told):
            told.write(f"{json.dumps(_answer(**wanted))}\n")
            told.flush()


def _answer(*, wait: int = 0, poll: int = 0, **begun: Any) -> int | None:
    if wait or poll:
        pid, status = os.waitpid(wait or poll, os.WNOHANG if poll else 0)
        return os.waitstatus_to_exitcode(status) if pid else None
    return _forked(**begun)


def _forked(*, module: list[str], log: str) -> int:
    begun, end = os.pipe()
    pid = os.fork()
    if not pid:
        os.setsid()
        _become(module, log)
    os.close(end)
    os.read(begun, 1)  # closed by the child when it leads its own group
    os.close(begun)
    return pid


def _become(module: list[str], log: str) -> None:
    """Never returns: the program is the rest of this process's life."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    output, nothing = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(source, target)
    os.closerange(3, 1024)
    sys.argv = list(module)
    status = 1
    try:
        runpy.run_module(module[0], run_name="__main__", alter_sys=True)
        status = 0
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else 1
        if isinstance(ended.code, str):
            sys.stderr.write(f"{ended.code}\n")
    finally:
        with suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    main(sys.argv[1])
