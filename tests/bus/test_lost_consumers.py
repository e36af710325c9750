"""A worker is killed with -9 in the middle, Redis forgets everything: the work is done, once."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from apps.bus import services, tasks
from apps.bus.enums import LIVE, State
from apps.bus.models import QueueMessage
from kernel.clock import now
from kernel.tenancy import platform_scope, tenant_scope
from silas_platform import beat
from tests import nursery
from tests.bus.conftest import held
from tests.bus.test_consumers import QUEUE, commit_effect, effects, state
from tests.factories.bus import let_leases_run_out, make_message


def die_at(place: str) -> int:
    """Start a worker that kills itself at this place (tests/bus/doomed.py), and return how it ended."""
    return nursery.spawn([sys.executable, "-m", "tests.bus.doomed", place]).wait()


@pytest.mark.parametrize("place", ["before the effect", "between effect and commit", "after the commit"])
def test_effect_of_a_killed_consumer_happens_once(tenant: Any, consume: Any, drain: Any, place: str) -> None:
    consume(commit_effect)
    make_message(tenant, queue=QUEUE)
    died = die_at(place)
    let_leases_run_out(tenant)
    drain()
    assert died == -signal.SIGKILL
    assert effects(tenant) == 1
    assert state(tenant)[0] == "acked"


def test_consumer_killed_again_and_again_buries_its_message(tenant: Any) -> None:
    with platform_scope("tests"):
        # What another test left in the queue would be taken by the first of the doomed.
        left = QueueMessage.objects.filter(queue=QUEUE, state__in=LIVE)
        left.update(state=State.ACKED, leased_until=None, finished_at=now())
    make_message(tenant, queue=QUEUE)
    for _ in range(5):
        die_at("before the effect")
        let_leases_run_out(tenant)
    with tenant_scope(tenant):
        services.expire_leases()
    assert state(tenant) == ("dead", 5, "lease_expired")


def test_message_is_handled_after_redis_forgot_its_wake_up(tenant: Any, consume: Any) -> None:
    consume(commit_effect)
    make_message(tenant, queue=QUEUE)
    forget_everything()
    entry = beat.app.conf.beat_schedule["bus.drain.work"]
    assert entry["task"] == tasks.drain.name
    tasks.drain(*entry["args"])
    assert effects(tenant) == 1
    assert state(tenant)[0] == "acked"


def forget_everything() -> None:
    Redis.from_url(os.environ["REDIS_URL"]).flushdb()


STARTING = """
import sys, time
import django; django.setup()
from silas_platform import beat
from silas_platform.celery import app
from apps.bus import registry
from apps.bus.enums import Kind, Queue
async def handler(delivery):
    pass
registry._consumers.clear()
registry.register(Queue.RUNTIME, Kind.SYSTEM_EVENT, handler)
app.worker_main(["worker", "--pool=solo", "--loglevel=ERROR", "--without-gossip", "--without-mingle"])
"""


def test_worker_that_starts_goes_on_with_what_a_dead_one_left(tenant: Any) -> None:
    from silas_platform.up.environment import for_program

    make_message(tenant, queue=QUEUE)
    held(tenant, QUEUE, consumer="dead")
    let_leases_run_out(tenant)
    forget_everything()
    worker = nursery.start([sys.executable, "-c", STARTING], env=for_program(os.environ, "worker"), cwd=ROOT)
    try:
        give_up = time.monotonic() + 60
        while state(tenant)[0] != "acked" and time.monotonic() < give_up:
            time.sleep(0.2)
    finally:
        worker.terminate()
        worker.wait(30)
    assert state(tenant)[0] == "acked"


ROOT = Path(__file__).resolve().parents[2]
