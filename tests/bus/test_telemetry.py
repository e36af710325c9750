"""The steps of a message are recorded as metrics and in the audit log, without its text."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from apps.audit.enums import AuditEvent
from apps.audit.models import AuditEntry
from apps.bus import deliveries, services
from apps.bus.enums import Queue
from kernel.tenancy import tenant_scope
from tests.bus.conftest import held
from tests.factories.bus import let_leases_run_out, make_message


@pytest.fixture
def log_lines(caplog: pytest.LogCaptureFixture) -> Any:
    """What the bus has told of its own so far, line by line."""
    caplog.set_level(logging.DEBUG, logger="silas.bus")
    return lambda: [record.getMessage() for record in caplog.records if record.name == "silas.bus"]


def test_message_taken_renewed_and_done_tells_each_with_its_trace_and_nothing_of_its_text(
    tenant: Any, log_lines: Any
) -> None:
    make_message(tenant, content="my secret", payload={"a": "my secret"}, trace_id="trace-1")
    lease = held(tenant)
    with tenant_scope(tenant):
        services.heartbeat(lease)
        services.ack(lease)
    assert [line.split()[0] for line in log_lines()] == ["queue_wait_ms", "lease_heartbeat", "lease_duration_ms"]
    for line in log_lines():
        assert "trace=trace-1" in line
        assert "secret" not in line


def test_sweep_tells_of_silent_holders(tenant: Any, log_lines: Any) -> None:
    make_message(tenant)
    held(tenant)
    let_leases_run_out(tenant)
    with tenant_scope(tenant):
        services.expire_leases()
    lines = [line for line in log_lines() if not line.startswith("queue_wait_ms")]
    assert lines == ["lease_expired queue=executor value=1"]


def test_worker_tells_how_many_scopes_were_due(tenant: Any, log_lines: Any, consume: Any, drain: Any) -> None:
    async def nothing(delivery: deliveries.Delivery) -> None: ...

    consume(nothing)
    make_message(tenant, queue=Queue.RUNTIME)
    make_message(tenant, queue=Queue.RUNTIME, scope_id="another")
    drain()
    first = next(line for line in log_lines() if line.startswith("queue_depth_sample worker=work value="))
    assert int(first.rpartition("=")[2]) >= 2


def entries(tenant: Any, event: AuditEvent) -> list[tuple[str, dict[str, Any]]]:
    with tenant_scope(tenant):
        return [(entry.subject, json.loads(entry.data)) for entry in AuditEntry.objects.filter(event=event)]


def test_message_between_agents_is_written_down_once_when_queued_and_when_taken(tenant: Any) -> None:
    message, _ = (make_message(tenant, content="my secret", trace_id="trace-1", message_id="m-1") for _ in range(2))
    with tenant_scope(tenant):
        deliveries.lease_next(Queue.EXECUTOR, scope_id="scope", consumer="test", seconds=9)
    expected = {"queue": "executor", "kind": "system_event", "trace": "trace-1", "attempt": 1}
    for event in (AuditEvent.MESSAGE_QUEUED, AuditEvent.MESSAGE_TAKEN):
        assert entries(tenant, event) == [(f"message:{message.pk}", expected)]


def test_visitors_message_is_written_down_by_the_conversation_alone(tenant: Any) -> None:
    make_message(tenant, queue="proxy", kind="user_message", sender="user", payload={"seq": 1})
    assert entries(tenant, AuditEvent.MESSAGE_QUEUED) == []
