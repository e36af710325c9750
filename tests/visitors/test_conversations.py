"""A visitor's other conversations: one token must never open another's."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from apps.sessions.models import ChatSession, ChronicleEntry
from apps.sessions.services import start_session
from apps.tenants.models import Deployment
from apps.visitors.models import VisitorCard
from apps.work.models import WorkItem
from kernel.clock import now
from kernel.tenancy import tenant_scope
from tests.factories.sessions import make_session, say
from tests.factories.tenants import make_deployment
from tests.factories.visitors import Browser, offer, refused


@pytest.fixture
def open_house(deployment: Deployment) -> Deployment:
    offer(deployment, conversations=True)
    return deployment


def begun(deployment: Deployment, *said: str) -> tuple[ChatSession, str]:
    """A conversation and its resume token."""
    started = start_session(deployment)
    with tenant_scope(deployment.tenant_id):
        session: ChatSession = ChatSession.objects.get(pk=started.session_id)
    for text in said:
        say(session, text)
    return session, started.resume_token


def _listed(deployment: Deployment, session: ChatSession, *resume_tokens: str) -> Any:
    return Browser(deployment, session).post("conversations", {"resume_tokens": list(resume_tokens)})


def _named(session: ChatSession, customer: str) -> None:
    with tenant_scope(session.tenant_id):
        ChatSession.objects.filter(pk=session.pk).update(last_customer=customer)


def test_conversation_is_not_listed_without_its_own_token(open_house: Deployment) -> None:
    begun(open_house, "Secret of somebody else")
    mine, token = begun(open_house, "Mine")
    assert [each["preview"] for each in _listed(open_house, mine, token).json()] == ["Mine"]


@pytest.mark.parametrize("guess", ["", "guess", "' OR 1=1", "x" * 128])
def test_guessed_token_lists_nothing(open_house: Deployment, guess: str) -> None:
    mine, _ = begun(open_house, "Mine")
    assert _listed(open_house, mine, guess or "-").json() == []


def test_short_lived_token_of_another_conversation_lists_nothing(open_house: Deployment) -> None:
    theirs, _ = begun(open_house, "Theirs")
    mine, _ = begun(open_house, "Mine")
    assert _listed(open_house, mine, Browser(open_house, theirs).token[:128]).json() == []


def test_conversations_are_not_listed_without_a_token(open_house: Deployment) -> None:
    mine, token = begun(open_house, "Mine")
    visitor = Browser(open_house, mine)
    visitor.token = "forged"
    assert refused(visitor.post("conversations", {"resume_tokens": [token]})) == (401, "not_authenticated")


def test_conversation_of_another_deployment_is_not_listed(open_house: Deployment, tenant: Any) -> None:
    _, token = begun(make_deployment(tenant), "Elsewhere")
    mine, _ = begun(open_house, "Mine")
    assert _listed(open_house, mine, token).json() == []


def test_conversation_of_another_tenant_is_not_listed(open_house: Deployment, other_tenant: Any) -> None:
    _, token = begun(make_deployment(other_tenant), "Elsewhere")
    mine, _ = begun(open_house, "Mine")
    assert _listed(open_house, mine, token).json() == []


def test_conversation_of_another_customer_is_not_listed(open_house: Deployment) -> None:
    theirs, token = begun(open_house, "Theirs")
    mine, own = begun(open_house, "Mine")
    _named(theirs, "C-1")
    _named(mine, "C-2")
    assert [each["preview"] for each in _listed(open_house, mine, token, own).json()] == ["Mine"]


def test_conversations_are_listed_newest_first_with_their_place(open_house: Deployment) -> None:
    _, first = begun(open_house, "First")
    mine, second = begun(open_house, "Second", "and last")
    told = [(each["place"], each["preview"]) for each in _listed(open_house, mine, first, second).json()]
    assert told == [(1, "and last"), (0, "First")]


def test_conversation_in_which_nothing_was_said_is_not_listed(open_house: Deployment) -> None:
    mine, token = begun(open_house)
    assert _listed(open_house, mine, token).json() == []


def test_tokens_beyond_the_most_are_refused(open_house: Deployment) -> None:
    mine, token = begun(open_house, "Mine")
    assert _listed(open_house, mine, *[token] * 31).status_code == 400


def test_conversations_are_not_listed_where_they_are_not_offered(deployment: Deployment) -> None:
    mine, token = begun(deployment, "Mine")
    assert _listed(deployment, mine, token).status_code == 404


def test_each_conversation_is_its_own_session(open_house: Deployment) -> None:
    old, token = begun(open_house, "Old")
    path = f"/api/v1/widget/{open_house.public_key}/sessions"
    new = Client().post(path, {}, content_type="application/json").json()
    back = Client().post(path, {"resume_token": token}, content_type="application/json").json()
    assert back["session_id"] == str(old.pk)
    assert new["session_id"] != str(old.pk)


def test_token_of_a_disabled_deployment_opens_nothing(open_house: Deployment) -> None:
    visitor = Browser(open_house, make_session(open_house))
    with tenant_scope(open_house.tenant_id):
        Deployment.objects.filter(pk=open_house.pk).update(enabled=False)
    assert visitor.post("conversations", {"resume_tokens": []}).status_code == 404


def _marks(deployment: Deployment, session: ChatSession, token: str) -> dict[str, Any]:
    listed = _listed(deployment, session, token).json()[0]
    return {name: listed[name] for name in ("unread", "needs_answer", "awaits_approval")}


def test_unread_messages_of_bot_and_agents_are_counted(open_house: Deployment) -> None:
    mine, token = begun(open_house, "Mine")
    assert _marks(open_house, mine, token)["unread"] == 0
    with tenant_scope(mine.tenant_id):
        for number, sender in enumerate(("bot", "human", "system", "visitor"), start=2):
            ChronicleEntry.objects.create(
                session=mine, seq=number, kind="message", sender=sender, text="x", taint="external", created_at=now()
            )
        ChatSession.objects.filter(pk=mine.pk).update(seq=5)
    assert _marks(open_house, mine, token)["unread"] == 2
    with tenant_scope(mine.tenant_id):
        ChatSession.objects.filter(pk=mine.pk).update(visitor_read_seq=2)
    assert _marks(open_house, mine, token)["unread"] == 1


def test_question_that_waits_for_the_visitor_is_marked_until_it_expires(open_house: Deployment) -> None:
    mine, token = begun(open_house, "Mine")
    with tenant_scope(mine.tenant_id):
        card = VisitorCard.objects.create(
            session=mine,
            kind="decision",
            payload={},
            asked_by="user:test",
            created_at=now(),
            expires_at=now() + timedelta(hours=1),
        )
    assert _marks(open_house, mine, token)["needs_answer"] is True
    with tenant_scope(mine.tenant_id):
        VisitorCard.objects.filter(pk=card.pk).update(
            created_at=now() - timedelta(hours=2), expires_at=now() - timedelta(hours=1)
        )
    assert _marks(open_house, mine, token)["needs_answer"] is False


def test_request_that_waits_for_approval_is_marked(open_house: Deployment) -> None:
    mine, token = begun(open_house, "Mine")
    other, others_token = begun(open_house, "Other")
    with tenant_scope(mine.tenant_id):
        item = WorkItem.objects.create(
            session_id=mine.pk,
            type="task",
            title="Refund",
            plan="{}",
            plan_hash="0" * 64,
            trace_id="t",
            created_at=now(),
            updated_at=now(),
        )
    assert _marks(open_house, mine, token)["awaits_approval"] is True
    assert _marks(open_house, other, others_token)["awaits_approval"] is False
    with tenant_scope(mine.tenant_id):
        WorkItem.objects.filter(pk=item.pk).update(status="blocked", reason="declined")
    assert _marks(open_house, mine, token)["awaits_approval"] is False


def test_list_costs_the_same_queries_for_one_and_for_many(open_house: Deployment) -> None:
    mine, token = begun(open_house, "Mine")
    tokens = [token, *(begun(open_house, str(number))[1] for number in range(4))]
    with CaptureQueriesContext(connection) as one:
        _listed(open_house, mine, token)
    with CaptureQueriesContext(connection) as many:
        assert len(_listed(open_house, mine, *tokens).json()) == 5
    assert len(many) == len(one)
