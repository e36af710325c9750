"""Assistance over the console and the REST API: what is escaped, who is refused, and what the model saw."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.test import Client
from django.urls import reverse

from apps.copilot.enums import AssistanceKind
from apps.sessions.models import ChatSession
from apps.tenants.enums import KeyScope
from apps.tenants.services import create_api_key
from kernel.tenancy import tenant_scope
from tests.factories.console import browser
from tests.factories.copilot import assist, modelled, records, switch_on, talked
from tests.factories.knowledge import ingest_texts
from tests.factories.tenants import make_member
from tests.fakes.openai_server import final

RETURNS = "# Returns\n\nYou can return an item within 30 days <script>alert(1)</script>.\n"


def address(session: ChatSession, name: str = "console-assist", *more: UUID) -> str:
    return reverse(name, args=[session.pk, *more])


@pytest.fixture
def session(tenant: Any, deployment: Any, tmp_path: Path) -> ChatSession:
    ingest_texts(tenant, tmp_path, returns=RETURNS)
    return talked(deployment, "How long do I have to return an item?")


def test_suggestion_is_shown_with_its_source_and_escaped(session: ChatSession, agent: Any) -> None:
    answer = browser(agent).post(address(session), {"kind": "suggest"})
    page = answer.content.decode()
    assert answer.status_code == 200
    assert "Suggested" in page
    assert "30 days" in page
    assert "Returns" in page
    assert "data-assist-insert" in page
    assert "<script>" not in page
    assert "no-store" in answer["Cache-Control"]


def test_refusal_is_shown_with_its_status(session: ChatSession, agent: Any) -> None:
    answer = browser(agent).post(address(session), {"kind": "friendlier", "text": "<b>No</b>"})
    assert answer.status_code == 409
    assert 'data-refusal="no_model"' in answer.content.decode()
    assert "This needs a model" in answer.content.decode()


def test_unknown_kind_is_refused(session: ChatSession, agent: Any) -> None:
    assert browser(agent).post(address(session), {"kind": "delete_all"}).status_code == 422
    assert records(session) == []


def test_menu_lists_what_is_switched_on(session: ChatSession, deployment: Any, agent: Any) -> None:
    switch_on(deployment, "summary")
    menu = browser(agent).get(address(session)).content.decode()
    assert 'data-assist="summary"' in menu
    assert 'data-assist="formal"' not in menu


def test_late_result_is_shown_to_its_member_alone(session: ChatSession, agent: Any, owner: Any) -> None:
    assist(session, agent, AssistanceKind.SUGGEST)
    late = f"{address(session)}?result"
    assert "30 days" in browser(agent).get(late).content.decode()
    assert browser(owner).get(late).content.decode().strip() == ""


def test_what_the_model_saw_is_listed(session: ChatSession, agent: Any) -> None:
    result = assist(session, agent, AssistanceKind.SUGGEST)
    page = browser(agent).get(address(session, "console-assist-seen", result.id)).content.decode()
    assert "How long do I have to return an item?" in page
    assert "within 30 days" in page
    assert "<script>alert" not in page


@pytest.mark.parametrize("who", ["viewer", "outsider"])
def test_pages_are_closed_to_others(session: ChatSession, agent: Any, who: str, request: Any) -> None:
    result = assist(session, agent, AssistanceKind.SUMMARY)
    if who == "outsider":
        other = request.getfixturevalue("other_tenant")
        with tenant_scope(other):
            client = browser(make_member(other, "owner"))
    else:
        client = browser(request.getfixturevalue(who))
    wanted = 404 if who == "outsider" else 403
    assert client.post(address(session), {"kind": "summary"}).status_code == wanted
    assert client.get(address(session)).status_code == wanted
    assert client.get(f"{address(session)}?result").status_code == wanted
    assert client.post(address(session, "console-assist-cancel", result.id)).status_code == wanted
    assert client.get(address(session, "console-assist-seen", result.id)).status_code == wanted
    assert len(records(session)) == 1


def test_conversation_offers_assistance_to_those_who_answer(session: ChatSession, agent: Any, viewer: Any) -> None:
    page = reverse("console-conversation", args=[session.pk])
    assert 'id="copilot"' in browser(agent).get(page).content.decode()
    assert 'id="copilot"' not in browser(viewer).get(page).content.decode()


# The REST API.


def program(tenant: Any, *scopes: KeyScope) -> Client:
    with tenant_scope(tenant):
        made = create_api_key("Desk", scopes=scopes)
    return Client(headers={"Authorization": f"Bearer {made.key}"})


def test_program_gets_a_suggestion_with_sources_and_cost(tenant: Any, session: ChatSession) -> None:
    client = program(tenant, KeyScope.SESSIONS_READ, KeyScope.SESSIONS_WRITE)
    place = reverse("api-session-assistance", args=[session.pk])
    answer = client.post(place, {"kind": "suggest"}, content_type="application/json")
    assert answer.status_code == 200
    told = answer.json()
    assert "30 days" in told["text"]
    assert [source["title"] for source in told["sources"]] == ["Returns"]
    assert told["cost_usd"] == "0.000000000"
    listed = client.get(place).json()
    assert "suggest" in listed["kinds"]
    assert [row["id"] for row in listed["requests"]] == [told["id"]]
    assert "30 days" not in str(listed)
    cancelled = client.post(reverse("api-session-assistance-cancel", args=[session.pk, told["id"]]))
    assert cancelled.json() == {"cancelled": False}


def test_program_is_charged_for_a_priced_model(tenant: Any, provider: Callable[..., Any]) -> None:
    session = talked(modelled(tenant), "Hi")
    client = program(tenant, KeyScope.SESSIONS_WRITE)
    body = {"kind": "formal", "text": "Hey", "id": str(uuid4())}
    with provider(final({"text": "Dear customer"})):
        answer = client.post(
            reverse("api-session-assistance", args=[session.pk]), body, content_type="application/json"
        )
    assert answer.json()["text"] == "Dear customer"
    assert answer.json()["id"] == body["id"]
    assert float(answer.json()["cost_usd"]) > 0


def test_program_without_the_scope_is_refused(tenant: Any, session: ChatSession) -> None:
    place = reverse("api-session-assistance", args=[session.pk])
    answer = program(tenant, KeyScope.SESSIONS_READ).post(place, {"kind": "summary"}, content_type="application/json")
    assert answer.status_code == 403
    assert answer.json()["error"]["code"] == "forbidden_scope"
    assert records(session) == []


def test_program_of_another_company_finds_nothing(other_tenant: Any, session: ChatSession) -> None:
    client = program(other_tenant, KeyScope.SESSIONS_READ, KeyScope.SESSIONS_WRITE)
    place = reverse("api-session-assistance", args=[session.pk])
    assert client.post(place, {"kind": "summary"}, content_type="application/json").status_code == 404
    assert client.get(place).status_code == 404


def test_answer_with_an_idempotency_key_is_not_stored(tenant: Any, session: ChatSession) -> None:
    client = program(tenant, KeyScope.SESSIONS_WRITE)
    place = reverse("api-session-assistance", args=[session.pk])
    headers = {"Idempotency-Key": "one"}
    first = client.post(place, {"kind": "summary"}, content_type="application/json", headers=headers)
    again = client.post(place, {"kind": "summary"}, content_type="application/json", headers=headers)
    assert first.status_code == 200
    assert again.status_code == 409
    assert again.json()["error"]["code"] == "answer_not_kept"
    assert len(records(session)) == 1
