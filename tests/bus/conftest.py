"""Fixtures that register a test's own consumer as the only one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from apps.bus import registry, worker
from apps.bus.enums import Kind, Queue, Worker


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
