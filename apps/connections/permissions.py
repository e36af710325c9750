"""May this call use an account, with these permissions, now? The `connection_permission` policy, and the port by which
a tool's run gets the account's secrets.

The policy is asked before a call is admitted: nothing is spent for a call that it refuses. Whatever lacks a permission
puts the question to a person (spec 5.10.2). A yes to one use is spent here, and the connection stays as it was.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from apps.approvals import payloads
from apps.approvals.enums import ApprovalScope
from apps.approvals.models import ApprovalToken
from apps.approvals.services import verify
from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.connections import credentials, rules, scripts
from apps.connections.enums import ConnectionStatus
from apps.connections.locks import lock_connection
from apps.connections.models import Connection, OnceGrant
from apps.connections.queries import account_for
from apps.connections.services.outbox import WIDEN, enqueue
from apps.guard.schemas import CallContext, CallFailed
from apps.skills import queries as skills
from apps.skills.ports import OpenedAccount
from apps.skills.schemas import SkillManifest, ToolSpec
from kernel.clock import now
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope


def refusal(tool: ToolSpec) -> tuple[str, str] | None:
    """Why a call of this tool may not use its connection, in a code and a sentence; None when it may. What is missing
    is put before a person. Inside the caller's scope."""
    if not tool.connection:
        return None
    try:
        row = account_for(tool.connection)
    except SilasError as none:
        return none.code, none.message
    more = rules.missing(tool.permissions, row.permissions_granted)
    if not more or _grant_for(row, more) is not None:
        return None
    record(AuditEvent.CONNECTION_REFUSED, subject=f"connection:{row.pk}", data={"reason": "connection_permission"})
    asked = f"widen:{row.pk}:{':'.join(sorted(more))}:{now():%Y%m%d%H}"[:128]
    enqueue(WIDEN, row.pk, message_id=asked, permissions=tool.permissions)
    return "connection_permission", "The connected account may not do this. Somebody was asked to allow it."


def check_connection(tool_name: str, context: Any) -> tuple[str, str] | None:
    """For the guard, before anything is admitted: the tool as the caller's skills have it."""
    refs = [str(ref) for ref in (context or {}).get("skills") or ()]
    try:
        tool = next((each for each in skills.tools_for(refs) if each.name == tool_name), None)
    except SilasError:
        return None  # the call itself says what is wrong with its skills
    return refusal(tool) if tool is not None else None


def open_for_tool(ctx: CallContext, tool: ToolSpec) -> OpenedAccount:
    """The secrets of the tool's account, for this one guarded call. Raises `CallFailed`, effect-free."""
    assert tool.connection is not None
    try:
        with tenant_scope(ctx.tenant_id):
            row = _require_account(tool)
            Connection.objects.filter(pk=row.pk).update(last_used=now())
            return OpenedAccount(
                json.dumps(credentials.unseal_all(row.pk)).encode(),
                _egress(row, tool),
                {"SILAS_SETTINGS": json.dumps(row.settings), "SILAS_CONNECTION": str(row.pk)},
                row.pk,
            )
    except SilasError as refused:
        raise CallFailed(refused.code, refused.message, effect_free=True) from refused


def reach_of(tool: ToolSpec) -> tuple[str, tuple[str, ...]]:
    """On which account a call of this tool would run now, as people call it, and what it could reach there; as
    `open_for_tool` decides it. Nothing where no account is to be found."""
    try:
        row = account_for(tool.connection or "")
    except SilasError:
        return "", ()
    return str(row), _egress(row, tool)


def _egress(row: Connection, tool: ToolSpec) -> tuple[str, ...]:
    (version,) = skills.versions([row.skill])
    declared = SkillManifest.model_validate(version.manifest).requirements.network
    return scripts.egress_places(list(declared if tool.network is None else tool.network), row.settings)


def _require_account(tool: ToolSpec) -> Connection:
    row = account_for(tool.connection or "")
    more = rules.missing(tool.permissions, row.permissions_granted)
    if more and not _use_one_time_grant(row, more):
        raise SilasError("connection_permission", "The connected account may not do this.", status=409)
    return row


def _grant_for(row: Connection, more: Sequence[str]) -> OnceGrant | None:
    waiting = OnceGrant.objects.filter(connection=row, used_at=None, expires_at__gt=now())
    return next((grant for grant in waiting.order_by("created_at") if set(more) <= set(grant.permissions)), None)


def _use_one_time_grant(row: Connection, more: Sequence[str]) -> bool:
    """One execution, one use of the approval token; rivals take turns at the row."""
    grant = _grant_for(row, more)
    if grant is None or not OnceGrant.objects.filter(pk=grant.pk, used_at=None).update(used_at=now()):
        return False
    token = ApprovalToken.objects.get(pk=grant.token_id)
    spent = verify(token, payloads.approvable(ApprovalScope.CONNECTION_MANAGE, grant.payload))
    if spent.ok:
        record(AuditEvent.PERMISSION_ONCE, subject=f"connection:{row.pk}", data={"count": len(more)})
    return spent.ok


def store_for_tool(ctx: CallContext, account: UUID, handed: bytes) -> None:
    """What the tool's run handed back takes the place of what it was given: in the very account it ran with, however
    many there are by now, and in none that was removed meanwhile."""
    values = credentials.parse_handed_back(handed)
    with tenant_scope(ctx.tenant_id):
        row = lock_connection(account)
        if values and row.status != ConnectionStatus.REMOVED:
            credentials.store(row.pk, values)
