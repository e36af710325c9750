"""Measure an idle installation: processor time and memory of `make run`, with very many tenants, and
how soon work begins among them.

The whole of `manage.py up` runs with servers of its own, is left alone until it is calm, and its processes' own
counters are read before and after a while: PostgreSQL and Valkey included, the supervisor too.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from uuid import uuid4

import psutil
from django.db import connections

from bench.bus import wake_ups
from bench.report import Row
from bench.stage import stage
from bench.worker import worker
from silas_platform.up.processes import marked, running
from silas_platform.up.programs import MARK

TENANTS = int(os.environ.get("BENCH_TENANTS", "10000"))
CALM_SECONDS, CALM_DEADLINE_SECONDS, SECONDS = 30.0, 900.0, 60.0
READY_SECONDS, MOST_WAKE = 300, 1.5
_ROOT = Path(__file__).resolve().parents[1]
_TENANTS = """
import os
from uuid import uuid4
from apps.tenants.services import create_tenant
for number in range(int(os.environ["BENCH_TENANTS"])):
    slug = f"idle-{uuid4().hex[:10]}"
    create_tenant(slug, name=slug, owner_email=f"{slug}@example.com")
"""

_DUE = """
from apps.bus import queries
from apps.bus.enums import Queue
print("due:", len(queries.due_scopes(list(Queue))))
"""


def run() -> list[Row]:
    return [*_idle(), _wake_ups()]


def _wake_ups() -> Row:
    """A message to its handler's first line, in a worker as in production: beside one other tenant, then beside many
    whose standing work is due tomorrow."""
    with stage() as ready, worker(ready, "bench.worker") as started:
        from apps.tenants.models import Tenant

        few, _ = wake_ups(ready, started)
        for _ in range(TENANTS):
            Tenant.objects.create(slug=f"idle-{uuid4().hex[:10]}", name="Idle")
        with connections["owner"].cursor() as cursor:
            cursor.execute("UPDATE bus_queuemessage SET available_at = now() + interval '1 day' WHERE state = 'queued'")
            cursor.execute("VACUUM ANALYZE bus_queuemessage, tenants_tenant")
        many, _ = wake_ups(ready, started)
    name = f"enqueue to the handler's first line, {TENANTS:,} idle tenants, p95"
    return Row(name, many, "ms", "before they were made", few, many / few, f"≤ {MOST_WAKE:g}", many / few <= MOST_WAKE)


def _idle() -> list[Row]:
    few, memory = _measured(2)
    many, _ = _measured(TENANTS)
    return [
        Row("processor time, all processes, 2 tenants", few, "% of a core", "", 0, 0, "< 1.5 %", few < 1.5),
        Row(f"processor time, all processes, {TENANTS:,} tenants", many, "% of a core", "", 0, 0, "< 5 %", many < 5),
        Row("memory of all processes (PSS), idle", memory, "MB", "", 0, 0, "≤ 600", memory <= 600),
    ]


def _measured(tenants: int) -> tuple[float, float]:
    """(percent of one core, proportional set size in MB) of an idle run with so many tenants."""
    with tempfile.TemporaryDirectory(prefix="silas-idle-") as var:
        local = {"SILAS_VAR": var, "PORT": str(_free_port()), "DJANGO_SETTINGS_MODULE": "silas_platform.settings.local"}
        env = {**os.environ, **local}
        process = subprocess.Popen(
            [sys.executable, "manage.py", "up", "--no-demo"], cwd=_ROOT, env=env, stdout=subprocess.PIPE, text=True
        )
        try:
            _await_ready(process)
            _manage({**env, "BENCH_TENANTS": str(tenants)}, "-c", _TENANTS)
            _await_calm(env)
            before = _processor_seconds(var, process.pid)
            time.sleep(SECONDS)
            return (_processor_seconds(var, process.pid) - before) / SECONDS * 100, _memory(var, process.pid)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def _await_ready(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("ready "):
            return
    raise RuntimeError("the run did not come up")


def _manage(env: dict[str, str], *arguments: str) -> str:
    command = [sys.executable, "manage.py", "shell", *arguments]
    return subprocess.run(
        command, cwd=_ROOT, env=env, check=True, timeout=3600, stdout=subprocess.PIPE, text=True
    ).stdout


def _await_calm(env: dict[str, str]) -> None:
    """Wait until the work that making the tenants left behind is done: no message is due in the next minute."""
    deadline = time.monotonic() + CALM_DEADLINE_SECONDS
    while time.monotonic() < deadline:
        time.sleep(CALM_SECONDS)
        if _manage(env, "-c", _DUE).strip().endswith("due: 0"):
            return
    raise RuntimeError("the tenants' first work did not end")


def _processes(var: str, supervisor: int) -> list[psutil.Process]:
    ours = {process.pid for process in marked(MARK, str(Path(var).resolve()))} | {supervisor}
    found = []
    for process in running():
        try:
            if process.pid in ours or process.cwd().startswith(var) or var in " ".join(process.cmdline()):
                found.append(process)
        except psutil.Error:
            continue
    return found


def _processor_seconds(var: str, supervisor: int) -> float:
    return sum(sum(process.cpu_times()[:2]) for process in _processes(var, supervisor))


def _memory(var: str, supervisor: int) -> float:
    return sum(process.memory_full_info().pss for process in _processes(var, supervisor)) / 1_000_000
