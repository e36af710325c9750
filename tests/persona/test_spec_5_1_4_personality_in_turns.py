"""Spec 5.1.4: a personality shapes what models are told, and changes no decision."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import async_to_sync

from apps.access.rules import AccessController, Grant
from apps.approvals.models import ApprovalToken, Card
from apps.audit.enums import AuditEvent
from apps.audit.models import AuditEntry
from apps.persona import queries, services
from apps.persona.enums import Axis, EventType, Preset
from apps.sessions import chronicle, prompt_trace, proposals, turn
from apps.sessions.enums import EntryKind, Sender
from apps.sessions.locks import lock_session
from apps.sessions.models import ChatSession, Turn
from apps.sessions.services import accept_message
from apps.sessions.steps.answer import briefing_of
from apps.tenants.models import Deployment
from apps.work.models import WorkItem
from kernel.clock import now
from kernel.taint import Taint
from kernel.tenancy import tenant_scope
from llm.schemas import AgentResponse, PlanAction
from tests.factories.sessions import answered, make_session, say, served
from tests.factories.work import Desk, make_desk, note, plan

LOWEST, HIGHEST = dict.fromkeys(Axis.values, 0.0), dict.fromkeys(Axis.values, 1.0)


def briefed(deployment: Deployment, text: str = "What is my excess?") -> str:
    """What a model is told of the personality for this message."""
    session = make_session(deployment)
    say(session, text)
    with tenant_scope(deployment.tenant_id):
        state = turn.open_turn(session.pk, consumer="test")
        assert state is not None
        return briefing_of(state, "").persona


def test_deployment_without_a_personality_has_its_own_sentences_only(deployment: Deployment) -> None:
    assert briefed(deployment) == deployment.persona


def test_personality_is_told_after_the_deployments_own_sentences(tenant: Any, deployment: Deployment) -> None:
    with tenant_scope(tenant):
        services.set_axes(deployment, HIGHEST, actor="user:1")
    told = briefed(deployment)
    assert told.startswith(deployment.persona)
    assert "Write formally." in told
    assert "It never changes what is allowed" in told


def test_emergency_makes_answers_short_and_serious(tenant: Any, deployment: Deployment) -> None:
    with tenant_scope(tenant):
        services.set_axes(deployment, {"verbosity": 0.5, "humor": 0.5}, actor="user:1")
    told = briefed(deployment, "URGENT, my kitchen is flooded")
    assert "Keep answers short" in told
    assert "Do not joke" in told


def _decisions(desk: Desk, value: float) -> dict[str, object]:
    """Everything that is decided about a plan which a verified visitor's model proposes."""
    session = make_session(desk.deployment)
    with tenant_scope(desk.tenant):
        ChatSession.objects.filter(pk=session.pk).update(customer=desk.customer)
        accept_message(session.pk, text="Please note it")
    with tenant_scope(desk.tenant):
        state = turn.open_turn(session.pk, consumer="test")
        assert state is not None
        grant = Grant("verified", now().replace(year=now().year + 1), {"identity": None}, desk.customer)
        state.access = AccessController(state.policy.levels, grant)
        deployment, state.session = state.session.deployment, lock_session(state.session.pk)
        state.session.deployment = deployment
        action = PlanAction(action="propose", plan_markdown=plan(note(value)))
        state.response = AgentResponse(message="I have prepared it.", plan_action=action)
        proposals.screen(state, language="en")
        proposals.propose(state)
        allowed, policy = sorted(state.access.allowed_tools()), state.policy
    with tenant_scope(desk.tenant):
        item = WorkItem.objects.get(session_id=session.pk)
        card = Card.objects.get(subject_id=item.pk)
        tokens = ApprovalToken.objects.count()
    return {
        "status": item.status,
        "mode": item.spec.interaction_mode,
        "risk": card.risk,
        "kind": card.kind,
        "tokens": tokens,
        "tools": allowed,
        "policy": policy,
    }


