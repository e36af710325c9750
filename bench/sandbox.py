"""Measure a sandbox run: from the call to the result of `/bin/true`, beside bubblewrap alone with the same mounts.

Both take turns, so that a busy moment of the machine meets both.
"""

from __future__ import annotations

import statistics
import subprocess
import time
from collections.abc import Callable

from bench.report import Row
from sandbox import SandboxSpec
from sandbox.backends import Backend, Bubblewrap, candidates, make_plan
from sandbox.runner import probe_backend, run_on

ROUNDS = 200
BOUND = 3.0
COMMAND = "/bin/true"


def run() -> list[Row]:
    working = [candidate for candidate in candidates() if not probe_backend(candidate)]
    bare = _bare(next(candidate for candidate in working if isinstance(candidate, Bubblewrap)))
    return [_row(candidate, bare) for candidate in working]


def _row(backend: Backend, bare: Callable[[], None]) -> Row:
    spec = SandboxSpec([COMMAND])
    value, baseline = _in_turn(lambda: run_on(backend, spec), bare)
    ratio = value / baseline
    name = f"sandbox ({backend.name}{', no root' if backend.user_namespace else ''}) {COMMAND}"
    return Row(name, value, "ms", "bare bwrap", baseline, ratio, f"≤ {BOUND:g}", ratio <= BOUND)


def _bare(backend: Bubblewrap) -> Callable[[], object]:
    """The same namespaces, the same parts of the host, the same sized tmpfs; nothing of ours."""
    plan = make_plan(mounts={}, disk_bytes=64 << 20)
    argv = ["bwrap", *backend.arguments(plan), "--", COMMAND]
    return lambda: subprocess.run(argv, check=True, stdin=subprocess.DEVNULL, capture_output=True)


def _in_turn(first: Callable[[], object], second: Callable[[], object]) -> tuple[float, float]:
    """Medians in milliseconds."""
    first(), second()
    both = [(_timed(first), _timed(second)) for _ in range(ROUNDS)]
    return statistics.median(one for one, _ in both), statistics.median(other for _, other in both)


def _timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1000
