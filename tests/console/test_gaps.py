"""Knowledge gaps on the console's pages and over the API: who may do what, and what they see."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.urls import reverse

from apps.approvals.models import Card
from apps.knowledge import gaps
from apps.knowledge.enums import GapReason, GapStatus
from apps.knowledge.models import Collection, GapTopic
from apps.knowledge.services import open_collection
from apps.sessions import chronicle
from apps.sessions.enums import EntryKind, Sender
from apps.sessions.locks import lock_session
from kernel.taint import Taint
from kernel.tenancy import tenant_scope
from tests.factories.console import browser
from tests.factories.knowledge import ingest_texts
from tests.factories.sessions import make_session
from tests.factories.tenants import make_member

BIKES = "Can I take my <b>bike</b> on the train?"
PRESSES = ["console-gap-answer", "console-gap-dismiss", "console-gap-reopen", "console-gap-merge"]


@pytest.fixture
def session(deployment: Any) -> Any:
    return make_session(deployment)


@pytest.fixture
def collection(tenant: Any) -> Collection:
    with tenant_scope(tenant):
        return open_collection("help")


@pytest.fixture
def topic(tenant: Any, session: Any) -> GapTopic:
    return make_topic(tenant, BIKES, session.pk)


def make_topic(tenant: Any, text: str, session_id: Any = None) -> GapTopic:
    with tenant_scope(tenant):
        gaps.record_question(session_id or uuid4(), text, asker=str(uuid4()), reason=GapReason.UNANSWERED)
    gaps.cluster_new_questions(tenant.pk)
    with tenant_scope(tenant):
        found: GapTopic = GapTopic.objects.get(question=text)
        return found


def page_of(user: Any, topic: GapTopic) -> Any:
    return browser(user).get(reverse("console-gap", args=[topic.pk]))


def press(user: Any, name: str, topic: GapTopic, **data: Any) -> Any:
    return browser(user).post(reverse(name, args=[topic.pk]), data)


def state_of(tenant: Any, topic: GapTopic) -> GapTopic:
    with tenant_scope(tenant):
        found: GapTopic = GapTopic.objects.get(pk=topic.pk)
        return found


@pytest.mark.parametrize(("role", "status"), [("owner", 200), ("approver", 200), ("agent", 403), ("stranger", 403)])
def test_pages_are_for_owners_and_approvers(
    topic: GapTopic, role: str, status: int, request: pytest.FixtureRequest
) -> None:
    user = request.getfixturevalue(role)
    assert page_of(user, topic).status_code == status
    assert browser(user).get(reverse("console-gaps")).status_code == status


@pytest.mark.parametrize("role", ["agent", "viewer", "stranger"])
@pytest.mark.parametrize("name", PRESSES)
def test_presses_are_for_owners_and_approvers(
    topic: GapTopic, name: str, role: str, request: pytest.FixtureRequest
) -> None:
    assert press(request.getfixturevalue(role), name, topic).status_code == 403


@pytest.mark.parametrize("name", PRESSES)
def test_topic_of_another_tenant_is_not_found(
    topic: GapTopic, collection: Collection, other_tenant: Any, name: str
) -> None:
    other = make_member(other_tenant, "owner")
    said = {"title": "a", "answer": "b", "collection": str(collection.pk), "into": str(topic.pk)}
    assert press(other, name, topic, **said).status_code == 404
    assert page_of(other, topic).status_code == 404


@pytest.mark.parametrize("name", PRESSES)
def test_press_without_csrf_token_is_refused(owner: Any, topic: GapTopic, name: str) -> None:
    assert browser(owner, csrf=True).post(reverse(name, args=[topic.pk])).status_code == 403


def test_visitors_words_are_shown_as_text(owner: Any, topic: GapTopic) -> None:
    page = page_of(owner, topic).content.decode()
    assert "&lt;b&gt;bike&lt;/b&gt;" in page
    assert "<b>bike" not in page
    assert not re.search(r"<style|style=|<script(?![^>]*\bsrc=)|\son\w+=|javascript:", page)


def test_knowledge_page_counts_open_topics(owner: Any, topic: GapTopic) -> None:
    page = browser(owner).get(reverse("console-knowledge")).content.decode()
    assert 'Gaps <span class="chip warn">1</span>' in page


def test_unknown_status_is_not_found(owner: Any) -> None:
    assert browser(owner).get(reverse("console-gaps"), {"status": "gone"}).status_code == 404


def test_draft_is_what_a_member_replied_without_personal_data(
    tenant: Any, owner: Any, session: Any, topic: GapTopic, collection: Collection
) -> None:
    with tenant_scope(tenant):
        reply = "Bikes travel free on all our trains. Write to ann@example.com for groups."
        chronicle.append(
            lock_session(session.pk), kind=EntryKind.MESSAGE, sender=Sender.HUMAN, text=reply, taint=Taint.AUTH
        )
    page = page_of(owner, topic).content.decode()
    assert "Bikes travel free on all our trains." in page
    assert "ann@example.com" not in page


def test_answer_opens_a_card_that_shows_the_exact_text(
    tenant: Any, approver: Any, topic: GapTopic, collection: Collection
) -> None:
    said = {"title": "Bikes", "answer": "Bikes travel free.\r\nAlways.", "collection": str(collection.pk)}
    answer = press(approver, "console-gap-answer", topic, **said)
    with tenant_scope(tenant):
        card = Card.objects.get(subject_id=topic.pk)
    assert answer["Location"] == reverse("console-card", args=[card.pk])
    assert "Bikes travel free.\nAlways." in browser(approver).get(answer["Location"]).content.decode()


def test_answer_is_reviewed_rendered_with_its_questions_and_the_closest_documents(
    tenant: Any, approver: Any, viewer: Any, topic: GapTopic, collection: Collection, tmp_path: Path
) -> None:
    ingest_texts(tenant, tmp_path, luggage="# Luggage\n\nA bike is taken on the train as luggage.")
    said = {"title": "Bikes", "answer": "Bikes travel **free**.\n\n- Always", "collection": str(collection.pk)}
    address = press(approver, "console-gap-answer", topic, **said)["Location"]
    for user in (approver, viewer):
        page = browser(user).get(address).content.decode()
        assert "<strong>free</strong>" in page
        assert "Bikes travel **free**." in page
        assert "Can I take my &lt;b&gt;bike&lt;/b&gt; on the train?" in page
        assert ("A bike is taken on the train as luggage." in page) is (user == approver)
    assert "<strong>free</strong>" in page_of(approver, topic).content.decode()


def test_unfit_answer_keeps_what_was_typed(tenant: Any, owner: Any, topic: GapTopic, collection: Collection) -> None:
    answer = press(owner, "console-gap-answer", topic, title="Typed title", answer=" ", collection=str(collection.pk))
    assert answer.status_code == 422
    assert "Typed title" in answer.content.decode()
    assert state_of(tenant, topic).status == GapStatus.OPEN


def test_topic_is_dismissed_reopened_and_merged(tenant: Any, owner: Any, topic: GapTopic) -> None:
    press(owner, "console-gap-dismiss", topic)
    assert state_of(tenant, topic).status == GapStatus.DISMISSED
    press(owner, "console-gap-reopen", topic)
    assert state_of(tenant, topic).status == GapStatus.OPEN
    other = make_topic(tenant, "Are dogs allowed in the cabins?")
    press(owner, "console-gap-merge", other, into=str(topic.pk))
    assert state_of(tenant, topic).visitors == 2


def test_api_lists_reads_and_answers(tenant: Any, owner: Any, topic: GapTopic, collection: Collection) -> None:
    client = browser(owner)
    (row,) = client.get(reverse("api-gaps")).json()
    assert row["question"] == BIKES
    assert row["visitors"] == 1
    shown = client.get(reverse("api-gap", args=[topic.pk])).json()
    assert [question["reason"] for question in shown["questions"]] == ["unanswered"]
    body = {"title": "Bikes", "answer": "Free.", "collection": str(collection.pk)}
    answered = client.post(reverse("api-gap-answer", args=[topic.pk]), body, content_type="application/json").json()
    assert answered["status"] == "drafted"
    dismissed = client.post(reverse("api-gap-dismiss", args=[topic.pk])).json()
    assert dismissed["status"] == "dismissed"
    again = client.post(reverse("api-gap-answer", args=[topic.pk]), body, content_type="application/json")
    assert again.status_code == 409
    assert again.json()["error"]["code"] == "gap_settled"


def test_api_shows_nothing_of_another_tenant(topic: GapTopic, other_tenant: Any) -> None:
    client = browser(make_member(other_tenant, "owner"))
    assert client.get(reverse("api-gaps")).json() == []
    assert client.get(reverse("api-gap", args=[topic.pk])).status_code == 404
    assert client.post(reverse("api-gap-dismiss", args=[topic.pk])).status_code == 404