def test_style_never_changes_policy(tenant: Any, tmp_path: Path) -> None:
    desk = make_desk(tenant, tmp_path)
    plain = _decisions(desk, 1)
    assert plain["tokens"] == 0
    for value, axes in enumerate((LOWEST, HIGHEST), start=2):
        with tenant_scope(tenant):
            services.set_axes(desk.deployment, axes, actor="user:1")
        assert _decisions(desk, value) == plain
    for value, preset in enumerate((Preset.DEFAULT, Preset.WORK, Preset.REVIEW, Preset.CHILL), start=4):
        with tenant_scope(tenant):
            services.choose_preset(desk.deployment, preset, actor="user:1")
        assert _decisions(desk, value) == plain


@pytest.fixture
def thanked(tenant: Any, deployment: Deployment) -> ChatSession:
    """A conversation with a personality whose visitor said thanks."""
    with tenant_scope(tenant):
        services.choose_preset(deployment, Preset.WORK, actor="user:1")
    return async_to_sync(answered)(deployment, "Thank you, well done")


def test_turn_moves_the_mood_of_its_conversation(tenant: Any, thanked: ChatSession) -> None:
    with tenant_scope(tenant):
        assert ChatSession.objects.get(pk=thanked.pk).mood["energy"] == pytest.approx(0.6)


def test_turn_records_register_mode_and_tone(tenant: Any, thanked: ChatSession) -> None:
    with tenant_scope(tenant):
        entry = AuditEntry.objects.get(event=AuditEvent.TURN_COMPLETED)
    data = json.loads(entry.data)
    assert data["mode"] in ("default_and_offer", "act_and_report", "confirm_only_when_required")
    assert data["register"] in ("exploration", "execution", "review", "status")
    assert data["tone"].startswith("default:")


def test_what_the_model_saw_shows_the_sentences(tenant: Any, thanked: ChatSession) -> None:
    with tenant_scope(tenant):
        record = Turn.objects.get(session_id=thanked.pk).context
        assert record is not None
        (item,) = [one for one in record["zones"]["system"]["items"] if one["id"].startswith("tone:")]
        (kept,) = prompt_trace._tones(thanked, [item["id"]]).values()
    assert "Write formally." in kept.text


def say_and_serve(session: ChatSession, text: str) -> None:
    say(session, text)
    async_to_sync(served)(session)


def test_work_that_was_done_since_the_last_message_lifts_the_mood(tenant: Any, thanked: ChatSession) -> None:
    with tenant_scope(tenant):
        ChatSession.objects.filter(pk=thanked.pk).update(mood={})
        session = lock_session(thanked.pk)
        told = {"status": "done", "title": "Change the address"}
        chronicle.append(
            session, kind=EntryKind.STATUS, sender=Sender.SYSTEM, text="Done.", payload=told, taint=Taint.AUTH
        )
    say_and_serve(thanked, "What is my excess?")
    with tenant_scope(tenant):
        kinds = [event.event_type for event in queries.newest_events(thanked.deployment_id)]
        assert kinds[0] == EventType.TASK_COMPLETED
        assert ChatSession.objects.get(pk=thanked.pk).mood["energy"] == 0.55
        ChatSession.objects.filter(pk=thanked.pk).update(mood={})
    say_and_serve(thanked, "And when does it end?")
    with tenant_scope(tenant):
        assert len(queries.newest_events(thanked.deployment_id)) == len(kinds)


def test_teammate_in_the_conversation_makes_it_a_group_chat(tenant: Any, thanked: ChatSession) -> None:
    with tenant_scope(tenant):
        session = lock_session(thanked.pk)
        chronicle.append(session, kind=EntryKind.MESSAGE, sender=Sender.HUMAN, text="I am here too.", taint=Taint.AUTH)
    say_and_serve(thanked, "What is my excess?")
    with tenant_scope(tenant):
        entry = AuditEntry.objects.filter(event=AuditEvent.TURN_COMPLETED).order_by("-seq").first()
    assert json.loads(entry.data)["tone"].startswith("group_chat:")
