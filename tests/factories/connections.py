"""Connections, set-ups and pending secrets for tests."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any
from uuid import UUID

from apps.bus.deliveries import Delivery, lease_next
from apps.bus.enums import Kind, Queue
from apps.connections import credentials, handlers, pending_secrets
from apps.connections.enums import AuthStrategy, ConnectionStatus, Purpose, SetupState
from apps.connections.models import Connection, PendingSecret, SetupRun
from apps.connections.services.status import schedule_check
from apps.connections.setup_session import Limits
from apps.guard.models import ToolCall
from kernel.clock import now
from kernel.tenancy import tenant_scope
from tests.factories.bus import carry_out_kinds


def make_connection(tenant: Any, **fields: Any) -> Connection:
    with tenant_scope(tenant):
        row: Connection = Connection.objects.create(
            **{
                "name": "Shop mail",
                "skill": "test-link@0123456789abcdef",
                "skill_name": "test-link",
                "auth_strategy": AuthStrategy.SECURE_INPUT,
                "status": ConnectionStatus.ACTIVE,
                "permissions_granted": ["Mail.Read"],
                "permissions_available": ["Mail.Read", "Mail.Send"],
                **fields,
            }
        )
    return row


def make_setup(connection: Connection, **fields: Any) -> SetupRun:
    with tenant_scope(connection.tenant_id):
        row: SetupRun = SetupRun.objects.create(
            **{
                "connection": connection,
                "purpose": Purpose.SETUP,
                "state": SetupState.ASKING,
                "deadline": now() + timedelta(minutes=30),
                **fields,
            }
        )
    return row


def make_pending(tenant: Any, name: str = "value", **fields: Any) -> PendingSecret:
    connection = make_connection(tenant, status=ConnectionStatus.CONNECTING)
    setup = make_setup(connection)
    with tenant_scope(tenant):
        row = pending_secrets.request_secret(setup, name)
        PendingSecret.objects.filter(pk=row.pk).update(**fields) if fields else None
    return row


def reread(row: Any) -> Any:
    with tenant_scope(row.tenant_id):
        return type(row).objects.get(pk=row.pk)


def ref_of(row: Any) -> UUID:
    found: UUID = row.pk
    return found


def keep(row: Connection, **values: str) -> None:
    """Credentials, each under its name."""
    with tenant_scope(row.tenant_id):
        credentials.store(row.pk, values)


def opened(row: Connection) -> dict[str, str]:
    with tenant_scope(row.tenant_id):
        return credentials.unseal_all(row.pk)


def check_due(tenant: Any) -> int:
    """Carry out the checks of the tenant's connections that are due; how many there were."""
    with tenant_scope(tenant):
        for row in Connection.objects.exclude(next_check_at=None):
            schedule_check(row)
        checks = ToolCall.objects.filter(tool="connection:health_check")
        before = checks.count()
    carry_out_kinds(tenant, Kind.CONNECTION_CHECK)
    with tenant_scope(tenant):
        return int(checks.all().count()) - before


def discover(tenant: Any) -> None:
    carry_out_kinds(tenant, Kind.CONNECTION_DISCOVERY)


def hold(tenant: Any, setup: SetupRun, limits: Limits | None = None) -> bool:
    """Hold the conversation to its end, in this thread; False where another process holds it, or it is over."""
    with tenant_scope(tenant):
        lease = lease_next(Queue.WORK, scope_id=f"{Kind.CONNECTION_SETUP}:{setup.pk}", consumer="test", seconds=120)
    if lease is None:
        return False
    delivery = Delivery(tenant.pk, lease, "work:connection_setup")
    asyncio.run(handlers.run_setup(delivery, limits=limits))
    if not delivery.over:
        with tenant_scope(tenant):
            delivery.finish()
    return True
