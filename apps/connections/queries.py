"""Read connections and their set-ups inside the caller's tenant scope. Nothing secret is read."""

from __future__ import annotations

from uuid import UUID

from django.db.models import Q, QuerySet

from apps.connections import rules
from apps.connections.enums import ConnectionStatus
from apps.connections.models import Connection, ItRequest, SetupRun
from kernel.error_codes import ErrorCode
from kernel.errors import NotFound, SilasError
from kernel.language import gettext_lazy

_CONNECTED = Q(status__in=(ConnectionStatus.ACTIVE, ConnectionStatus.PAUSED)) | Q(
    status__in=(ConnectionStatus.FAILED, ConnectionStatus.CONNECTING), next_check_at__isnull=False
)


def usable_names() -> frozenset[str]:
    """Return what a tool may name as its `connection` and find an account: skills, and providers as
    `type:<provider>`."""
    return rules.usable_names(accounts())


def accounts() -> list[rules.Account]:
    """Return the accounts that were connected once and were not removed, whether or not they work now."""
    rows = Connection.objects.filter(_CONNECTED).values_list("id", "skill_name", "provider", "status", "is_usual")
    return [
        rules.Account(pk, skill, provider, ConnectionStatus(status), is_usual)
        for pk, skill, provider, status, is_usual in rows
    ]


def account_for(wanted: str) -> Connection:
    """Return the connection that a tool means by its skill's name, or by `type:<provider>`. Raises 409
    `connection_missing`, `connection_ambiguous`."""
    account = rules.account_for(wanted, accounts())
    if isinstance(account, ErrorCode):
        raise SilasError(account, _NO_ACCOUNT[account])
    row: Connection = Connection.objects.get(pk=account.id)
    return row


def account_name(wanted: str) -> str:
    """Return the name of the account that a tool means; "" where there is none."""
    account = rules.account_for(wanted, accounts())
    return "" if isinstance(account, ErrorCode) else str(Connection.objects.get(pk=account.id))


_NO_ACCOUNT = {
    ErrorCode.CONNECTION_MISSING: gettext_lazy("No account is connected for this."),
    ErrorCode.CONNECTION_AMBIGUOUS: gettext_lazy("Several accounts are connected for this. Choose the one to use."),
}


def connections(*, domain: str = "") -> QuerySet[Connection]:
    """Return the connections that were not removed, newest first."""
    rows: QuerySet[Connection] = Connection.objects.exclude(status=ConnectionStatus.REMOVED)
    return rows.filter(domain=domain) if domain else rows


def connection(connection_id: UUID) -> Connection:
    """Raises `NotFound` for an unknown, removed or foreign connection."""
    row = connections().filter(pk=connection_id).first()
    if row is None:
        raise NotFound()
    return row


def it_request(connection_id: UUID) -> ItRequest | None:
    """Return the draft for an IT department about this connection."""
    row: ItRequest | None = ItRequest.objects.filter(connection_id=connection_id).first()
    return row


def setup_under_way(connection_id: UUID) -> SetupRun | None:
    """Return the set-up that is under way; its `step` is what is asked. Raises `NotFound`."""
    setup: SetupRun | None = SetupRun.objects.filter(
        connection=connection(connection_id), state__in=rules.UNDER_WAY
    ).first()
    return setup


def setups(connection_id: UUID) -> QuerySet[SetupRun]:
    """Return every set-up of the connection, newest first."""
    rows: QuerySet[SetupRun] = SetupRun.objects.filter(connection_id=connection_id)
    return rows
