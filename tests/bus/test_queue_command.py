"""`manage.py queue` shows a tenant's queues and what failed there, and retries or drops it."""

from __future__ import annotations

import io
from typing import Any
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command

from apps.audit.enums import AuditEvent
from apps.audit.models import AuditEntry
from apps.bus import services
from apps.bus.enums import Kind
from apps.bus.models import QueueMessage
from kernel.tenancy import INSTALLATION, tenant_scope
from tests.factories.bus import lease_any, make_message


def run_command(*options: str) -> str:
    out = io.StringIO()
    call_command("queue", *options, stdout=out)
    return out.getvalue()


def bury(tenant: Any) -> QueueMessage:
    message = make_message(tenant, scope_id=str(uuid4()))
    with tenant_scope(tenant):
        lease = lease_any("executor", consumer="test", scope_id=message.scope_id)
        assert lease is not None
        services.dead_letter(lease, "poison")
    return message


def state(tenant: Any, message: QueueMessage) -> str:
    with tenant_scope(tenant):
        return str(QueueMessage.objects.get(pk=message.pk).state)


def test_command_counts_each_queue_and_lists_what_failed(tenant: Any) -> None:
    message = bury(tenant)
    make_message(tenant)
    said = run_command("--tenant", tenant.slug)
    assert "queue=executor due=1 scheduled=0 in-progress=0 failed=1 oldest-due=" in said
    assert f"failed id={message.pk} queue=executor kind=system_event attempts=1 reason=poison" in said


def test_command_retries_a_message_and_notes_who_did(tenant: Any) -> None:
    message = bury(tenant)
    run_command("--tenant", tenant.slug, "--retry", str(message.pk))
    assert state(tenant, message) == "queued"
    with tenant_scope(tenant):
        entry = AuditEntry.objects.get(event=AuditEvent.MESSAGE_RETRIED)
    assert entry.actor == "command:queue"


def test_command_drops_a_message(tenant: Any) -> None:
    message = bury(tenant)
    run_command("--tenant", tenant.slug, "--drop", str(message.pk))
    assert state(tenant, message) == "dropped"


def test_command_retries_all_that_failed(tenant: Any) -> None:
    messages = [bury(tenant), bury(tenant)]
    run_command("--tenant", tenant.slug, "--retry-all")
    assert [state(tenant, message) for message in messages] == ["queued", "queued"]


def test_command_refuses_a_message_of_another_tenant(tenant: Any, other_tenant: Any) -> None:
    message = bury(other_tenant)
    with pytest.raises(CommandError):
        run_command("--tenant", tenant.slug, "--retry", str(message.pk))
    assert state(other_tenant, message) == "dead"


def test_command_refuses_an_unknown_tenant(database: None) -> None:
    with pytest.raises(CommandError, match="no tenant nobody"):
        run_command("--tenant", "nobody")


def test_command_retries_work_of_the_installation(database: None) -> None:
    with tenant_scope(INSTALLATION):
        message = services.enqueue(Kind.SAFETY_CODE_MAIL, scope_id=uuid4())
        lease = services.lease(message.queue, consumer="test", scope_id=message.scope_id)
        assert lease is not None
        services.dead_letter(lease, "poison")
        pk = QueueMessage.objects.get(pk=message.pk).pk
    try:
        run_command("--retry", str(pk))
        with tenant_scope(INSTALLATION):
            assert QueueMessage.objects.get(pk=pk).state == "queued"
    finally:
        with tenant_scope(INSTALLATION):
            QueueMessage.objects.filter(pk=pk).delete()
