"""One trace leads from what a visitor wrote to what was done about it, unchanged on every hop (spec 19.2.1)."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

from apps.access.rules import AccessController, Grant
from apps.audit.enums import AuditEvent
from apps.audit.models import AuditEntry
from apps.bus.models import QueueMessage
from apps.sessions import proposals, services, turn
from apps.sessions.locks import lock_session
from apps.sessions.models import ChatSession, ChronicleEntry
from apps.work.models import WorkItem
from kernel.clock import now
from kernel.tenancy import tenant_scope
from llm.schemas import AgentResponse, PlanAction
from tests.factories.sessions import make_session
from tests.factories.work import Desk, make_desk, note, plan

TRACE = "trace-of-one-wish"


def wish(desk: Desk) -> WorkItem:
    """A verified visitor writes, and the turn's model proposes a plan."""
    session = make_session(desk.deployment)
    with tenant_scope(desk.tenant):
        ChatSession.objects.filter(pk=session.pk).update(customer=desk.customer)
        services.accept_message(session.pk, text="Please note it", trace_id=TRACE)
    with tenant_scope(desk.tenant):
        state = turn.open_turn(session.pk, consumer="test")
        assert state is not None
        grant = Grant("verified", now() + timedelta(hours=1), {"identity": None}, desk.customer)
        state.access = AccessController(state.policy.levels, grant)
        deployment, state.session = state.session.deployment, lock_session(state.session.pk)
        state.session.deployment = deployment
        action = PlanAction(action="propose", plan_markdown=plan(note()))
        state.response = AgentResponse(message="I have prepared it.", plan_action=action)
        proposals.screen(state, language="en")
        proposals.propose(state)
    with tenant_scope(desk.tenant):
        item: WorkItem = WorkItem.objects.get(session_id=session.pk)
    return item


def traces(desk: Desk, item: WorkItem) -> dict[str, set[str]]:
    """Every hop's trace, by where it was found."""
    with tenant_scope(desk.tenant):
        messages = QueueMessage.objects.filter(kind__in=["user_message", "execution_request"])
        found = {kind: {trace} for kind, trace in messages.values_list("kind", "trace_id")}
        queued = AuditEntry.objects.filter(event=AuditEvent.MESSAGE_QUEUED)
        told = ChronicleEntry.objects.filter(session_id=item.session_id, kind="status").order_by("seq").last()
        assert told is not None
        assert told.payload["status"] == "done"
        about = WorkItem.objects.get(pk=told.payload["work_item_id"])
        written = {json.loads(entry.data)["trace"] for entry in queued if "execution_request" in entry.data}
    return {
        **found,
        "card": {desk.item(desk.card(item).subject_id).trace_id},
        "audit": written,
        "status": {about.trace_id},
    }


def test_trace_of_a_wish_is_the_same_on_every_hop_to_its_status(tenant: Any, approver: Any, tmp_path: Path) -> None:
    desk = make_desk(tenant, tmp_path)
    item = wish(desk)
    desk.decide(item, approver)
    desk.work()
    hops = ("user_message", "card", "execution_request", "audit", "status")
    assert traces(desk, item) == {hop: {TRACE} for hop in hops}
