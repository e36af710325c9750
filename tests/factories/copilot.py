"""Conversations in which staff ask for assistance."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from apps.audit.models import AuditEntry
from apps.copilot import services
from apps.copilot.enums import AssistanceKind
from apps.copilot.models import Assistance, AssistanceSettings
from apps.copilot.schemas import AssistanceRequest, AssistanceResult
from apps.gates.schemas import GateSpec
from apps.sessions.models import ChatSession
from apps.tenants.models import Deployment
from kernel.tenancy import tenant_scope
from tests.factories.pauses import gated
from tests.factories.sessions import say, served
from tests.factories.tenants import make_deployment

MODEL = "openai-chat:gpt-4o-mini"
PAID = {"proxy": MODEL, "planner": MODEL, "executor": "builtin:grounded"}


def modelled(tenant: Any, **fields: Any) -> Deployment:
    """A chatbot with a priced model, which may use the provider's key of this process."""
    return make_deployment(tenant, model_names=PAID, environment_keys=True, **fields)


def talked(deployment: Deployment, *lines: str, gates: tuple[GateSpec, ...] = ()) -> ChatSession:
    """A conversation in which the visitor said the lines, looked at by the gates, while a person answers: no bot
    speaks in it."""
    session = gated(deployment, *gates)
    with tenant_scope(deployment.tenant_id):
        ChatSession.objects.filter(pk=session.pk).update(owner="human")
    for line in lines:
        say(session, line)
    asyncio.run(served(session))
    with tenant_scope(deployment.tenant_id):
        row: ChatSession = ChatSession.objects.get(pk=session.pk)
    return row


def assist(session: ChatSession, by: Any, kind: AssistanceKind, text: str = "", **fields: Any) -> AssistanceResult:
    request = AssistanceRequest(kind, text, **fields)
    return asyncio.run(services.assist(session.tenant_id, session.pk, by, request))


def switch_on(deployment: Deployment, *kinds: str) -> None:
    """The members of this chatbot have these kinds of assistance and no other."""
    with tenant_scope(deployment.tenant_id):
        off = sorted(set(AssistanceKind.values) - set(kinds))
        AssistanceSettings.objects.create(deployment=deployment, switched_off=off)


def records(session: ChatSession) -> list[Assistance]:
    with tenant_scope(session.tenant_id):
        return list(Assistance.objects.filter(session_id=session.pk).order_by("created_at"))


def audited(session: ChatSession, event: str) -> list[dict[str, Any]]:
    with tenant_scope(session.tenant_id):
        rows = AuditEntry.objects.filter(subject=f"session:{session.pk}", event=event).order_by("seq")
        return [json.loads(data) for data in rows.values_list("data", flat=True)]
