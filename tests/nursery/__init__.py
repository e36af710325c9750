"""Python programs are forked from a process that has imported their libraries, instead of started.

A start of the platform is some four seconds of imports, and the tests start hundreds of programs. `start` and `run`
take what `subprocess.Popen` and `subprocess.run` take, for an `argv` that begins with `sys.executable`; what they
start is a child of ours with its own environment, files and exit code, and ends when we do. Two things differ from a
real start: /proc shows the nursery's command line and environment, and Python's only switches are `-W` and `-u`.

The first nursery has imported libraries only and is for any program. From it others are forked, one for each
environment with the tests' own settings, which have set Django up in theirs.
"""

from __future__ import annotations

import atexit
import ctypes
import inspect
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).resolve().parents[2]
MESSAGE_BYTES = 128 * 1024
_TESTS_SETTINGS = "silas_platform.settings.test"
# What no setting reads: programs that differ in these only come out of the same nursery.
_NO_SETTINGS = frozenset({"PYTHONUNBUFFERED", "PYTHONWARNINGS", "PYTEST_CURRENT_TEST"})
_KEPT = 6
_PR_SET_CHILD_SUBREAPER = 36
_EXECUTE: Any = getattr(subprocess.Popen, "_execute_child")  # noqa: B009 (typeshed does not know it)
_one_at_a_time = threading.Lock()


class Started(subprocess.Popen[Any]):
    """A `Popen` whose process was forked by a nursery. `network`: without, it has not even loopback."""

    def __init__(self, argv: Sequence[str | Path], *, network: bool = True, **options: Any) -> None:
        self._network = network
        super().__init__(argv, **options)

    def _execute_child(self, *given: Any) -> None:
        wanted = inspect.signature(_EXECUTE).bind(self, *given).arguments
        program, *argv = map(str, wanted["args"])
        if program != sys.executable:
            raise ValueError(f"a nursery has Python programs only, not {program}")
        env = dict(os.environ if wanted["env"] is None else wanted["env"])
        told = {"argv": argv, "env": env, "cwd": str(wanted["cwd"] or Path.cwd())}
        told |= {"leads": wanted["start_new_session"], "network": self._network}
        files = [wanted[name] for name in ("p2cread", "c2pwrite", "errwrite")]
        self.pid = _nursery_of(env).fork(told, [own if file == -1 else file for own, file in enumerate(files)])
        self._child_created = True
        pipes = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
        getattr(self, "_close_pipe_fds")(*(wanted[name] for name in pipes))  # noqa: B009 (typeshed does not know it)


def start(argv: Sequence[str | Path], **options: Any) -> Started:
    """As `subprocess.Popen`."""
    return Started(argv, **options)


def spawn(
    argv: Sequence[str | Path],
    *,
    env: Mapping[str, str] | None = None,
    output: IO[bytes] | int = subprocess.DEVNULL,
    network: bool = True,
) -> Started:
    """As `silas_platform.up.processes.spawn`, in the root folder."""
    files: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": output, "stderr": subprocess.STDOUT}
    return start(argv, env=env, cwd=ROOT, start_new_session=True, network=network, **files)


def run(
    argv: Sequence[str | Path],
    *,
    timeout: float | None = None,
    check: bool = False,
    capture_output: bool = False,
    **options: Any,
) -> subprocess.CompletedProcess[Any]:
    """As `subprocess.run`."""
    if capture_output:
        options |= {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with start(argv, **options) as process:
        try:
            said, complained = process.communicate(timeout=timeout)
        except BaseException:  # an interrupt as well: the program must not outlive the test
            process.kill()
            raise
    done = subprocess.CompletedProcess(process.args, process.returncode, said, complained)
    if check:
        done.check_returncode()
    return done


class _Nursery:
    """Our end of the line to one."""

    def __init__(self, line: socket.socket) -> None:
        self.line = line

    def fork(self, told: Mapping[str, Any], files: Sequence[int]) -> int:
        """Return the number of the new process, which is a child of ours."""
        with _one_at_a_time:
            # Its parent ends at once: it falls to the nearest ancestor that takes such children.
            _take_orphans(True)
            try:
                return int(self._ask({**told, "parent": os.getpid()}, files))
            finally:
                _take_orphans(False)

    def nursery(self, env: Mapping[str, str]) -> _Nursery:
        ours, its = _line()
        with its, _one_at_a_time:
            self._ask({"env": dict(env)}, [its.fileno()])
        return _Nursery(ours)

    def _ask(self, told: Mapping[str, Any], files: Sequence[int]) -> bytes:
        with suppress(BrokenPipeError):
            socket.send_fds(self.line, [json.dumps(told).encode()], list(files))
        if not (answer := self.line.recv(64)):
            raise RuntimeError("the nursery has ended; why stands in the errors of this process")
        return answer


@cache
def _first() -> _Nursery:
    ours, its = _line()
    with its:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.nursery", str(its.fileno())],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[its.fileno()],
            start_new_session=True,
        )

    def end() -> None:
        for line in (ours, *(each.line for each in _with_settings.values())):
            line.close()
        process.wait()

    atexit.register(end)
    return _Nursery(ours)


_with_settings: dict[frozenset[tuple[str, str]], _Nursery] = {}


def _nursery_of(env: Mapping[str, str]) -> _Nursery:
    if env.get("DJANGO_SETTINGS_MODULE") != _TESTS_SETTINGS:
        return _first()
    settings = frozenset((name, value) for name, value in env.items() if name not in _NO_SETTINGS)
    _with_settings[settings] = _with_settings.pop(settings, None) or _first().nursery(env)
    while len(_with_settings) > _KEPT:  # the one that was not asked for longest
        _with_settings.pop(next(iter(_with_settings))).line.close()
    return _with_settings[settings]


def _line() -> tuple[socket.socket, socket.socket]:
    ends = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for end in ends:
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * MESSAGE_BYTES)
    return ends


def _take_orphans(taken: bool) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, int(taken), 0, 0, 0)
