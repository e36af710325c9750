"""What do skills cost? A tool's call from the guard's door to its commit beside bare bubblewrap that runs the same
script with python; the checks of a folder of 50 files; the metadata of 500 skills for a turn's window.

Goals: at most 3 times, 300 ms, 5 ms and within the budget. Call and baseline take turns.
"""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

from bench.report import Row
from bench.stage import servers

CALLS, WARM, ROUNDS = 60, 5, 30
MOST, MOST_CHECK_MS, MOST_METADATA_MS = 3.0, 300.0, 5.0
_NAME, _SCRIPT = "bench-desk", "scripts/look.py"
_SOURCE = "import json\ncall = json.load(open('call.json'))\nprint(json.dumps({'say': call['tool']}))\n"
_FRONT = """---
name: bench-desk
description: Use when a benchmark wants to know what a call of a script costs.
metadata:
  tools:
    - {name: look, script: scripts/look.py, description: Look something up}
---

# Bench desk
"""


def run() -> list[Row]:
    with servers(), tempfile.TemporaryDirectory() as root:
        return [_call_row(Path(root)), _check_row(), _metadata_row()]


def _call_row(root: Path) -> Row:
    from apps.skills import queries
    from apps.skills.services import install_version
    from apps.tenants.models import Tenant
    from kernel.tenancy import tenant_scope
    from tests.factories.skills import bundle

    folder = root / _NAME
    (folder / "scripts").mkdir(parents=True)
    (folder / "SKILL.md").write_text(_FRONT)
    (folder / _SCRIPT).write_text(_SOURCE)
    tenant = Tenant.objects.create(slug="bench-skills", name="Bench")
    bundle(folder)
    with tenant_scope(tenant):
        place = queries.folder_of(install_version(folder))
        ref = queries.pin([_NAME])[0]
    bare = _bare(place, root)
    both = [(_timed(lambda: _guarded(tenant, ref)), _timed(bare)) for _ in range(CALLS + WARM)][WARM:]
    value, baseline = (statistics.median(each) for each in zip(*both, strict=True))
    ratio = value / baseline
    return Row(
        "skill script, guarded to committed", value, "ms", "bare bwrap python", baseline, ratio, "≤ 3", ratio <= MOST
    )


def _guarded(tenant: Any, ref: str) -> None:
    from apps.guard import services as guard
    from apps.guard.enums import Intent, Origin
    from apps.guard.schemas import Call, Done
    from kernel.tenancy import tenant_scope

    with tenant_scope(tenant):
        opened = guard.open_run(Origin.CHAT, uuid4(), deployment_id=None).ref
    call = Call(tool="look", access=frozenset({"look"}))
    done = asyncio.run(guard.guarded_call(opened, Intent.RUN_SKILL, call, context={"customer": "", "skills": [ref]}))
    if not isinstance(done, Done):
        raise RuntimeError(f"the call ended as {done}")


def _bare(place: Path, root: Path) -> Callable[[], object]:
    """The same script in the namespaces and the same parts of the host; nothing of ours."""
    from sandbox.backends import Bubblewrap, candidates, make_plan
    from sandbox.runner import probe_backend

    backend = next(one for one in candidates() if isinstance(one, Bubblewrap) and not probe_backend(one))
    work = root / "work"
    work.mkdir()
    (work / "call.json").write_text('{"tool": "look"}')
    plan = make_plan(mounts={}, disk_bytes=64 << 20)
    mounts = ["--ro-bind", str(place), "/sandbox/skill", "--ro-bind", str(work), "/sandbox/call"]
    script = ["python3", "-I", "-S", f"/sandbox/skill/{_SCRIPT}"]
    argv = ["bwrap", *backend.arguments(plan), *mounts, "--chdir", "/sandbox/call", "--", *script]
    return lambda: subprocess.run(argv, check=True, stdin=subprocess.DEVNULL, capture_output=True)


def _check_row() -> Row:
    from apps.skills.loader import load_files

    script = ("import json\n" + "def f(x):\n    return json.dumps({'x': x})\n" * 40).encode()
    files = {f"scripts/part_{number}.py": script for number in range(49)} | {"SKILL.md": _FRONT.encode()}
    files[_SCRIPT] = files.pop("scripts/part_0.py")

    def fresh(number: int) -> dict[str, bytes]:
        """Another byte in each file, so that nothing is remembered from the round before."""
        return {path: content + f"\n# {number}".encode() for path, content in files.items()}

    value = statistics.median(_timed(partial(load_files, fresh(number))) for number in range(ROUNDS))
    baseline = statistics.median(
        _timed(lambda: [compile(each, "x", "exec") for each in files.values() if each[:1] == b"i"])
        for _ in range(ROUNDS)
    )
    kept = value < MOST_CHECK_MS
    return Row(
        "a skill of 50 files, checked",
        value,
        "ms",
        "python compiles them",
        baseline,
        value / baseline,
        "< 300 ms",
        kept,
    )


def _metadata_row() -> Row:
    from apps.skills.roles import Metadata, within_budget

    every = [Metadata(f"skill-{number}", "Use when somebody asks for it. " * 8) for number in range(500)]
    budget = 2_000
    fresh = [[Metadata(one.name, one.description) for one in every] for _ in range(ROUNDS)]
    value = statistics.median(_timed(partial(within_budget, each, budget)) for each in fresh)
    baseline = statistics.median(
        _timed(lambda: "\n".join(f"{one.name}: {one.description}" for one in every)) for _ in range(ROUNDS)
    )
    chosen = within_budget(every, budget)
    kept = value <= MOST_METADATA_MS and sum(one.tokens for one in chosen) <= budget
    return Row(
        "metadata of 500 skills, within its budget",
        value,
        "ms",
        "written out",
        baseline,
        value / baseline,
        "≤ 5 ms",
        kept,
    )


def _timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1000
