"""Connections, set-ups and pending secrets for tests."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

from apps.connections import credentials, pending
from apps.connections.enums import AuthStrategy, ConnectionStatus, Purpose, SetupState
from apps.connections.models import Connection, PendingSecret, SetupRun
from kernel.clock import now
from kernel.tenancy import tenant_scope


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
        row = pending.want(setup, name)
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
        credentials.keep(row.pk, values)


def opened(row: Connection) -> dict[str, str]:
    with tenant_scope(row.tenant_id):
        return credentials.opened(row.pk)
