"""A test's own consumer as the only one, and messages as they are taken and as they stand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from apps.bus import registry, services, worker
from apps.bus.enums import Kind, Queue
from apps.bus.models import QueueMessage
from apps.bus.schemas import Lease
from apps.bus.workers import Worker
from kernel.tenancy import tenant_scope
from tests.factories.bus import lease_any, make_message


def take(tenant: Any, queue: str = Queue.EXECUTOR, **wish: Any) -> Lease | None:
    with tenant_scope(tenant):
        return lease_any(queue, **{"consumer": "test", **wish})


def held(tenant: Any, queue: str = Queue.EXECUTOR, **wish: Any) -> Lease:
    found = take(tenant, queue, **wish)
    assert found is not None
    return found


def row(tenant: Any, **which: Any) -> QueueMessage:
    """The tenant's only such message, as it stands now."""
    with tenant_scope(tenant):
        found: QueueMessage = QueueMessage.objects.exclude(kind=Kind.RETENTION).get(**which)
    return found


def bury(tenant: Any, **fields: Any) -> QueueMessage:
    """A dead letter."""
    message = make_message(tenant, **fields)
    with tenant_scope(tenant):
        services.dead_letter(held(tenant, scope_id=message.scope_id), "poison")
    return message


@pytest.fixture
def consume(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], Any]:
    """Make a coroutine function the consumer of system events on the runtime queue, the only one there is."""
    monkeypatch.setattr(registry, "_consumers", {})

    def become(handler: Any) -> Any:
        registry.register(Queue.RUNTIME, Kind.SYSTEM_EVENT, handler)
        return handler

    return become


@pytest.fixture
def drain(database: None) -> Callable[..., None]:
    """One wake-up of a worker, in this process."""

    def work(**options: Any) -> None:
        worker.drain(Worker.WORK, consumer="test", **options)

    return work
