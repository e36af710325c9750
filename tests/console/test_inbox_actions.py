"""The inbox's lists, menus, notes, labels and canned replies."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.urls import reverse

from apps.console import viewers
from apps.console.pages.inbox.filters import list_query, query_string
from apps.inbox import handoff, labels_and_replies, queries, services
from apps.inbox.enums import DeskStatus, Shown
from apps.inbox.models import CannedReply, DeskState, Note
from apps.inbox.queries import Asked
from apps.sessions.models import ChatSession
from kernel.clock import now
from kernel.tenancy import tenant_scope
from tests.factories.console import HTMX, browser
from tests.factories.sessions import make_session, say
from tests.factories.tenants import make_member


def _press(user: Any, name: str, session: ChatSession, **data: str) -> Any:
    return browser(user).post(reverse(f"console-{name}", args=[session.pk]), data, **HTMX)


def _page(user: Any, session: ChatSession, **asked: str) -> str:
    address = reverse("console-conversation", args=[session.pk])
    return str(browser(user).get(address, asked).content.decode())


def _list(user: Any, **asked: str) -> str:
    page = browser(user).get(reverse("console-inbox"), asked).content.decode()
    return str(page.partition('id="conversations"')[2].partition('id="told"')[0])


def _state(session: ChatSession) -> DeskState:
    with tenant_scope(session.tenant_id):
        return DeskState.objects.select_related("assignee").get(session=session)  # type: ignore[no-any-return]


# --- actions


@pytest.mark.parametrize("role", ["agent", "viewer"])
def test_what_only_the_chatbot_has_can_be_marked_as_unread(tenant: Any, session: ChatSession, role: str) -> None:
    page = _page(make_member(tenant, role), session)
    assert '<button class="btn small plain" form="unread-form"' in page


def test_resolve_button_resolves_and_then_offers_to_open_again(agent: Any, session: ChatSession) -> None:
    _press(agent, "resolve", session)
    assert "Reopen</button>" in _page(agent, session)
    assert _state(session).status == DeskStatus.RESOLVED


def test_open_again_opens(agent: Any, session: ChatSession) -> None:
    _press(agent, "resolve", session)
    _press(agent, "reopen", session)
    assert "Resolve</button>" in _page(agent, session)


def test_snooze_names_until_when(agent: Any, session: ChatSession) -> None:
    _press(agent, "snooze", session, until="week")
    assert "Snoozed until" in _page(agent, session)
    assert "burst pipe" not in _list(agent)
    assert "burst pipe" in _list(agent, status="snoozed")


def test_snooze_until_a_typed_time_means_the_tenants_zone(agent: Any, session: ChatSession) -> None:
    with tenant_scope(session.tenant_id):
        type(session.deployment.tenant).objects.filter(pk=session.tenant_id).update(timezone="Asia/Tokyo")
    at = (now() + timedelta(days=2)).strftime("%Y-%m-%dT09:00")
    _press(agent, "snooze", session, until="at", at=at)
    assert f"{_state(session).until:%H:%M}" == "00:00"


@pytest.mark.parametrize(
    "data", [{}, {"until": "at"}, {"until": "at", "at": "x"}, {"until": "at", "at": "2001-01-01T09:00"}]
)
def test_snooze_until_nothing_is_refused(agent: Any, session: ChatSession, data: dict[str, str]) -> None:
    assert _press(agent, "snooze", session, **data).status_code == 400


def test_conversation_is_assigned_to_a_colleague(agent: Any, owner: Any, session: ChatSession) -> None:
    _press(agent, "assign-conversation", session, to=str(owner.pk))
    assert _state(session).assignee == owner
    assert f"Assigned to {owner.display_name}" in _page(agent, session)
    assert "Assigned to you" in _page(owner, session)


@pytest.mark.parametrize("who", ["viewer", "stranger"])
def test_conversation_is_not_assigned_to_who_could_not_answer(
    agent: Any, session: ChatSession, who: str, request: Any
) -> None:
    to = str(request.getfixturevalue(who).pk)
    assert _press(agent, "assign-conversation", session, to=to).status_code == 409


@pytest.mark.parametrize("to", ["x", str(uuid4())])
def test_conversation_is_not_assigned_to_nobody_knows_whom(agent: Any, session: ChatSession, to: str) -> None:
    assert _press(agent, "assign-conversation", session, to=to).status_code == 409


def test_label_is_pressed_on_and_off(agent: Any, session: ChatSession) -> None:
    with tenant_scope(session.tenant_id):
        label = labels_and_replies.save_label(agent, name="Refunds", colour="red")
    _press(agent, "mark", session, on=str(label.pk))
    on = "Refunds" in _list(agent)
    _press(agent, "mark", session, off=str(label.pk))
    assert on is True
    assert "Refunds" not in _list(agent)


@pytest.mark.parametrize("data", [{}, {"on": "x"}, {"on": str(uuid4())}])
def test_unknown_label_is_not_found(agent: Any, session: ChatSession, data: dict[str, str]) -> None:
    assert _press(agent, "mark", session, **data).status_code == 404


def test_note_stands_in_the_thread_where_it_was_written(agent: Any, session: ChatSession) -> None:
    _press(agent, "note", session, text="Call her back.", once="n1")
    say(session, "Hello again")
    log = _page(agent, session).partition('id="log"')[2]
    assert log.index("burst pipe") < log.index("Call her back.") < log.index("Hello again")


def test_note_is_shown_as_text_under_its_authors_name(agent: Any, session: ChatSession) -> None:
    _press(agent, "note", session, text="<script>alert(1)</script>")
    log = _page(agent, session).partition('id="log"')[2]
    assert f"<b>{agent.display_name}</b>" in log
    assert "Private note" in log
    assert "<script>alert" not in log


def test_note_sent_twice_is_kept_once(agent: Any, session: ChatSession) -> None:
    for _ in range(2):
        _press(agent, "note", session, text="Call her back.", once="n1")
    with tenant_scope(session.tenant_id):
        assert Note.objects.count() == 1


def test_reply_sent_twice_is_said_once(agent: Any, session: ChatSession) -> None:
    _press(agent, "take-over", session)
    for _ in range(2):
        _press(agent, "reply", session, text="I am looking into it.", once="n1")
    assert _page(agent, session).count("I am looking into it.</p>") == 1


def test_note_needs_no_take_over(agent: Any, session: ChatSession) -> None:
    assert _press(agent, "note", session, text="Mind this one.").status_code == 302


def test_press_keeps_the_place_in_the_list(agent: Any, session: ChatSession) -> None:
    address = reverse("console-resolve", args=[session.pk])
    response = browser(agent).post(f"{address}?tab=mine&status=snoozed&q=pipe")
    assert response.headers["Location"].endswith("?tab=mine&status=snoozed&q=pipe")


def test_viewer_sees_how_it_stands_and_nothing_to_press(viewer: Any, session: ChatSession) -> None:
    page = _page(viewer, session)
    assert "Unassigned" in page
    assert not any(words in page for words in ("Snooze</summary>", "Resolve</button>", "Private note", "note-text"))


def test_conversation_that_somebody_took_over_is_not_called_nobodys(
    agent: Any, owner: Any, session: ChatSession
) -> None:
    _press(agent, "take-over", session)
    mine, theirs = _page(agent, session), _page(owner, session)
    assert "You're answering" in mine
    assert f"{agent.display_name} is answering" in theirs
    assert "nobody</span>" not in mine + theirs


def test_conversation_that_was_handed_back_is_nobodys_again(agent: Any, session: ChatSession) -> None:
    _press(agent, "take-over", session)
    _press(agent, "hand-back", session)
    assert "Unassigned" in _page(agent, session)


# --- lists


def test_search_finds_and_escapes_its_words(agent: Any, session: ChatSession) -> None:
    assert "burst pipe" in _list(agent, q="pipe")
    page = browser(agent).get(reverse("console-inbox"), {"q": '"><script>x'}).content.decode()
    assert "<script>x" not in page
    assert "No results for" in page


def test_search_looks_at_resolved_ones_too(agent: Any, session: ChatSession) -> None:
    _press(agent, "resolve", session)
    assert "burst pipe" in _list(agent, q="pipe")


def test_older_ones_are_a_page_away(agent: Any, deployment: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries.conversations, "__kwdefaults__", {"limit": 2})
    for number in range(3):
        say(make_session(deployment), f"Line {number}")
    first = browser(agent).get(reverse("console-inbox"))
    second = browser(agent).get(f"{reverse('console-inbox')}?{first.context['older']}")
    shown = [[one.session.preview for one in page.context["listed"].rows] for page in (first, second)]
    assert shown == [["Line 2", "Line 1"], ["Line 0"]]
    assert 'rel="next"' in first.content.decode()
    assert 'rel="next"' not in second.content.decode()


ODD = {"tab": "x", "status": "x", "label": "x", "deployment": "'", "assignee": "x", "level": "\0", "before": "x_y"}


@pytest.mark.parametrize("name", ODD)
def test_part_of_an_address_that_makes_no_sense_is_left_out(agent: Any, session: ChatSession, name: str) -> None:
    assert "burst pipe" in _list(agent, **{name: ODD[name]})


@pytest.mark.parametrize("words", ["\0", "x" * 5000, "' OR 1=1 --"])
def test_odd_search_is_no_error(agent: Any, session: ChatSession, words: str) -> None:
    assert browser(agent).get(reverse("console-inbox"), {"q": words}).status_code == 200


@pytest.mark.parametrize(
    "asked",
    [
        Asked(),
        Asked("mine", Shown.SNOOZED),
        Asked(words="a b&c=d"),
        Asked(words="x", shown=Shown.OPEN),
        Asked(label=uuid4(), deployment=uuid4(), assignee="nobody", queue="l2 & 3", level="verified"),
        Asked(before="MjAyNi0x"),
    ],
)
def test_address_of_a_list_leads_back_to_it(asked: Asked) -> None:
    from urllib.parse import parse_qsl

    assert list_query(dict(parse_qsl(query_string(asked, before=asked.before)))) == asked


@pytest.mark.parametrize("count", [1, 4])
def test_conversation_takes_the_same_queries_for_any_number(
    agent: Any, deployment: Any, session: ChatSession, count: int, django_assert_num_queries: Any
) -> None:
    with tenant_scope(session.tenant_id):
        for number in range(count):
            services.note(session.pk, agent, f"Note {number}")
            label = labels_and_replies.save_label(agent, name=f"L{number}", colour="red")
            services.mark(session.pk, agent, label_id=label.pk, on=True)
            labels_and_replies.save_reply(agent, name=f"R{number}", text="Hello")
    for _ in range(count):
        other = make_session(deployment)
        say(other, "Hello")
        with tenant_scope(session.tenant_id):
            ChatSession.objects.filter(pk__in=[other.pk, session.pk]).update(last_customer="C-1")
    client = browser(agent)
    with django_assert_num_queries(QUERIES_OF_CONVERSATION):
        client.get(reverse("console-conversation", args=[session.pk]))


# In the list one each for unread and SLA clocks and for how many there are; one for whom the notes mention.
QUERIES_OF_CONVERSATION = 53


# --- beside it


def test_contact_links_the_same_customers_earlier_conversations(
    agent: Any, deployment: Any, session: ChatSession
) -> None:
    before = make_session(deployment)
    say(before, "Where is my lamp?")
    with tenant_scope(session.tenant_id):
        ChatSession.objects.filter(pk__in=[before.pk, session.pk]).update(last_customer="C-1")
    contact = _page(agent, session).split('id="contact"')[1]
    assert "Where is my lamp?" in contact
    assert str(before.pk) in contact


def test_lookers_are_named_without_oneself(agent: Any, owner: Any, session: ChatSession) -> None:
    for user in (agent, owner):
        viewers.mark_viewing(session.tenant_id, session.pk, user.pk)
    shown = browser(agent).get(reverse("console-lookers", args=[session.pk])).content.decode()
    assert f"{owner.display_name} is also viewing this" in shown
    assert agent.display_name not in shown


def test_second_take_over_is_refused_with_the_name_of_the_first(agent: Any, owner: Any, session: ChatSession) -> None:
    _press(agent, "take-over", session)
    response = _press(owner, "take-over", session)
    assert response.status_code == 409
    assert f"Your colleague {agent.display_name} is now answering" in response.content.decode()


def test_canned_reply_is_in_the_page_with_the_visitors_name(agent: Any, session: ChatSession) -> None:
    with tenant_scope(session.tenant_id):
        ChatSession.objects.filter(pk=session.pk).update(customer_name="Maria Ortega")
        labels_and_replies.save_reply(agent, name="hi", text='Hello {visitor name}, "dear" <b>')
    page = _page(agent, session)
    assert "Hello Maria Ortega, &quot;dear&quot; &lt;b&gt;" in page
    assert "<b>hi</b>" in page


# --- labels and replies


def test_label_is_made_changed_and_deleted(agent: Any) -> None:
    client = browser(agent)
    client.post(reverse("console-label-new"), {"name": " Re  funds ", "colour": "red"})
    page = client.get(reverse("console-labels"))
    (label,) = page.context["labels"]
    client.post(reverse("console-label-save", args=[label.pk]), {"name": "Returns", "colour": "blue"})
    changed = client.get(reverse("console-labels")).content.decode()
    client.post(reverse("console-label-delete", args=[label.pk]))
    after = client.get(reverse("console-labels")).content.decode()
    assert label.name == "Re funds"
    assert "Returns" in changed
    assert "No labels yet." in after


def test_canned_reply_is_made_changed_and_deleted(agent: Any, tenant: Any) -> None:
    client = browser(agent)
    client.post(reverse("console-canned-new"), {"name": "hi", "text": "Hello"})
    with tenant_scope(tenant):
        reply = CannedReply.objects.get()
    client.post(reverse("console-canned-save", args=[reply.pk]), {"name": "hi", "text": "Good day"})
    changed = client.get(reverse("console-replies")).content.decode()
    client.post(reverse("console-canned-delete", args=[reply.pk]))
    after = client.get(reverse("console-replies")).content.decode()
    assert "Good day" in changed
    assert "No canned replies yet." in after


@pytest.mark.parametrize("page", ["console-labels", "console-replies"])
def test_viewer_reads_what_is_ready_and_changes_nothing(viewer: Any, page: str) -> None:
    shown = browser(viewer).get(reverse(page)).content.decode()
    assert 'method="post"' not in shown.partition('id="main"')[2].partition("</main>")[0]


def test_label_of_another_tenant_is_neither_shown_nor_deleted(agent: Any, tenant: Any, other_tenant: Any) -> None:
    with tenant_scope(tenant):
        label = labels_and_replies.save_label(agent, name="Refunds", colour="red")
    client = browser(make_member(other_tenant, "owner"))
    shown = "Refunds" in client.get(reverse("console-labels")).content.decode()
    gone = client.post(reverse("console-label-delete", args=[label.pk])).status_code
    with tenant_scope(tenant):
        assert shown is False
        assert gone == 404
        assert len(queries.labels()) == 1


def test_reply_of_another_tenant_is_not_changed(agent: Any, tenant: Any, other_tenant: Any) -> None:
    with tenant_scope(tenant):
        reply = labels_and_replies.save_reply(agent, name="hi", text="Hello")
    client = browser(make_member(other_tenant, "owner"))
    address = reverse("console-canned-save", args=[reply.pk])
    assert client.post(address, {"name": "hi", "text": "Mine"}).status_code == 404


def test_list_marks_what_is_assigned(agent: Any, session: ChatSession) -> None:
    _press(agent, "assign-conversation", session, to=str(agent.pk))
    assert '<span class="quiet">You</span>' in _list(agent)


def test_taken_over_conversation_is_in_mine(agent: Any, session: ChatSession) -> None:
    with tenant_scope(session.tenant_id):
        handoff.take_over(session.pk, agent)
    assert "burst pipe" in _list(agent, tab="mine")
