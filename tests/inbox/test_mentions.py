"""Mentions in notes: whom a text names, and nobody of another company, nobody twice, nobody who is forgotten."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import pytest
from django.urls import reverse

from apps.inbox import queries, reading, rules, services
from apps.inbox.models import Mention
from apps.inbox.queries import Asked
from apps.sessions.models import ChatSession
from apps.sessions.signals import conversations_forgotten
from apps.tenants.enums import KeyScope
from kernel.tenancy import tenant_scope
from tests.factories.console import browser
from tests.factories.sessions import make_session, say
from tests.factories.tenants import make_member
from tests.inbox.test_api import Api

ANN, ANNA, OTHER_ANN = uuid4(), uuid4(), uuid4()
NAMES = {ANN: "Ann", ANNA: "Ann Lee", OTHER_ANN: "ann"}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("@Ann please", {ANN, OTHER_ANN}),
        ("Thanks, @ANN LEE!", {ANNA}),
        ("(@Ann Lee)", {ANNA}),
        ("@Ann and @Ann Lee", {ANN, OTHER_ANN, ANNA}),
        ("@Anna", set()),
        ("mail ann@Ann.example", set()),
        ("@@Ann", set()),
        ("Ann", set()),
        ("@", set()),
    ],
)
def test_names_behind_an_at_sign_are_mentions(text: str, found: set[UUID]) -> None:
    assert rules.mentioned(text, NAMES) == found


def test_names_are_no_patterns() -> None:
    assert rules.mentioned("@Ann", {ANN: ".*"}) == set()
    assert rules.mentioned("@Ann", {}) == set()


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("Look, @ann lee!", [("Look, ", False), ("@ann lee", True), ("!", False)]),
        ("@Ann", [("@Ann", True)]),
        ("mail ann@Ann.example", [("mail ann@Ann.example", False)]),
        ("Nobody", [("Nobody", False)]),
    ],
)
def test_text_is_split_at_its_mentions(text: str, parts: list[tuple[str, bool]]) -> None:
    assert rules.split_mentions(text, NAMES.values()) == parts
    assert rules.split_mentions(text, []) == [(text, False)]


def test_thread_highlights_mentions_and_escapes_the_rest(session: ChatSession, agent: Any, owner: Any) -> None:
    _note(session, agent, f"<i>Look</i>, @{owner.display_name}\nand @nobody")
    page = browser(owner).get(reverse("console-conversation", args=[session.pk])).content.decode()
    assert f'&lt;i&gt;Look&lt;/i&gt;, <b class="mention">@{owner.display_name}</b><br>and @nobody' in page


@pytest.fixture
def session(deployment: Any, owner: Any) -> ChatSession:
    session = make_session(deployment)
    say(session, "Hello")
    with tenant_scope(session.tenant_id):
        reading.mark_read(session.pk, owner)
    return session


def _note(session: ChatSession, by: Any, text: str) -> None:
    with tenant_scope(session.tenant_id):
        services.note(session.pk, by, text)


def _unread(session: ChatSession, user: Any) -> int:
    with tenant_scope(session.tenant_id):
        return queries.conversation(session.pk, user).unread


def _count(session: ChatSession, user: Any) -> int:
    with tenant_scope(session.tenant_id):
        return queries.counts(user, Asked())["mentions"]


def test_mentioned_member_has_it_unread_until_they_have_the_conversation_open(
    session: ChatSession, agent: Any, owner: Any
) -> None:
    _note(session, agent, f"Could you look, @{owner.display_name}?")
    assert _unread(session, owner) == 1
    assert _count(session, owner) == 1
    with tenant_scope(session.tenant_id):
        assert reading.mark_read(session.pk, owner)
        assert not reading.mark_read(session.pk, owner)
        assert [one.session for one in queries.conversations(Asked("mentions"), owner).rows] == [session]
        assert queries.conversations(Asked("mentions"), agent).rows == ()
    assert _unread(session, owner) == 0
    assert _count(session, owner) == 0


def test_author_and_people_of_another_company_are_not_mentioned(
    session: ChatSession, agent: Any, other_tenant: Any
) -> None:
    stranger = make_member(other_tenant, "owner")
    _note(session, agent, f"@{agent.display_name} @{stranger.display_name}")
    for tenant in (session.tenant_id, other_tenant.pk):
        with tenant_scope(tenant):
            assert not Mention.objects.exists()


def test_mention_of_a_colleague_is_read_for_themselves(session: ChatSession, agent: Any, owner: Any) -> None:
    _note(session, agent, f"@{owner.display_name}")
    with tenant_scope(session.tenant_id):
        reading.mark_read(session.pk, agent)
    assert _count(session, owner) == 1


def test_forgotten_conversation_mentions_nobody(session: ChatSession, agent: Any, owner: Any) -> None:
    _note(session, agent, f"@{owner.display_name}")
    with tenant_scope(session.tenant_id):
        conversations_forgotten([session.pk])
        assert not Mention.objects.exists()


def test_tab_counts_and_lists_and_the_note_offers_teammates(session: ChatSession, agent: Any, owner: Any) -> None:
    _note(session, agent, f"@{owner.display_name}")
    page = browser(owner).get(reverse("console-inbox"), {"tab": "mentions"}).content.decode()
    assert 'id="tab-mentions"' in page
    assert 'aria-label="1 unread message"' in page
    page = browser(agent).get(reverse("console-conversation", args=[session.pk])).content.decode()
    assert f'data-name="{owner.display_name}"' in page
    assert f'data-name="{agent.display_name}"' not in page
    empty = browser(agent).get(reverse("console-inbox"), {"tab": "mentions"}).content.decode()
    assert "No mentions" in empty


def test_api_mentions_and_tells_whom(tenant: Any, session: ChatSession, owner: Any) -> None:
    api = Api(tenant, KeyScope.SESSIONS_READ, KeyScope.SESSIONS_WRITE)
    named = {"id": str(owner.pk), "name": owner.display_name}
    assert api.say(session, f"Look, @{owner.display_name}", to="notes").json()["mentions"] == [named]
    notes = api.get(f"/api/v1/sessions/{session.pk}/notes").json()["notes"]
    assert [note["mentions"] for note in notes] == [[named]]
