"""Measure how soon due triggers start, and how soon a session is halted.

A thousand triggers of one company that come due at once, carried out by two workers side by side: each has to begin
exactly once. Then a halt while a call of the session is under way, beside a transaction of one UPDATE.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

from bench.report import Row
from bench.stage import servers

DUE, TASKS, SECONDS = 1_000, 100, 60.0
HALTS = 40
_PAIR = """
import django, os, sys; django.setup()
from apps.bus import worker, queries
from apps.bus.enums import Queue
from apps.bus.workers import Worker
print("ready", flush=True); sys.stdin.readline()
while queries.due_scopes([Queue.UPKEEP]):
    worker.drain(Worker.UPKEEP, consumer=f"bench-{os.getpid()}")
"""
_FILL = """
    INSERT INTO autonomy_trigger (id, tenant_id, task_id, kind, spec, topic, next_at, enabled, disabled_reason)
    SELECT gen_random_uuid(), %s, (%s::uuid[])[1 + n %% %s], 'interval', '{"seconds": 86400}', '',
           now() - interval '1 second', true, ''
    FROM generate_series(0, %s - 1) n
"""
_SCHEDULE = """
    INSERT INTO bus_queuemessage (id, tenant_id, queue, kind, message_id, trace_id, scope_id, content, sender, taint,
                                  urgency, error_code, origin_agent, state, attempts, consumer, fence, reason,
                                  available_at)
    SELECT gen_random_uuid(), tenant_id, 'upkeep', 'trigger_due', 'trigger_due:' || id, 't', id::text, '', 'runtime',
           'auth', 'informational', '', '', 'queued', 0, '', 0, '', next_at FROM autonomy_trigger WHERE tenant_id = %s
"""


def run() -> list[Row]:
    with servers({"SILAS_AUTONOMY_SESSIONS": "100"}) as env:
        return [_dispatch(env), _halt()]


def _dispatch(env: dict[str, str]) -> Row:
    house = _house(DUE)
    pairs = [_pair(env) for _ in range(2)]
    began = time.perf_counter()
    for pair in pairs:
        assert pair.stdin is not None
        pair.stdin.write("go\n")
        pair.stdin.flush()
    assert [pair.wait(timeout=600) for pair in pairs] == [0, 0]
    took = time.perf_counter() - began
    times = [session.trigger_id for session in house.sessions()]
    once = len(times) == len(set(times)) == DUE
    name = f"{DUE:,} due triggers begun by two workers, each once"
    return Row(name, took, "s", "allowed", SECONDS, took / SECONDS, "≤ 1, once", once and took <= SECONDS)


def _pair(env: dict[str, str]) -> subprocess.Popen[str]:
    pair = subprocess.Popen(
        [sys.executable, "-c", _PAIR],
        env={**os.environ, **env},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert pair.stdout is not None and pair.stdout.readline() == "ready\n"
    return pair


def _halt() -> Row:
    """Each of another session, whose call is admitted and not settled."""
    from apps.autonomy import services
    from apps.autonomy.services import admission, session_run
    from apps.bus.deliveries import Delivery
    from apps.bus.enums import Queue
    from apps.guard.enums import Intent
    from apps.guard.schemas import Call
    from apps.guard.services.admission import admit_call
    from tests.factories.bus import lease_any

    house = _house(0)
    house.do(services.put_settings, actor="command:bench", max_concurrent=100)
    sessions = []
    for number in range(HALTS):
        session = house.run_now(house.task(name=f"Halt {number}"))
        house.do(admission.admit_waiting)
        lease = house.do(lease_any, Queue.EXECUTOR, consumer=f"bench-{number}")
        job = house.do(session_run.begin_session, Delivery(house.tenant.pk, lease, "bench"))
        call = Call(tool="knowledge_search", args={"query": "x"}, access=frozenset({"knowledge_search"}))
        house.do(admit_call, job.run, Intent.RETRIEVE_CHUNKS, call)
        sessions.append(session)
    left: Iterator[Any] = iter(sessions)
    mine, theirs = _in_turn(
        lambda: house.do(services.halt_session, next(left).pk, user=house.owner),
        lambda: house.change(sessions[0], heartbeat_at=None),
        rounds=HALTS,
    )
    name = "halt answered while a call is under way"
    return Row(name, mine, "ms", "a bare UPDATE", theirs, mine / theirs, "< 1000 ms", mine < 1000)


def _in_turn(ours: Callable[[], Any], bare: Callable[[], Any], rounds: int) -> tuple[float, float]:
    """Medians in milliseconds, each measured beside the other."""
    measured = [(_timed(ours), _timed(bare)) for _ in range(rounds)]
    mine, theirs = (statistics.median(times[1:]) * 1000 for times in zip(*measured, strict=True))
    return mine, theirs


def _timed(work: Callable[[], Any]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _house(triggers: int) -> Any:
    """A company with so many triggers that are due, of a hundred tasks."""
    from django.db import connection

    from kernel.tenancy import tenant_scope
    from tests.factories.autonomy import make_house
    from tests.factories.tenants import make_tenant

    house = make_house(make_tenant(slug=f"bench-{uuid4().hex[:8]}"))
    tasks = [house.task(name=f"Task {number}").pk for number in range(TASKS)] if triggers else []
    if triggers:
        with tenant_scope(house.tenant), connection.cursor() as cursor:
            cursor.execute(_FILL, [house.tenant.pk, tasks, TASKS, triggers])
            cursor.execute(_SCHEDULE, [house.tenant.pk])
    return house
