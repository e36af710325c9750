"""Deliveries that wait for minutes run beside a worker's other work, so many at once, with their leases kept."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from apps.bus import registry, threads, worker
from apps.bus.deliveries import Delivery
from apps.bus.enums import LIVE, Kind, State
from apps.bus.models import QueueMessage
from apps.bus.rules import scope_of
from apps.bus.services import enqueue
from apps.bus.workers import Worker
from kernel.clock import now
from kernel.tenancy import platform_scope, tenant_scope
from tests.bus.conftest import row
from tests.factories.bus import disperse, let_waits_pass

PATIENCE_SECONDS = 30


class Talk:
    """A handler that waits until the test lets it go on."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.may_end = threading.Event()

    async def __call__(self, delivery: Delivery) -> None:
        self.begun.append(delivery.message.subject)
        await asyncio.to_thread(self.may_end.wait, PATIENCE_SECONDS)


@pytest.fixture
def talk(monkeypatch: pytest.MonkeyPatch, tenant: Any) -> Iterator[Talk]:
    """The only consumer, which holds one conversation at a time in a process; other tests' messages are over."""
    with platform_scope("tests"):
        others = QueueMessage.objects.filter(kind=Kind.CONNECTION_SETUP, state__in=LIVE)
        others.update(state=State.ACKED, leased_until=None, finished_at=now())
    monkeypatch.setattr(registry, "_consumers", {})
    monkeypatch.setattr(threads, "_slots", {})
    handler = Talk()
    registry.register_job(Kind.CONNECTION_SETUP, handler, max_concurrency=1)
    yield handler
    handler.may_end.set()
    _join()
    disperse(tenant)


def _join() -> None:
    for each in threading.enumerate():
        if each.name == "work:connection_setup":
            each.join(PATIENCE_SECONDS)


def work(seconds: float = 120.0) -> None:
    worker.drain(Worker.WORK, consumer="test", lease_seconds=seconds)


def talk_row(tenant: Any, scope_id: str) -> QueueMessage:
    return row(tenant, scope_id=scope_of(Kind.CONNECTION_SETUP, scope_id))


def enqueue_talk(tenant: Any, scope_id: str) -> None:
    with tenant_scope(tenant):
        enqueue(Kind.CONNECTION_SETUP, scope_id=scope_id)


def test_worker_goes_on_while_a_conversation_is_held(tenant: Any, talk: Talk) -> None:
    enqueue_talk(tenant, "first")
    work()
    assert talk_row(tenant, "first").state == "leased"
    talk.may_end.set()
    _join()
    assert talk_row(tenant, "first").state == "acked"


def test_conversation_beyond_what_a_process_holds_waits_without_a_failure(tenant: Any, talk: Talk) -> None:
    enqueue_talk(tenant, "first")
    work()
    enqueue_talk(tenant, "second")
    work()
    second = talk_row(tenant, "second")
    assert second.state == "queued"
    assert second.attempts == 0
    assert second.available_at > now()
    talk.may_end.set()
    _join()
    let_waits_pass(tenant)
    work()
    _join()
    assert talk.begun == ["first", "second"]


def test_machine_without_room_for_a_thread_costs_time_alone(
    tenant: Any, talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    enqueue_talk(tenant, "first")
    with monkeypatch.context() as patch:
        patch.setattr(threads.threading.Thread, "start", full)
        work()
    waiting = talk_row(tenant, "first")
    assert waiting.state == "queued"
    assert waiting.attempts == 0
    talk.may_end.set()
    let_waits_pass(tenant)
    work()
    _join()
    assert talk.begun == ["first"]


def test_lease_of_a_conversation_is_kept_while_it_lasts(tenant: Any, talk: Talk) -> None:
    enqueue_talk(tenant, "first")
    work(seconds=1.5)
    before = talk_row(tenant, "first").leased_until
    threading.Event().wait(1.2)
    assert talk_row(tenant, "first").leased_until > before
