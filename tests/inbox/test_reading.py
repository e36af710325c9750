"""What is unread is each member's own, and a mark never goes beyond what there is or to another tenant."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from apps.inbox import handoff, queries, reading, services
from apps.inbox.enums import Shown
from apps.inbox.models import ReadMark
from apps.inbox.queries import Asked
from apps.sessions import presence
from apps.sessions.models import ChatSession
from apps.tenants.enums import KeyScope
from kernel.errors import NotFound
from kernel.tenancy import tenant_scope
from tests.factories.api import Api
from tests.factories.console import browser
from tests.factories.sessions import make_session, say, want_person
from tests.factories.tenants import make_member
from tests.factories.visitors import offer
from tests.rivals import race


@pytest.fixture
def session(deployment: Any) -> ChatSession:
    """One in which the visitor asked for a person."""
    session = make_session(deployment)
    say(session, "Hello")
    say(session, "Is anybody there?")
    want_person(session)
    return session


def _unread(session: ChatSession, user: Any) -> int:
    """As its row says, and as the count and the filter have it."""
    with tenant_scope(session.tenant_id):
        number = next(one.unread for one in queries.conversations(Asked(), user).rows if one.session == session)
        found = [one.session for one in queries.conversations(Asked(unread=True), user).rows]
        assert found == ([session] if number else [])
        assert queries.counts(user, Asked())["unread"] == len(found)
    return number


def test_what_only_the_chatbot_has_is_not_unread(agent: Any, deployment: Any) -> None:
    alone = make_session(deployment)
    say(alone, "Hello")
    say(alone, "Is my piano covered?")
    assert _unread(alone, agent) == 0
    want_person(alone)
    assert _unread(alone, agent) == 2


def test_member_marks_what_only_the_chatbot_has_as_unread(agent: Any, owner: Any, deployment: Any) -> None:
    alone = make_session(deployment)
    say(alone, "Hello")
    say(alone, "Is my piano covered?")
    with tenant_scope(alone.tenant_id):
        assert reading.mark_unread(alone.pk, agent)
    assert _unread(alone, agent) == 1
    assert _unread(alone, owner) == 0
    say(alone, "And my cello?")
    assert _unread(alone, agent) == 2
    assert _read(alone, agent)
    assert _unread(alone, agent) == 0
    say(alone, "Thanks")
    assert _unread(alone, agent) == 0


@pytest.mark.parametrize("how", ["taken over", "assigned", "mentioned"])
def test_unread_begins_when_it_concerns_a_member(agent: Any, owner: Any, deployment: Any, how: str) -> None:
    alone = make_session(deployment)
    say(alone, "Hello")
    with tenant_scope(alone.tenant_id):
        if how == "taken over":
            handoff.take_over(alone.pk, agent)
        elif how == "assigned":
            services.assign(alone.pk, owner, to=agent)
        else:
            services.note(alone.pk, owner, f"Look at this, @{agent.display_name}")
    assert _unread(alone, agent) == 1
    assert _read(alone, agent)
    assert _unread(alone, agent) == 0


def test_nothing_is_unread_once_the_chatbot_has_it_again(agent: Any, owner: Any, session: ChatSession) -> None:
    with tenant_scope(session.tenant_id):
        handoff.take_over(session.pk, agent)
        handoff.hand_back(session.pk, agent)
    say(session, "Thanks")
    assert _unread(session, owner) == 0


def test_unread_is_counted_within_the_tab_and_never_of_what_is_at_rest(
    agent: Any, owner: Any, deployment: Any, session: ChatSession
) -> None:
    other = make_session(deployment)
    say(other, "Hello")
    with tenant_scope(session.tenant_id):
        handoff.take_over(other.pk, agent)
        assert queries.counts(agent, Asked())["unread"] == 2
        assert queries.counts(agent, Asked("mine"))["unread"] == 1
        services.resolve(other.pk, agent)
        assert queries.counts(agent, Asked("mine", Shown.ANY))["unread"] == 0
        assert not queries.conversations(Asked(unread=True), None).rows


def test_no_entries_are_looked_at_of_what_is_at_rest_or_the_chatbot_has_alone(
    agent: Any, deployment: Any, session: ChatSession
) -> None:
    """Their number grows for as long as there is a company."""
    say(make_session(deployment), "Hello")
    with tenant_scope(session.tenant_id):
        handoff.take_over(session.pk, agent)
        services.resolve(session.pk, agent)
        with CaptureQueriesContext(connection) as asked:
            assert queries.counts(agent, Asked(shown=Shown.ANY))["unread"] == 0
        (statement,) = [each["sql"] for each in asked if "inbox_readmark" in each["sql"]]
        with connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN ANALYZE {statement}")
            plan = [line for (line,) in cursor.fetchall() if " on silas_sessions_chronicleentry" in line]
    assert plan
    assert [line for line in plan if "(never executed)" not in line] == []


def test_unread_is_a_filter_of_the_list_that_stays_in_its_addresses(agent: Any, session: ChatSession) -> None:
    _read(session, agent)
    page = browser(agent).get("/console/inbox/?unread=1").content.decode()
    assert f"c-{session.pk}" not in page
    assert "No conversations match these filters" in page
    assert 'id="only-unread" href="/console/inbox/?tab=all" aria-current="true">Unread</a>' in page
    assert 'id="tab-mine" href="/console/inbox/?tab=mine&amp;unread=1"' in page
    say(session, "Hello again")
    page = browser(agent).get("/console/inbox/?unread=1").content.decode()
    assert f"c-{session.pk}" in page
    assert 'aria-current="true">Unread <span class="num">1</span>' in page
    assert f"c-{session.pk}" in browser(agent).get("/console/inbox/?unread=yes").content.decode()


def _read(session: ChatSession, user: Any, up_to: int | None = None) -> bool:
    with tenant_scope(session.tenant_id):
        return reading.mark_read(session.pk, user, up_to=up_to)


def test_messages_of_a_visitor_are_unread_until_the_member_has_read_them(agent: Any, session: ChatSession) -> None:
    assert _unread(session, agent) == 2
    assert _read(session, agent)
    assert _unread(session, agent) == 0
    say(session, "Hello again")
    assert _unread(session, agent) == 1


def test_each_member_reads_for_themselves(agent: Any, owner: Any, session: ChatSession) -> None:
    _read(session, agent)
    assert _unread(session, owner) == 2


def test_a_mark_only_moves_forward(agent: Any, session: ChatSession) -> None:
    _read(session, agent)
    assert not _read(session, agent, up_to=1)
    assert _unread(session, agent) == 0


def test_a_mark_beyond_the_end_does_not_hide_what_comes_later(agent: Any, session: ChatSession) -> None:
    _read(session, agent, up_to=2**61)
    say(session, "Later")
    assert _unread(session, agent) == 1


def test_marked_unread_the_last_message_is_unread_again(agent: Any, session: ChatSession) -> None:
    _read(session, agent)
    with tenant_scope(session.tenant_id):
        assert reading.mark_unread(session.pk, agent)
    assert _unread(session, agent) == 1


def test_nothing_is_unread_in_a_resolved_conversation(agent: Any, session: ChatSession) -> None:
    with tenant_scope(session.tenant_id):
        services.resolve(session.pk, agent)
        assert queries.conversation(session.pk, agent).unread == 0


def test_a_conversation_of_another_tenant_is_not_marked(other_tenant: Any, session: ChatSession) -> None:
    stranger = make_member(other_tenant, "owner")
    with tenant_scope(other_tenant), pytest.raises(NotFound):
        reading.mark_read(session.pk, stranger)
    with tenant_scope(session.tenant_id):
        assert not ReadMark.objects.exists()


def test_two_consoles_that_mark_at_once_leave_one_mark(agent: Any, session: ChatSession) -> None:
    race(lambda: _read(session, agent, 1), lambda: _read(session, agent, 2))
    with tenant_scope(session.tenant_id):
        assert ReadMark.objects.get().seq == 2


def _state(session: ChatSession, member: Any) -> str:
    return f"/api/v1/sessions/{session.pk}/read-state/{member.pk}"


def test_api_reads_and_marks_for_a_member(tenant: Any, agent: Any, session: ChatSession) -> None:
    api = Api(tenant, KeyScope.SESSIONS_READ, KeyScope.SESSIONS_WRITE)
    assert api.get(_state(session, agent)).json() == {"unread": 2}
    assert api.send("put", _state(session, agent), {"read": True}).json() == {"unread": 0}
    assert api.send("put", _state(session, agent), {"read": False}).json() == {"unread": 1}


def test_api_refuses_a_member_the_marks_of_a_colleague(
    tenant: Any, agent: Any, owner: Any, session: ChatSession
) -> None:
    assert Api(tenant, member=agent).send("put", _state(session, owner), {"read": True}).status_code == 404
    assert _unread(session, owner) == 2


def test_api_knows_no_members_of_another_tenant(tenant: Any, other_tenant: Any, session: ChatSession) -> None:
    api = Api(tenant, KeyScope.SESSIONS_READ, KeyScope.SESSIONS_WRITE)
    assert api.send("put", _state(session, make_member(other_tenant, "owner")), {"read": True}).status_code == 404


def test_list_says_how_many_are_unread_but_not_of_the_open_one(agent: Any, session: ChatSession) -> None:
    assert 'aria-label="2 unread messages"' in browser(agent).get(reverse("console-inbox")).content.decode()
    opened = browser(agent).get(reverse("console-conversation", args=[session.pk])).content.decode()
    assert "unread messages" not in opened


def test_button_marks_unread_and_closes_the_conversation(agent: Any, session: ChatSession) -> None:
    _read(session, agent)
    answer = browser(agent).post(reverse("console-mark-unread", args=[session.pk]))
    assert answer["Location"].partition("?")[0] == reverse("console-inbox")
    assert _unread(session, agent) == 1


def _told_visitor(session: ChatSession) -> int:
    with tenant_scope(session.tenant_id):
        session.refresh_from_db()
        return reading.read_for_visitor(session)


def test_visitor_learns_how_far_the_answering_member_has_read_where_the_chatbot_says_so(
    deployment: Any, agent: Any, session: ChatSession
) -> None:
    with tenant_scope(session.tenant_id):
        handoff.take_over(session.pk, agent)
    _read(session, agent, up_to=1)
    assert _told_visitor(session) == 0
    offer(deployment, read_receipts=True)
    assert _told_visitor(session) == 1


def test_visitor_learns_nothing_of_colleagues_who_look_on(
    deployment: Any, agent: Any, owner: Any, session: ChatSession
) -> None:
    offer(deployment, read_receipts=True)
    _read(session, owner)
    assert _told_visitor(session) == 0
    with tenant_scope(session.tenant_id):
        handoff.take_over(session.pk, agent)
    _read(session, owner)
    assert _told_visitor(session) == 0


def test_thread_says_seen_under_the_last_message_that_the_visitor_has_read(agent: Any, session: ChatSession) -> None:
    with tenant_scope(session.tenant_id):
        handoff.take_over(session.pk, agent)
        first = handoff.reply(session.pk, agent, "Hello")
        second = handoff.reply(session.pk, agent, "How can I help?")
    assert _shown_to_visitor(session, first.seq)
    assert _line_with_seen(agent, session) == f"line-{first.seq}"
    assert _shown_to_visitor(session, second.seq)
    assert not _shown_to_visitor(session, first.seq)
    assert not _shown_to_visitor(session, second.seq + 1)
    assert _line_with_seen(agent, session) == f"line-{second.seq}"


def _shown_to_visitor(session: ChatSession, seq: int) -> bool:
    with tenant_scope(session.tenant_id):
        return presence.mark_read(session.pk, seq)


def _line_with_seen(user: Any, session: ChatSession) -> str:
    page = browser(user).get(reverse("console-conversation", args=[session.pk])).content.decode()
    before, seen, _ = page.partition('id="read-state"')
    assert seen
    return "line-" + before.rpartition('id="line-')[2].partition('"')[0]


def test_conversation_that_is_fetched_ahead_stays_unread(agent: Any, session: ChatSession) -> None:
    ahead = {"HTTP_HX_REQUEST": "true", "HTTP_HX_TARGET": "log"}
    found = browser(agent).get(reverse("console-conversation", args=[session.pk]), **ahead).content.decode()
    assert 'id="thread"' in found
    assert 'id="contact"' in found
    assert 'id="conversations"' not in found
    assert _unread(session, agent) == 2
