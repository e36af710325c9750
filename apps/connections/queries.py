"""Which connections are there, and what is each waiting for? Reads inside the caller's tenant scope, nothing secret."""

from __future__ import annotations

from uuid import UUID

from django.db.models import QuerySet

from apps.connections import rules
from apps.connections.enums import ConnectionStatus
from apps.connections.models import Connection, SetupRun
from kernel.errors import NotFound
from kernel.tenancy import current_tenant_id
from kernel.tenancy.rows import Question

_LINKED = "SELECT skill_name, provider FROM connections_connection WHERE tenant_id = %s AND status = 'active'"


def linked_asked() -> Question[frozenset[str]]:
    """What a tool may name as its `connection` and find connected: skills, and providers as `type:<provider>`."""
    return Question(_LINKED, [current_tenant_id()], _names)


def _names(rows: list[tuple[str, str]]) -> frozenset[str]:
    return frozenset(name for skill, provider in rows for name in (skill, f"type:{provider}"))


def connections(*, domain: str = "") -> QuerySet[Connection]:
    """Those that were not removed, newest first."""
    rows: QuerySet[Connection] = Connection.objects.exclude(status=ConnectionStatus.REMOVED)
    return rows.filter(domain=domain) if domain else rows


def connection(connection_id: UUID) -> Connection:
    """Raises `NotFound` for an unknown, removed or foreign one."""
    row = connections().filter(pk=connection_id).first()
    if row is None:
        raise NotFound("connection")
    return row


def setup_under_way(connection_id: UUID) -> SetupRun | None:
    """The conversation in which it is being set up now; `step` is what is asked. Raises `NotFound`."""
    found: SetupRun | None = SetupRun.objects.filter(
        connection=connection(connection_id), state__in=rules.UNDER_WAY
    ).first()
    return found


def setups(connection_id: UUID) -> QuerySet[SetupRun]:
    """Every conversation about it, newest first."""
    rows: QuerySet[SetupRun] = SetupRun.objects.filter(connection_id=connection_id)
    return rows
