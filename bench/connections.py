"""Measure connection health checks: a thousand that are due at once, on two worker processes.

Goals: within 60 seconds, none of them twice. Each is a guarded call that runs the skill's `health_check.py`
in a sandbox with its credentials; the script answers at once, so what is measured is ours.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.report import Row
from bench.stage import servers

MANY, WORKERS, MOST_SECONDS = 1000, 2, 60.0
_NAME = "bench-link"
_FRONT = """---
name: bench-link
description: Use when a benchmark wants to know what looking after an account costs.
type: connection
auth_strategy: secure_input
---

# Bench link
"""
_HEALTH = "import json\nprint(json.dumps({'healthy': True, 'latency_ms': 1}))\n"
_SETUP = "import json\nprint(json.dumps({'type': 'completion', 'connection_payload': {}}))\n"
_WORK = """
import os, time, django
django.setup()
from django.conf import settings
settings.BUNDLED_SKILLS_CHECKED = False  # as the process that installed the skill
from apps.bus import worker
from apps.bus.workers import Worker
while True:
    worker.drain(Worker.UPKEEP, consumer=str(os.getpid()))
    time.sleep(0.02)
"""


def run() -> list[Row]:
    with servers() as env, tempfile.TemporaryDirectory() as root:
        tenant = _connected(Path(root))
        began = time.perf_counter()
        _work_off(env, tenant)
        seconds = time.perf_counter() - began
        checked, twice = _counted(tenant)
    kept = checked == MANY and not twice and seconds <= MOST_SECONDS
    return [
        Row(
            f"{MANY:,} connections checked by {WORKERS} workers ({twice} twice)",
            seconds,
            "s",
            "allowed",
            MOST_SECONDS,
            seconds / MOST_SECONDS,
            f"≤ {MOST_SECONDS:g} s",
            kept,
        )
    ]


def _connected(root: Path) -> Any:
    from apps.connections.enums import ConnectionStatus
    from apps.connections.models import Connection
    from apps.connections.services.status import schedule_check
    from apps.skills import queries
    from apps.skills.services import install_version
    from apps.tenants import vault
    from apps.tenants.models import Tenant
    from kernel.clock import now
    from kernel.tenancy import tenant_scope
    from tests.factories.skills import bundle

    folder = root / _NAME
    (folder / "scripts").mkdir(parents=True)
    (folder / "SKILL.md").write_text(_FRONT)
    (folder / "scripts" / "health_check.py").write_text(_HEALTH)
    (folder / "scripts" / "setup.py").write_text(_SETUP)
    tenant = Tenant.objects.create(slug="bench-connections", name="Bench")
    bundle(folder)
    with tenant_scope(tenant):
        install_version(folder)
        (skill,) = queries.pin([_NAME])
        vault.ensure_key()
        rows = Connection.objects.bulk_create(
            Connection(
                name=f"Account {number}",
                skill=skill,
                skill_name=_NAME,
                auth_strategy="secure_input",
                status=ConnectionStatus.ACTIVE,
                next_check_at=now(),
            )
            for number in range(MANY)
        )
        for row in rows:
            schedule_check(row)
    return tenant


def _work_off(env: dict[str, str], tenant: Any) -> None:
    """Two processes of their own, as two workers would; the time of their start is theirs too."""
    argv = [sys.executable, "-c", _WORK]
    started = [subprocess.Popen(argv, env={**os.environ, **env}) for _ in range(WORKERS)]
    ends = time.perf_counter() + 600
    try:
        while _counted(tenant)[0] < MANY:
            if any(process.poll() is not None for process in started) or time.perf_counter() > ends:
                raise RuntimeError("a worker failed")
            time.sleep(0.2)
    finally:
        for process in started:
            process.kill()
            process.wait()


def _counted(tenant: Any) -> tuple[int, int]:
    """How many were checked, and how many calls there were beyond one for each."""
    from apps.connections.models import Connection
    from apps.guard.models import ToolCall
    from kernel.tenancy import tenant_scope

    with tenant_scope(tenant):
        checked = Connection.objects.filter(last_health_check__isnull=False).count()
        return checked, ToolCall.objects.filter(state="executed").count() - checked
