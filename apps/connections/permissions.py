"""Decide whether a tool may use an account with its permissions, and give its run, or that of a knowledge source, the
account's secrets.

`check_connection` is the guard's policy: it is asked before a call is admitted, so a refused call costs nothing. A
missing permission is put before a person (spec 5.10.2). A one-time grant is used up here; the connection itself keeps
its permissions.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from apps.approvals.enums import ApprovalScope
from apps.approvals.models import ApprovalToken
from apps.approvals.tokens import payloads
from apps.approvals.tokens.services import verify_token
from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.connections import credentials, rules, scripts
from apps.connections.enums import ConnectionStatus
from apps.connections.locks import lock_connection
from apps.connections.models import Connection, OnceGrant
from apps.connections.queries import account_for, accounts
from apps.connections.services.outbox import WIDEN, enqueue
from apps.guard.schemas import CallContext, CallFailed
from apps.knowledge.ports import AccountChoice, SourceAccount
from apps.skills import queries as skills
from apps.skills.ports import OpenedAccount
from apps.skills.schemas import SkillManifest, ToolSpec
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import gettext
from kernel.stored_texts import stored_text
from kernel.tenancy import tenant_scope

# The setting that says where an account's service is.
_ADDRESS = "base_url"
_NOT_WORKING = stored_text("The account isn't working or isn't connected any more. Reconnect it.")


def check_connection(tool_name: str, context: Any) -> tuple[str, str] | None:
    """Policy of the guard: find the tool among the caller's skills and return why it may not run, or None."""
    refs = [str(ref) for ref in (context or {}).get("skills") or ()]
    try:
        tool = next((tool for tool in skills.tools_for(refs) if tool.name == tool_name), None)
    except SilasError:
        return None  # the call itself fails with what is wrong with its skills
    return refusal(tool) if tool is not None else None


def refusal(tool: ToolSpec) -> tuple[str, str] | None:
    """Return the code and the sentence why this tool may not use its connection, None when it may. A missing permission
    is put before a person, once an hour. Inside the caller's scope."""
    if not tool.connection:
        return None
    try:
        row = account_for(tool.connection)
    except SilasError as error:
        return error.code, error.message
    missing = rules.missing(tool.permissions, row.permissions_granted)
    if not missing or _grant_for(row, missing) is not None:
        return None
    record(AuditEvent.CONNECTION_REFUSED, subject=f"connection:{row.pk}", data={"reason": "connection_permission"})
    # With the hour in it: a tool that tries again and again asks once an hour.
    message_id = f"widen:{row.pk}:{':'.join(sorted(missing))}:{now():%Y%m%d%H}"[:128]
    enqueue(WIDEN, row.pk, message_id=message_id, permissions=tool.permissions)
    return "connection_permission", gettext(
        "The connected account doesn't have this permission. We've asked for approval."
    )


def open_for_tool(ctx: CallContext, tool: ToolSpec) -> OpenedAccount:
    """Unseal the secrets of the tool's account for this one guarded call. Raises `CallFailed`, effect-free."""
    assert tool.connection is not None
    try:
        with tenant_scope(ctx.tenant_id):
            row = account_for(tool.connection)
            missing = rules.missing(tool.permissions, row.permissions_granted)
            if missing and not _use_one_time_grant(row, missing):
                message = gettext("The connected account doesn't have this permission.")
                raise SilasError(ErrorCode.CONNECTION_PERMISSION, message)
            Connection.objects.filter(pk=row.pk).update(last_used=now())
            return OpenedAccount(
                json.dumps(credentials.unseal_all(row.pk)).encode(),
                _egress(row, tool),
                {"SILAS_SETTINGS": json.dumps(row.settings), "SILAS_CONNECTION": str(row.pk)},
                row.pk,
            )
    except SilasError as error:
        raise CallFailed(error.code, error.message, effect_free=True) from error


def store_for_tool(ctx: CallContext, account: UUID, handed: bytes) -> None:
    """Replace the account's credentials with what the tool's run handed back: always of the account it ran with,
    however many there are by now, and never of one that was removed meanwhile."""
    values = credentials.parse_handed_back(handed)
    with tenant_scope(ctx.tenant_id):
        row = lock_connection(account)
        if values and row.status != ConnectionStatus.REMOVED:
            credentials.store(row.pk, values)


def list_source_accounts() -> list[AccountChoice]:
    """The accounts with an address of their own that were connected once and not removed, working or not."""
    rows = Connection.objects.filter(pk__in=[account.id for account in accounts()]).order_by("name", "pk")
    return [AccountChoice(row.pk, row.name, str(row.settings[_ADDRESS])) for row in rows if row.settings.get(_ADDRESS)]


def open_for_source(ctx: CallContext, connection_id: UUID) -> SourceAccount:
    """Unseal the secrets of an account for the one guarded call that reads a source. Raises `CallFailed`, effect-free.

    The secrets may be sent to the account's own address only, which its approval named and its skill may reach.
    """
    try:
        with tenant_scope(ctx.tenant_id):
            row: Connection | None = Connection.objects.filter(pk=connection_id, status=ConnectionStatus.ACTIVE).first()
            address = str(row.settings.get(_ADDRESS, "")) if row is not None else ""
            if row is None or not set(scripts.egress_places([f"{{{_ADDRESS}}}"], row.settings)) & set(_egress_of(row)):
                raise SilasError(ErrorCode.CONNECTION_MISSING, _NOT_WORKING)
            Connection.objects.filter(pk=row.pk).update(last_used=now())
            return SourceAccount(address, dict(row.settings), credentials.unseal_all(row.pk))
    except SilasError as error:
        raise CallFailed(error.code, error.message, effect_free=True) from error


def reach_of(tool: ToolSpec) -> tuple[str, tuple[str, ...]]:
    """Return the name of the account that a call of this tool would use now, and the places it could reach, as
    `open_for_tool` decides them; empty where there is no account."""
    try:
        row = account_for(tool.connection or "")
    except SilasError:
        return "", ()
    return str(row), _egress(row, tool)


def _egress(row: Connection, tool: ToolSpec) -> tuple[str, ...]:
    return _egress_of(row) if tool.network is None else scripts.egress_places(list(tool.network), row.settings)


def _egress_of(row: Connection) -> tuple[str, ...]:
    (version,) = skills.versions([row.skill])
    declared = SkillManifest.model_validate(version.manifest).requirements.network
    return scripts.egress_places(list(declared), row.settings)


def _grant_for(row: Connection, missing: Sequence[str]) -> OnceGrant | None:
    grants = OnceGrant.objects.filter(connection=row, used_at=None, expires_at__gt=now()).order_by("created_at")
    return next((grant for grant in grants if set(missing) <= set(grant.permissions)), None)


def _use_one_time_grant(row: Connection, missing: Sequence[str]) -> bool:
    """Use up a grant and its approval token. Of two calls at once, the conditional update lets one through."""
    grant = _grant_for(row, missing)
    if grant is None or not OnceGrant.objects.filter(pk=grant.pk, used_at=None).update(used_at=now()):
        return False
    token = ApprovalToken.objects.get(pk=grant.token_id)
    verdict = verify_token(token, payloads.approvable(ApprovalScope.CONNECTION_MANAGE, grant.payload))
    if verdict.ok:
        record(AuditEvent.PERMISSION_ONCE, subject=f"connection:{row.pk}", data={"count": len(missing)})
    return verdict.ok
