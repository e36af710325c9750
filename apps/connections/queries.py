"""Which connections are there, and what is each waiting for? Reads inside the caller's tenant scope, nothing secret."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from apps.connections import rules
from apps.connections.enums import ConnectionStatus
from apps.connections.models import Connection, ItRequest, SetupRun
from kernel.errors import NotFound, SilasError
from kernel.tenancy import current_tenant_id
from kernel.tenancy.rows import Question, ask

_ACCOUNTS = """
    SELECT id, skill_name, provider, status, is_usual FROM connections_connection
     WHERE tenant_id = %s AND (status IN ('active', 'paused')
        OR (status IN ('failed', 'connecting') AND next_check_at IS NOT NULL))
"""


def linked_asked() -> Question[frozenset[str]]:
    """What a tool may name as its `connection` and find an account: skills, and providers as `type:<provider>`."""
    return Question(_ACCOUNTS, [current_tenant_id()], lambda rows: rules.usable(map(_account, rows)))


def accounts() -> list[rules.Account]:
    """Those that were connected once and were not removed, whether or not they work now."""
    (found,) = ask(Question(_ACCOUNTS, [current_tenant_id()], lambda rows: list(map(_account, rows))))
    return found


def _account(row: tuple[Any, ...]) -> rules.Account:
    which, skill, provider, status, is_usual = row
    return rules.Account(which, skill, provider, ConnectionStatus(status), is_usual)


def account_for(wanted: str) -> Connection:
    """The connection that a tool means by its skill's name, or by `type:<provider>`. Raises 409 `connection_missing`,
    `connection_ambiguous`."""
    found = rules.account_for(wanted, accounts())
    if isinstance(found, str):
        raise SilasError(found, _NO_ACCOUNT[found], status=409)
    row: Connection = Connection.objects.get(pk=found.id)
    return row


def account_name(wanted: str) -> str:
    """What people call the account that a tool means; "" where it would find none."""
    found = rules.account_for(wanted, accounts())
    return "" if isinstance(found, str) else str(Connection.objects.get(pk=found.id))


_NO_ACCOUNT = {
    "connection_missing": "No account is connected for this.",
    "connection_ambiguous": "Several accounts are connected for this, and nobody has said which one to use.",
}


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


def it_request(connection_id: UUID) -> ItRequest | None:
    """The message to an IT department that was prepared about it."""
    row: ItRequest | None = ItRequest.objects.filter(connection_id=connection_id).first()
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
