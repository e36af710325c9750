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
from tests.bus.conftest import bury, held, row
from tests.factories.bus import make_message


def run_command(*options: str) -> str:
    out = io.StringIO()
    call_command("queue", *options, stdout=out)
    return out.getvalue()


def test_command_counts_each_queue_and_lists_what_failed(tenant: Any) -> None:
    message = bury(tenant)
    make_message(tenant)
    said = run_command("--tenant", tenant.slug)
    assert "queue=executor due=1 scheduled=0 in-progress=0 failed=1 oldest-due=" in said
    assert f"failed id={message.pk} queue=executor kind=system_event attempts=1 reason=poison" in said


@pytest.mark.parametrize(
    ("option", "named", "expected", "event"),
    [
        ("--retry", True, "queued", AuditEvent.MESSAGE_RETRIED),
        ("--drop", True, "dropped", AuditEvent.MESSAGE_DROPPED),
        ("--retry-all", False, "queued", AuditEvent.MESSAGE_RETRIED),
    ],
)
def test_command_retries_or_drops_and_notes_who_did(
    tenant: Any, option: str, named: bool, expected: str, event: AuditEvent
) -> None:
    message, other = (bury(tenant, scope_id=scope) for scope in "ab")
    run_command("--tenant", tenant.slug, option, *([str(message.pk)] if named else []))
    assert row(tenant, pk=message.pk).state == expected
    assert row(tenant, pk=other.pk).state == ("dead" if named else "queued")
    with tenant_scope(tenant):
        assert set(AuditEntry.objects.filter(event=event).values_list("actor", flat=True)) == {"command:queue"}


def test_command_refuses_a_message_of_another_tenant(tenant: Any, other_tenant: Any) -> None:
    message = bury(other_tenant)
    with pytest.raises(CommandError):
        run_command("--tenant", tenant.slug, "--retry", str(message.pk))
    assert row(other_tenant, pk=message.pk).state == "dead"


def test_command_refuses_an_unknown_tenant(database: None) -> None:
    with pytest.raises(CommandError, match="no tenant nobody"):
        run_command("--tenant", "nobody")


def test_command_retries_work_of_the_installation(database: None) -> None:
    with tenant_scope(INSTALLATION):
        message = services.enqueue(Kind.SAFETY_CODE_MAIL, scope_id=uuid4())
        services.dead_letter(held(INSTALLATION, message.queue, scope_id=message.scope_id), "poison")
    try:
        run_command("--retry", str(message.pk))
        assert row(INSTALLATION, pk=message.pk).state == "queued"
    finally:
        with tenant_scope(INSTALLATION):
            QueueMessage.objects.filter(pk=message.pk).delete()
