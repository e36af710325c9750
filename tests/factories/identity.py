"""A desk that wants to know who somebody is: three customers, a script gate that knows them, and turns to talk in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from apps.gates.schemas import GateSpec
from apps.gates.services import save_gate
from apps.sessions import turn
from apps.sessions.models import ChatSession, ChronicleEntry
from apps.tenants.models import Deployment
from apps.work import services as work
from kernel.tenancy import in_scope, tenant_scope
from tests.factories.sessions import say
from tests.factories.skills import install, make_folder, read_tool, save_record
from tests.factories.tenants import make_deployment

VERIFY = """
import json, os
rows = json.load(open("/sandbox/records/customers.json"))
name, born = os.environ["CUSTOMER_NAME"].casefold(), os.environ["CUSTOMER_DOB"]
found = [row for row in rows if (row["data"]["name"].casefold(), row["data"]["born"]) == (name, born)]
print("verified" if found else "not verified")
for row in found:
    print("customer_id:", row["key"])
    print("customer_name:", row["data"]["name"])
"""
GATE = GateSpec(
    name="identity_verified",
    on="every_user_message",
    provider="script",
    type="custom_check",
    config={
        "script": "guards/verify_customer.py",
        "args_from_env": ["CUSTOMER_NAME", "CUSTOMER_DOB"],
        "records": ["customers"],
    },
    check_expect={"equals": "verified"},
    on_block="retry_verification",
)
GOAL = """---
id: goal
type: goal
title: Know who it is
schedule: always_on
skills: [test-desk]
access_levels:
  public: {tools: [knowledge_search]}
  verified: {tools: [knowledge_search, look], requires: [identity_verified], expires_after: 900}
escalation:
  retry_verification: {action: respond, message: I know nobody like that.}
---
Be kind.
"""
MARIA = "I am Maria Ortega, born 1984-03-12"
JONAS = "I am Jonas Berg, born 1979-11-02"


def make_identity_desk(tenant: Any, folder: Path) -> Deployment:
    install(tenant, make_folder(folder, tools=[read_tool()], files={"guards/verify_customer.py": VERIFY}))
    save_record(tenant, "customers", "C-1", subject="C-1", name="Maria Ortega", born="1984-03-12")
    save_record(tenant, "customers", "C-2", subject="C-2", name="Jonas Berg", born="1979-11-02")
    deployment = make_deployment(tenant)
    with tenant_scope(tenant):
        save_gate(GATE, deployment_id=deployment.pk)
        goal = work.adopt_goal(GOAL, deployment_id=deployment.pk, requested_by="user:test")
        deployment.active_goal_id = goal.pk
        deployment.save(update_fields=["active_goal_id"])
    return deployment


async def converse(session: ChatSession, *texts: str) -> ChatSession:
    """The visitor says each text and gets its turn; the session as it is afterwards."""
    for text in texts:
        await in_scope(session.tenant_id, _say, session, text)
        opened = await in_scope(session.tenant_id, turn.open_turn, session.pk, consumer="test")
        assert opened is not None
        await turn.run(opened)
    return await in_scope(session.tenant_id, _fresh, session)


async def last_words(session: ChatSession) -> str:
    """What the visitor read last."""
    return await in_scope(session.tenant_id, _last_words, session)


def _say(session: ChatSession, text: str) -> None:
    say(session, text)


def _fresh(session: ChatSession) -> ChatSession:
    row: ChatSession = ChatSession.objects.get(pk=session.pk)
    return row


def _last_words(session: ChatSession) -> str:
    said = ChronicleEntry.objects.filter(session_id=session.pk, kind="message").order_by("-seq")
    text: str = said.values_list("text", flat=True)[0]
    return text
