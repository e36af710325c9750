"""The `connection_permission` policy as the guard asks it: before anything is admitted, spent or run (spec 5.10.2)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from apps.approvals.models import Card
from apps.connections import credentials
from apps.connections.models import Connection
from apps.guard import services as guard
from apps.guard.enums import Intent, Origin
from apps.guard.models import GuardedRun, SpendEntry, ToolCall
from apps.guard.schemas import Call, Done, RunRef
from apps.skills import queries
from apps.skills import rules as skill_rules
from kernel.tenancy import tenant_scope
from tests.connections.links import make_skill, said_yes
from tests.connections.test_setup import attend_owed
from tests.factories.connections import make_connection, reread
from tests.factories.skills import install, make_folder, read_tool

USES = """
import json, os
held = json.loads(os.fdopen(int(os.environ["SILAS_SECRET_FD"])).readline())
print(json.dumps({"letters": len(held["token"])}))
"""


@pytest.fixture
def row(tenant: Any, tmp_path: Path) -> Connection:
    """An account that may read, and a tool that wants to send."""
    version = make_skill(tenant)
    tools = [read_tool(records=[], connection="test-link", permissions=["Mail.Send"])]
    install(tenant, make_folder(tmp_path, tools=tools, files={"scripts/look.py": USES}))
    made = make_connection(tenant, skill=skill_rules.reference(version.name, version.digest))
    with tenant_scope(tenant):
        credentials.store(made.pk, {"token": "twelve-chars"})
    return made


def called(tenant: Any) -> Any:
    with tenant_scope(tenant):
        run = guard.open_run(Origin.CHAT, uuid4(), deployment_id=None)
        context = {"customer": "", "skills": queries.pin(["test-desk"])}
    call = Call(tool="look", args={}, access=frozenset({"look"}))
    return asyncio.run(guard.guarded_call(RunRef(tenant.pk, run.pk), Intent.RUN_SKILL, call, context=context))


def test_call_without_its_permission_is_refused_before_it_costs_anything(tenant: Any, row: Connection) -> None:
    refused = called(tenant)
    assert refused.gate == "connection_permission"
    assert "have this permission" in refused.reason
    with tenant_scope(tenant):
        (kept,) = ToolCall.objects.filter(tool="look")
        (run,) = GuardedRun.objects.all()
        assert not SpendEntry.objects.exists()
    assert kept.state == "denied"
    assert run.calls == 0
    assert reread(row).last_used is None


def test_approval_for_once_lets_one_call_through(tenant: Any, row: Connection, owner: Any) -> None:
    called(tenant)
    attend_owed(tenant)
    said_yes(tenant, row, owner, "just_this_once")
    done = called(tenant)
    assert isinstance(done, Done)
    assert done.value == {"letters": len("twelve-chars")}
    assert called(tenant).gate == "connection_permission"
    assert reread(row).permissions_granted == ["Mail.Read"]


def test_many_refused_calls_ask_once(tenant: Any, row: Connection) -> None:
    for _ in range(3):
        called(tenant)
    attend_owed(tenant)
    with tenant_scope(tenant):
        (card,) = Card.objects.all()
    assert card.kind == "permission_escalation"
    assert card.payload["after"] == ["Mail.Read", "Mail.Send"]


def test_call_without_any_account_is_refused_by_the_gate(tenant: Any, row: Connection) -> None:
    with tenant_scope(tenant):
        Connection.objects.update(status="paused")
    assert called(tenant).gate == "connection_missing"
