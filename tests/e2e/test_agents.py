"""The story over AG-UI and A2A: a customer proves who they are, an approver decides, the work is done and told."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from a2a.types import a2a_pb2 as wire

from apps.approvals.cards.services import answer_card
from apps.approvals.models import Card
from apps.approvals.queries import face_hash
from apps.skills.models import Record
from apps.tenants.models import Deployment, Tenant, User
from kernel.tenancy import tenant_scope
from silas_platform import demo as demo_content
from tests.e2e.test_story import MARIA
from tests.protocols.conftest import Agent, make_agent, text_of, types_of, user
from tests.protocols.test_a2a import Other, message, state, waits_for

CLAIM = "What is the status of my claim CL-3071?"
CHANGE = "Please change the address on my policy HM-20418 to {address}"


@pytest.fixture
def meridian(database: None, seeded: dict[str, demo_content.Login]) -> Deployment:
    tenant = Tenant.objects.get(slug="meridian-insurance")
    with tenant_scope(tenant):
        deployment: Deployment = Deployment.objects.get()
    return deployment


@pytest.fixture
def approver(seeded: dict[str, demo_content.Login]) -> User:
    found: User = User.objects.get(email=seeded["meridian-insurance approver"].email)
    return found


@pytest.fixture
def agent(web: str, worker: None, meridian: Deployment) -> Agent:
    return make_agent(SimpleNamespace(url=web), meridian)  # type: ignore[arg-type]  # its address is all it takes


def approve(deployment: Deployment, card_id: str, approver: User) -> None:
    with tenant_scope(deployment.tenant_id):
        card = Card.objects.get(pk=card_id)
        answer_card(card.pk, user=approver, choice="approve", face=face_hash(card))


def address_of(deployment: Deployment) -> str:
    with tenant_scope(deployment.tenant_id):
        return str(Record.objects.get(key="HM-20418").data["address"])


def work(events: list[Any]) -> list[str]:
    return [event.content["status"] for event in events if event.type == "ACTIVITY_SNAPSHOT"]


def test_agui_resumes_with_the_approval_and_tells_of_the_work(
    agent: Agent, meridian: Deployment, approver: User
) -> None:
    address = "1 Agent Row, Leeds LS1 1AA"
    asked = agent.run(user(CLAIM))
    assert "verify your identity" in text_of(asked)
    proved = agent.run(user(MARIA))
    assert "CL-3071" in text_of(proved)
    assert "TOOL_CALL_RESULT" in types_of(proved)
    changes = [(each.path, each.value) for event in proved if event.type == "STATE_DELTA" for each in event.delta]
    assert ("/level", "verified") in changes
    change = user(CHANGE.format(address=address))
    (interrupt,) = agent.run(change)[-1].outcome.interrupts
    assert interrupt.reason == "approval_required"
    waiting = agent.start(change, resume=[{"interruptId": interrupt.id, "status": "resolved"}])
    waiting.wait_for("STATE_SNAPSHOT")
    approve(meridian, interrupt.id, approver)
    resumed = waiting.all()
    assert resumed[-1].outcome.type == "success"
    assert work(resumed)[-1] == "done"
    assert address_of(meridian) == address


def test_a2a_subscriber_is_told_of_the_work(agent: Agent, meridian: Deployment, approver: User) -> None:
    address, other = "2 Agent Row, Leeds LS1 1AA", Other(agent)
    context_id = other.task(message(CLAIM))["contextId"]
    other.task(message(MARIA, contextId=context_id))
    task = other.task(message(CHANGE.format(address=address), contextId=context_id))
    assert state(task) == "AUTH_REQUIRED"
    approve(meridian, waits_for(task)[0]["id"], approver)
    if state(other.get(task["id"])) == "WORKING":
        updates = other.ask("subscribe", wire.SubscribeToTaskRequest(id=task["id"]))
        assert state(updates[-1]["statusUpdate"]) == "COMPLETED"
    assert state(other.get(task["id"])) == "COMPLETED"
    assert address_of(meridian) == address
