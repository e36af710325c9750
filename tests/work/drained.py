"""Carry out queued work as a worker does, in a process with a worker's database role."""

from __future__ import annotations

import atexit
import gc
import json
import os
import signal
import subprocess
import sys
import traceback
from functools import cache
from typing import IO, Any
from uuid import UUID

import django

SECONDS = 120


def drain_as_a_worker(tenant: Any, *queues: str) -> None:
    """In a separate process with only a worker's rights (silas_platform.worker_rights)."""
    asked, told = _lines()
    asked.write(json.dumps({"tenant": str(tenant.pk), "queues": queues, "env": _environment()}) + "\n")
    asked.flush()
    assert told.readline() == "0\n"


def _environment() -> dict[str, str]:
    env = {**os.environ, "DATABASE_URL": os.environ["DATABASE_WORK_URL"], "PYTHONWARNINGS": "ignore"}
    env.pop("SILAS_SIGNING_KEY", None)
    return env


@cache
def _lines() -> tuple[IO[str], IO[str]]:
    """Lines to and from that process, which ends with this one."""
    argv = [sys.executable, "-m", "tests.work.drained"]
    process = subprocess.Popen(argv, env=_environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin
    assert process.stdout
    atexit.register(process.communicate)
    return process.stdin, process.stdout


def main() -> None:
    django.setup()
    from tests.factories.work import Hands

    gc.freeze()
    for wanted in map(json.loads, sys.stdin):
        worker = os.fork()
        if not worker:
            _work(Hands(UUID(wanted["tenant"])), wanted["queues"], wanted["env"])
        print(os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1]), flush=True)


def _work(hands: Any, queues: list[str], env: dict[str, str]) -> None:
    """Never returns: the process only works."""
    signal.alarm(SECONDS)
    os.dup2(2, 1)  # the other's line is not for what this one prints
    os.environ.clear()
    os.environ.update(env)
    try:
        hands.work(*queues)
    except BaseException:  # noqa: BLE001 (whatever it was, nobody goes on in the parent's place)
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


if __name__ == "__main__":
    main()
