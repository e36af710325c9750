"""Proactive messages: who may change them, what the widget is told, and when one becomes part of a conversation."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import pytest
from django.db import IntegrityError, transaction
from django.test import Client

from apps.audit.models import AuditEntry
from apps.inbox import handoff
from apps.sessions.models import ChatSession, ChronicleEntry
from apps.sessions.services import accept_message
from apps.tenants.enums import KeyScope
from apps.tenants.models import Deployment
from apps.visitors import chatbots, proactive_messages
from apps.visitors.models import ProactiveMessage
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope
from tests.factories.api import Api, code
from tests.factories.sessions import make_session, say
from tests.factories.tenants import make_deployment, make_member
from tests.factories.visitors import make_proactive_message


@pytest.fixture
def api(tenant: Any) -> Api:
    make_member(tenant, "owner")
    return Api(tenant, KeyScope.DEPLOYMENTS_READ, KeyScope.DEPLOYMENTS_WRITE)


@pytest.fixture
def path(deployment: Deployment) -> str:
    return f"/api/v1/deployments/{deployment.pk}/proactive-messages"


def _offered(deployment: Deployment) -> list[dict[str, Any]]:
    answer = Client().get(f"/api/v1/widget/{deployment.public_key}/offers")
    found: list[dict[str, Any]] = answer.json()["proactive_messages"]
    return found


def _answer(session: ChatSession, message_id: Any, *, client_id: str = "a") -> list[tuple[str, str]]:
    """Answer the message; what the conversation then says."""
    with tenant_scope(session.tenant_id):
        accept_message(session.pk, text="Yes, please", client_id=client_id, proactive_message=message_id)
    with tenant_scope(session.tenant_id):
        said = ChronicleEntry.objects.filter(session=session, kind="message").order_by("seq")
        return list(said.values_list("sender", "text"))


def _count(message: ProactiveMessage) -> int:
    with tenant_scope(message.tenant_id):
        return ProactiveMessage.objects.get(pk=message.pk).answered_count


# --- what the widget is told


def test_widget_is_told_of_active_messages_of_its_own_deployment_alone(tenant: Any, deployment: Deployment) -> None:
    shown = make_proactive_message(deployment, page="/pricing", audience="new", language="de", repeat_days=7)
    make_proactive_message(deployment, text="Not yet", is_active=False)
    make_proactive_message(make_deployment(tenant), text="Of another chatbot")
    assert _offered(deployment) == [
        {
            "id": str(shown.pk),
            "text": "Questions about our prices?",
            "page": "/pricing",
            "seconds": 10,
            "audience": "new",
            "language": "de",
            "repeat_days": 7,
        }
    ]


def test_foreign_site_is_not_told(deployment: Deployment) -> None:
    make_proactive_message(deployment)
    address = f"/api/v1/widget/{deployment.public_key}/offers"
    assert Client().get(address, headers={"origin": "https://evil.test"}).status_code == 403


# --- what becomes of it in a conversation


def test_answered_message_is_recorded_before_the_answer_and_counted(deployment: Deployment) -> None:
    message = make_proactive_message(deployment)
    session = make_session(deployment)
    assert _answer(session, message.pk) == [("bot", "Questions about our prices?"), ("visitor", "Yes, please")]
    assert _count(message) == 1


def test_answer_that_is_sent_twice_records_the_message_once(deployment: Deployment) -> None:
    message = make_proactive_message(deployment)
    session = make_session(deployment)
    _answer(session, message.pk)
    assert len(_answer(session, message.pk)) == 2
    assert _count(message) == 1


def test_conversation_has_a_message_once_however_often_it_is_answered(deployment: Deployment) -> None:
    message = make_proactive_message(deployment)
    session = make_session(deployment)
    _answer(session, message.pk)
    senders = [sender for sender, _ in _answer(session, message.pk, client_id="b")]
    assert senders == ["bot", "visitor", "visitor"]
    assert _count(message) == 1


def test_message_in_a_running_conversation_stands_before_its_answer(deployment: Deployment) -> None:
    message = make_proactive_message(deployment)
    session = make_session(deployment)
    say(session, "Hello")
    assert _answer(session, message.pk)[-2:] == [("bot", "Questions about our prices?"), ("visitor", "Yes, please")]


def test_message_of_another_deployment_says_nothing_here(tenant: Any, deployment: Deployment) -> None:
    foreign = make_proactive_message(make_deployment(tenant))
    assert _answer(make_session(deployment), foreign.pk) == [("visitor", "Yes, please")]
    assert _count(foreign) == 0


def test_message_of_another_tenant_says_nothing_here(other_tenant: Any, deployment: Deployment) -> None:
    foreign = make_proactive_message(make_deployment(other_tenant))
    assert _answer(make_session(deployment), foreign.pk) == [("visitor", "Yes, please")]
    assert _count(foreign) == 0


def test_message_that_is_off_or_unknown_says_nothing(deployment: Deployment) -> None:
    off = make_proactive_message(deployment, is_active=False)
    assert _answer(make_session(deployment), off.pk) == [("visitor", "Yes, please")]
    assert _answer(make_session(deployment), uuid4()) == [("visitor", "Yes, please")]


def test_message_says_nothing_where_a_person_answers(deployment: Deployment, agent: Any) -> None:
    message = make_proactive_message(deployment)
    session = make_session(deployment)
    say(session, "Hello")
    with tenant_scope(deployment.tenant_id):
        handoff.take_over(session.pk, agent)
    assert ("bot", "Questions about our prices?") not in _answer(session, message.pk)


def test_test_conversation_is_not_counted(deployment: Deployment) -> None:
    message = make_proactive_message(deployment)
    session = make_session(deployment)
    with tenant_scope(deployment.tenant_id):
        ChatSession.objects.filter(pk=session.pk).update(is_test=True)
    assert len(_answer(session, message.pk)) == 2
    assert _count(message) == 0


# --- who may change them


def test_message_is_created_off_read_changed_and_deleted(tenant: Any, api: Api, path: str, deployment: Any) -> None:
    made = api.post(path, {"text": " Need  help? ", "page": "https://shop.example.com/cart*"})
    assert made.status_code == 201
    assert made.json()["text"] == "Need help?"
    assert made.json()["page"] == "shop.example.com/cart*"
    assert made.json()["is_active"] is False
    one = f"{path}/{made.json()['id']}"
    assert api.get(one)["ETag"] == made["ETag"]
    changed = api.patch(one, {"is_active": True, "seconds": 0}, if_match=made["ETag"])
    assert changed.status_code == 200
    assert changed.json()["seconds"] == 0
    assert code(api.patch(one, {"seconds": 5}, if_match=made["ETag"])) == (412, "changed_meanwhile")
    assert [row["id"] for row in api.get(path).json()["proactive_messages"]] == [made.json()["id"]]
    assert api.delete(one).status_code == 204
    assert code(api.get(one)) == (404, "not_found")
    assert _offered(deployment) == []


@pytest.mark.parametrize(
    ("body", "refused"),
    [
        ({}, "invalid"),
        ({"text": ""}, "invalid"),
        ({"text": "a" * 301}, "invalid"),
        ({"text": "a", "page": "/a b"}, "invalid_offers"),
        ({"text": "a", "page": "/a?b=1"}, "invalid_offers"),
        ({"text": "a", "page": "/a#b"}, "invalid_offers"),
        ({"text": "a\u202eb"}, "invalid_offers"),
        ({"text": "a", "seconds": -1}, "invalid"),
        ({"text": "a", "seconds": 3601}, "invalid"),
        ({"text": "a", "seconds": "soon"}, "invalid"),
        ({"text": "a", "repeat_days": 366}, "invalid"),
        ({"text": "a", "audience": "everybody"}, "invalid"),
        ({"text": "a", "language": "tlh"}, "invalid"),
        ({"text": "a", "answered_count": 5}, "invalid"),
    ],
)
def test_message_that_makes_no_sense_is_refused(api: Api, path: str, body: dict[str, Any], refused: str) -> None:
    assert code(api.post(path, body)) == (400, refused)
    assert api.get(path).json()["proactive_messages"] == []


def test_number_of_messages_is_limited(api: Api, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proactive_messages, "MOST_MESSAGES", 1)
    assert api.post(path, {"text": "One"}).status_code == 201
    assert code(api.post(path, {"text": "Two"})) == (409, "too_many")


def test_message_is_not_found_by_another_tenant_or_at_another_chatbot(
    tenant: Any, other_tenant: Any, api: Api, path: str, deployment: Any
) -> None:
    message = make_proactive_message(deployment)
    elsewhere = f"/api/v1/deployments/{make_deployment(tenant).pk}/proactive-messages/{message.pk}"
    stranger = Api(other_tenant, KeyScope.DEPLOYMENTS_READ, KeyScope.DEPLOYMENTS_WRITE)
    for caller, address in ((api, elsewhere), (stranger, f"{path}/{message.pk}")):
        assert code(caller.get(address)) == (404, "not_found")
        assert code(caller.patch(address, {"text": "Mine"})) == (404, "not_found")
        assert code(caller.delete(address)) == (404, "not_found")
    assert code(stranger.get(path)) == (404, "not_found")
    assert code(stranger.post(path, {"text": "Mine"})) == (404, "not_found")


def test_reading_and_writing_need_their_scopes(tenant: Any, path: str) -> None:
    reader, other = Api(tenant, KeyScope.DEPLOYMENTS_READ), Api(tenant, KeyScope.AUDIT_READ)
    assert reader.get(path).status_code == 200
    assert code(reader.post(path, {"text": "a"})) == (403, "forbidden_scope")
    assert code(other.get(path)) == (403, "forbidden_scope")


def test_change_is_in_the_log_without_the_text(tenant: Any, api: Api, path: str, deployment: Any) -> None:
    made = api.post(path, {"text": "Secret offer"}).json()["id"]
    api.patch(f"{path}/{made}", {"text": "Secret offer"})
    api.delete(f"{path}/{made}")
    with tenant_scope(tenant):
        entries = list(AuditEntry.objects.filter(event="offers_changed").order_by("seq"))
    assert [entry.subject for entry in entries] == [f"deployment:{deployment.pk}"] * 2
    assert json.loads(entries[0].data)["changed"]["is_active"] == [False, False]
    assert json.loads(entries[1].data) == {"proactive_message": made, "deleted": True}
    assert "Secret" not in entries[0].data


def test_chatbot_like_another_has_its_messages(tenant: Any, deployment: Any) -> None:
    make_proactive_message(deployment)
    with tenant_scope(tenant):
        made = chatbots.create_chatbot("Shop", like=deployment, actor="user:test")
        (copied,) = proactive_messages.messages_of(made.pk)
    assert copied.text == "Questions about our prices?"
    assert copied.is_active


def test_database_holds_the_bounds(tenant: Any, deployment: Any) -> None:
    for wrong in ({"text": ""}, {"seconds": 3601}, {"repeat_days": 366}):
        with tenant_scope(tenant), pytest.raises(IntegrityError), transaction.atomic():
            ProactiveMessage.objects.create(deployment=deployment, **{"text": "a", **wrong})


def test_refusal_names_the_field(tenant: Any, deployment: Any) -> None:
    with tenant_scope(tenant), pytest.raises(SilasError) as refused:
        proactive_messages.create(deployment, actor="user:test", text="a", page="/a b")
    assert list(refused.value.extra["fields"]) == ["page"]
