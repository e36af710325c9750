"""How soon does what is due begin, and does a crowd of triggers that are not due cost anything?

Ten thousand triggers that come due at once, by two processes that tick side by side: each has to begin exactly once.
Then a hundred thousand triggers of which ten are due, beside the bare query of the same index in a transaction of its
own. Then a halt while a call of the session is under way, beside a transaction of one UPDATE.
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

CROWD, DUE, TASKS, SECONDS, BOUND = 100_000, 10_000, 100, 60.0, 3.0
ROUNDS, HALTS = 60, 40
_PAIR = """
import django, sys, uuid; django.setup()
from apps.autonomy.tasks import look_at
print("ready", flush=True); sys.stdin.readline()
look_at(uuid.UUID(sys.argv[1]))
"""
_FILL = """
    INSERT INTO autonomy_trigger (id, tenant_id, task_id, kind, spec, topic, next_at, enabled, disabled_reason)
    SELECT gen_random_uuid(), %s, (%s::uuid[])[1 + n %% %s], 'interval', '{"seconds": 86400}', '',
           now() + make_interval(secs => CASE WHEN n < %s THEN -1 ELSE 3600 + n END), true, ''
    FROM generate_series(0, %s - 1) n
"""
_BARE = """
    SELECT * FROM autonomy_trigger WHERE tenant_id = %s AND enabled AND deleted_at IS NULL
      AND next_at <= statement_timestamp() ORDER BY next_at LIMIT 250 FOR NO KEY UPDATE SKIP LOCKED
"""


def run() -> list[Row]:
    with servers({"SILAS_AUTONOMY_SESSIONS": "100"}) as env:
        return [_dispatch(env), _tick(), _halt()]


def _dispatch(env: dict[str, str]) -> Row:
    house = _house(DUE, DUE)
    pairs = [_pair(house, env) for _ in range(2)]
    began = time.perf_counter()
    for pair in pairs:
        assert pair.stdin is not None
        pair.stdin.write("go\n")
        pair.stdin.flush()
    assert [pair.wait(timeout=600) for pair in pairs] == [0, 0]
    took = time.perf_counter() - began
    times = [session.trigger_id for session in house.sessions()]
    once = len(times) == len(set(times)) == DUE
    name = f"{DUE:,} due triggers begun by two ticks, each once"
    return Row(name, took, "s", "allowed", SECONDS, took / SECONDS, "≤ 1, once", once and took <= SECONDS)


def _pair(house: Any, env: dict[str, str]) -> subprocess.Popen[str]:
    pair = subprocess.Popen(
        [sys.executable, "-c", _PAIR, str(house.tenant.pk)],
        env={**os.environ, **env},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert pair.stdout is not None and pair.stdout.readline() == "ready\n"
    return pair


def _tick() -> Row:
    """Finding the ten, as the tick does it; nothing is begun, so that every round finds the same."""
    from django.db import connection

    from apps.autonomy.services import dispatching
    from kernel.tenancy import tenant_scope

    house = _house(CROWD, 10)

    def ours() -> None:
        with tenant_scope(house.tenant):
            assert len(dispatching.due_triggers()) == 10

    def bare() -> None:
        with tenant_scope(house.tenant), connection.cursor() as cursor:
            cursor.execute(_BARE, [house.tenant.pk])
            assert len(cursor.fetchall()) == 10

    with connection.cursor() as cursor:
        cursor.execute("ANALYZE autonomy_trigger")
    mine, theirs = _in_turn(ours, bare)
    name = f"tick finds 10 due of {CROWD:,} triggers"
    return Row(
        name, mine, "ms", "the bare indexed query", theirs, mine / theirs, f"≤ {BOUND:g}", mine / theirs <= BOUND
    )


def _halt() -> Row:
    """Each of another session, whose call is admitted and not settled."""
    from apps.autonomy import services
    from apps.autonomy.services import admission, running
    from apps.bus import services as bus
    from apps.bus.deliveries import Delivery
    from apps.bus.enums import Queue
    from apps.guard.enums import Intent
    from apps.guard.schemas import Call
    from apps.guard.services.admission import admit_call

    house = _house(0, 0)
    house.do(services.put_settings, actor="command:bench", max_concurrent=100)
    sessions = []
    for number in range(HALTS):
        session = house.run_now(house.task(name=f"Halt {number}"))
        house.do(admission.admit_waiting)
        lease = house.do(bus.lease, Queue.EXECUTOR, consumer=f"bench-{number}")
        job = house.do(running.begin, Delivery(house.tenant.pk, lease, "bench"))
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


def _in_turn(ours: Callable[[], Any], bare: Callable[[], Any], rounds: int = ROUNDS) -> tuple[float, float]:
    """Medians in milliseconds, each measured beside the other."""
    measured = [(_timed(ours), _timed(bare)) for _ in range(rounds)]
    mine, theirs = (statistics.median(times[1:]) * 1000 for times in zip(*measured, strict=True))
    return mine, theirs


def _timed(work: Callable[[], Any]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _house(triggers: int, due: int) -> Any:
    """A company with so many triggers, of a hundred tasks."""
    from django.db import connection

    from kernel.tenancy import tenant_scope
    from tests.factories.autonomy import make_house
    from tests.factories.tenants import make_tenant

    house = make_house(make_tenant(slug=f"bench-{uuid4().hex[:8]}"))
    tasks = [house.task(name=f"Task {number}").pk for number in range(TASKS)] if triggers else []
    if triggers:
        with tenant_scope(house.tenant), connection.cursor() as cursor:
            cursor.execute(_FILL, [house.tenant.pk, tasks, TASKS, due, triggers])
    return house
