"""A tool uses an account only with approved permissions, and a one-time grant only once."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from uuid import uuid4

import pytest

from apps.approvals.models import ApprovalToken, TokenUse
from apps.connections import credentials, permissions
from apps.connections.enums import ConnectionStatus
from apps.connections.models import Connection, OnceGrant
from apps.guard import services as guard
from apps.guard.enums import Intent, Origin
from apps.guard.schemas import Call, CallContext, CallFailed, Failed
from apps.skills import rules as skill_rules
from apps.skills.schemas import ToolSpec
from kernel.tenancy import tenant_scope
from tests.connections.links import WITH_LETTERS, make_skill, said_yes
from tests.connections.test_setup import attend_owed
from tests.factories.connections import make_connection, reread


@pytest.fixture
def row(tenant: Any) -> Connection:
    version = make_skill(tenant)
    made = make_connection(tenant, skill=skill_rules.reference(version.name, version.digest), provider="mail")
    with tenant_scope(tenant):
        credentials.store(made.pk, {"token": "first"})
    return made


def tool(*permissions: str, connection: str = "test-link") -> ToolSpec:
    return ToolSpec(
        name="send",
        script="scripts/send.py",
        description="Send a message",
        connection=connection,
        permissions=list(permissions),
        skill="mailer@0123456789abcdef",
    )


def opened(tenant: Any, wanted: ToolSpec) -> dict[str, str]:
    ctx = CallContext(tenant.pk, uuid4(), uuid4(), wanted.name, {}, "", {})
    found: dict[str, str] = json.loads(permissions.open_for_tool(ctx, wanted).secret)
    return found


def refused(tenant: Any, wanted: ToolSpec) -> str:
    with pytest.raises(CallFailed) as no:
        opened(tenant, wanted)
    assert no.value.effect_free
    return no.value.code


def said(tenant: Any, wanted: ToolSpec) -> str:
    with tenant_scope(tenant):
        return (permissions.refusal(wanted) or ("",))[0]


def test_tool_with_its_permission_gets_the_accounts_secrets(tenant: Any, row: Connection) -> None:
    assert said(tenant, tool("Mail.Read")) == ""
    assert opened(tenant, tool("Mail.Read", connection="type:mail")) == {"token": "first"}
    assert reread(row).last_used is not None


@pytest.mark.parametrize("status", [one for one in ConnectionStatus if one != ConnectionStatus.ACTIVE])
def test_connection_that_is_not_active_gives_nothing(tenant: Any, row: Connection, status: ConnectionStatus) -> None:
    with tenant_scope(tenant):
        Connection.objects.update(status=status)
    assert said(tenant, tool()) == "connection_missing"
    assert refused(tenant, tool()) == "connection_missing"


def test_another_tenants_connection_gives_nothing(other_tenant: Any, row: Connection) -> None:
    assert refused(other_tenant, tool()) == "connection_missing"


@pytest.mark.parametrize(
    "leak", ["say({'letters': held['token']})", "raise RuntimeError(held['token'])", "say({'l': held['token'][::-1]})"]
)
def test_tool_that_tells_its_accounts_secret_fails_and_is_not_heard(tenant: Any, leak: str) -> None:
    version = make_skill(tenant, WITH_LETTERS, letters=leak)
    ref = skill_rules.reference(version.name, version.digest)
    made = make_connection(tenant, skill=ref, provider="mail")
    with tenant_scope(tenant):
        credentials.store(made.pk, {"token": "canary-3b1f-of-the-account"})
        run = guard.open_run(Origin.CHAT, uuid4(), deployment_id=None).ref
    call = Call(tool="letters", args={}, access=frozenset({"letters"}))
    context = {"customer": "", "skills": [ref]}
    outcome = asyncio.run(guard.guarded_call(run, Intent.RUN_SKILL, call, context=context))
    assert isinstance(outcome, Failed)
    assert outcome.code == "script_secret_leaked"
    assert "canary" not in repr(outcome)


def test_missing_permission_is_refused_and_asked_for_once(tenant: Any, row: Connection, owner: Any) -> None:
    wanted = tool("Mail.Send")
    assert [said(tenant, wanted) for _ in range(2)] == ["connection_permission"] * 2
    attend_owed(tenant)
    attend_owed(tenant)
    assert refused(tenant, wanted) == "connection_permission"
    setup = said_yes(tenant, row, owner)
    assert setup is not None
    assert setup.purpose == "widen"
    assert setup.wanted == ["Mail.Read", "Mail.Send"]
    assert reread(row).permissions_granted == ["Mail.Read"]


def test_just_this_once_opens_one_call_and_changes_nothing(tenant: Any, row: Connection, owner: Any) -> None:
    wanted = tool("Mail.Send")
    said(tenant, wanted)
    attend_owed(tenant)
    assert said_yes(tenant, row, owner, "just_this_once") is None
    assert said(tenant, wanted) == ""
    assert opened(tenant, wanted) == {"token": "first"}
    assert refused(tenant, wanted) == "connection_permission"
    with tenant_scope(tenant):
        assert ApprovalToken.objects.get().max_executions == 1
        assert TokenUse.objects.count() == 1
    assert reread(row).permissions_granted == ["Mail.Read"]


def test_denied_permission_stays_denied(tenant: Any, row: Connection, owner: Any) -> None:
    wanted = tool("Mail.Send")
    said(tenant, wanted)
    attend_owed(tenant)
    said_yes(tenant, row, owner, "decline")
    assert refused(tenant, wanted) == "connection_permission"
    with tenant_scope(tenant):
        assert OnceGrant.objects.count() == 0
