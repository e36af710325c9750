"""Conversations in the inbox: reading, taking over, replying and handing back."""

from __future__ import annotations

from typing import Any

import pytest
from django.urls import reverse

from apps.inbox import handoff
from apps.inbox import queries as desk
from apps.sessions import chronicle, person_wanted
from apps.sessions.enums import EntryKind, Owner, Sender
from apps.sessions.locks import lock_session
from apps.sessions.models import ChatSession
from kernel.tenancy import tenant_scope
from tests.factories.console import HTMX, browser, make_card
from tests.factories.memories import conversation, kept_in, remember
from tests.factories.sessions import make_session, say


def _press(user: Any, name: str, session: ChatSession, **data: str) -> Any:
    return browser(user).post(reverse(name, args=[session.pk]), data, **HTMX)


def _page(user: Any, session: ChatSession, tab: str = "all") -> str:
    address = reverse("console-conversation", args=[session.pk])
    return str(browser(user).get(address, {"tab": tab}).content.decode())


def _bot_says(session: ChatSession, text: str, payload: dict[str, Any] | None = None) -> None:
    with tenant_scope(session.tenant_id):
        locked = lock_session(session.pk)
        chronicle.append(locked, kind=EntryKind.MESSAGE, sender=Sender.BOT, text=text, payload=payload)


def _owner(session: ChatSession) -> str:
    with tenant_scope(session.tenant_id):
        return str(ChatSession.objects.get(pk=session.pk).owner)


def test_empty_inbox_says_so(owner: Any) -> None:
    assert "No conversations yet" in browser(owner).get(reverse("console-inbox")).content.decode()


def test_conversation_without_a_word_is_not_listed(owner: Any, deployment: Any) -> None:
    make_session(deployment)
    assert "No conversations yet" in browser(owner).get(reverse("console-inbox")).content.decode()


def test_list_shows_the_last_words(owner: Any, session: ChatSession) -> None:
    assert "burst pipe" in browser(owner).get(reverse("console-inbox")).content.decode()


def test_thread_escapes_what_a_visitor_wrote(owner: Any, session: ChatSession) -> None:
    say(session, "<script>alert(1)</script>")
    assert "<script>alert" not in _page(owner, session)


@pytest.mark.parametrize(
    "text", ["<script>alert(1)</script>", "[x](javascript:alert(1))", "<img src=x onerror=alert(1)>"]
)
def test_thread_cleans_what_a_model_wrote(owner: Any, session: ChatSession, text: str) -> None:
    _bot_says(session, text)
    thread = _page(owner, session).split('id="log"')[1]
    assert "<script" not in thread
    assert 'href="javascript' not in thread
    assert "<img" not in thread


def test_thread_shows_the_bots_markdown(owner: Any, session: ChatSession) -> None:
    _bot_says(session, "Yes, **up to £50,000**.")
    assert "<strong>up to £50,000</strong>" in _page(owner, session)


def test_thread_shows_the_cited_passage(owner: Any, session: ChatSession) -> None:
    cited = {"citations": [{"title": "Home policy, 4.2", "quote": "Sudden escape of water", "document_id": "x"}]}
    _bot_says(session, "Yes.", cited)
    page = _page(owner, session)
    assert "Home policy, 4.2" in page
    assert "Sudden escape of water" in page


def test_take_over_silences_the_bot(agent: Any, session: ChatSession) -> None:
    _press(agent, "console-take-over", session)
    assert _owner(session) == Owner.HUMAN


def test_take_over_opens_the_composer(agent: Any, session: ChatSession) -> None:
    assert 'data-composer="reply"' not in _page(agent, session)
    _press(agent, "console-take-over", session)
    assert 'data-composer="reply"' in _page(agent, session)


def test_reply_appears_under_the_persons_name(agent: Any, session: ChatSession) -> None:
    _press(agent, "console-take-over", session)
    _press(agent, "console-reply", session, text="I am looking into it.")
    page = _page(agent, session)
    assert f"<b>{agent.display_name}</b>" in page
    assert "I am looking into it." in page


@pytest.mark.parametrize("text", ["", "   ", "x" * 4001])
def test_reply_without_words_or_too_long_is_refused(agent: Any, session: ChatSession, text: str) -> None:
    _press(agent, "console-take-over", session)
    assert _press(agent, "console-reply", session, text=text).status_code == 400


def test_reply_before_taking_over_is_refused(agent: Any, session: ChatSession) -> None:
    assert _press(agent, "console-reply", session, text="Hello").status_code == 409


def test_hand_back_lets_the_bot_answer_again(agent: Any, session: ChatSession) -> None:
    _press(agent, "console-take-over", session)
    _press(agent, "console-hand-back", session)
    assert _owner(session) == Owner.BOT


def test_conversation_of_a_colleague_cannot_be_answered(agent: Any, owner: Any, session: ChatSession) -> None:
    _press(agent, "console-take-over", session)
    assert _press(owner, "console-take-over", session).status_code == 409
    assert f"{agent.display_name} is answering this conversation" in _page(owner, session)


def test_viewer_is_told_that_looking_is_all(viewer: Any, session: ChatSession) -> None:
    page = _page(viewer, session)
    assert "can read conversations but not reply" in page
    assert "Take over</button>" not in page


def test_tabs_hold_what_their_names_say(agent: Any, deployment: Any, session: ChatSession) -> None:
    mine, waiting = make_session(deployment), make_session(deployment)
    for one in (mine, waiting):
        say(one, "Hello")
    with tenant_scope(deployment.tenant_id):
        handoff.take_over(mine.pk, agent)
        person_wanted.want_person(lock_session(waiting.pk))
    pages = {tab: browser(agent).get(reverse("console-inbox"), {"tab": tab}) for tab in ("mine", "bot", "unassigned")}
    found = {tab: [one.session.pk for one in page.context["listed"].rows] for tab, page in pages.items()}
    assert found == {"mine": [mine.pk], "bot": [session.pk], "unassigned": [waiting.pk]}


def test_unknown_tab_shows_all(agent: Any, session: ChatSession) -> None:
    assert browser(agent).get(reverse("console-inbox"), {"tab": "x"}).context["tab"] == "all"


def test_badge_counts_visitors_who_wait_for_a_person(agent: Any, session: ChatSession) -> None:
    with tenant_scope(session.tenant_id):
        person_wanted.want_person(lock_session(session.pk))
    page = browser(agent).get(reverse("console-rail")).content.decode()
    assert '<span class="count" id="inbox-count">1</span>' in page


def test_contact_shows_the_level_and_what_waits(agent: Any, session: ChatSession) -> None:
    make_card(session.tenant, session_id=session.pk, intent="Change the address")
    page = _page(agent, session).split('id="contact"')[1]
    assert "not verified" in page
    assert "Change the address" in page


def test_forgetting_deletes_what_is_remembered_and_keeps_what_was_said(agent: Any, session: ChatSession) -> None:
    mine = conversation(session.pk)
    remember(session.tenant_id, mine, "The pipe is in the kitchen.")
    assert "1 memory" in _page(agent, session)
    _press(agent, "console-forget", session)
    page = _page(agent, session)
    assert "No memories of" in page
    assert "burst pipe" in page
    assert kept_in(session.tenant_id, mine) == []


def test_viewer_cannot_forget_anybody(viewer: Any, session: ChatSession) -> None:
    mine = conversation(session.pk)
    remember(session.tenant_id, mine, "The pipe is in the kitchen.")
    assert "for good</button>" not in _page(viewer, session)
    assert _press(viewer, "console-forget", session).status_code == 403
    assert len(kept_in(session.tenant_id, mine)) == 1


@pytest.mark.parametrize("count", [1, 3])
def test_inbox_takes_the_same_queries_for_any_number(
    deployment: Any, owner: Any, count: int, django_assert_num_queries: Any
) -> None:
    for _ in range(count):
        say(make_session(deployment), "Hello")
    client = browser(owner)
    with django_assert_num_queries(QUERIES_OF_INBOX):
        client.get(reverse("console-inbox"))


# Two for the rail (budget alert, unread notifications), one each for unread and SLA clocks and for how many there are.
QUERIES_OF_INBOX = 32


# --- a hand-over


def _wanted(session: ChatSession, **why: str) -> None:
    with tenant_scope(session.tenant_id):
        person_wanted.want_person(lock_session(session.pk), **why)


def test_list_names_the_queue_in_which_a_visitor_waits(owner: Any, session: ChatSession) -> None:
    _wanted(session, queue="support_l2")
    assert '<span class="quiet">support_l2</span>' in browser(owner).get(reverse("console-inbox")).content.decode()


def test_hand_over_says_why_what_was_asked_and_what_was_answered(owner: Any, session: ChatSession) -> None:
    _bot_says(session, "It is covered.")
    _wanted(session, queue="support_l2", because="gate:toxicity_in")
    shown = _page(owner, session).partition('id="handover"')[2].partition("</section>")[0]
    assert all(
        words in shown
        for words in (
            "toxicity in",
            "support_l2",
            "Does my policy cover a burst pipe?",
            "It is covered.",
            "Identity not verified",
        )
    )


def test_hand_over_escapes_what_a_visitor_wrote(owner: Any, session: ChatSession) -> None:
    say(session, "<script>alert(1)</script>")
    _wanted(session)
    assert "<script>alert(1)" not in _page(owner, session)


def test_hand_over_leaves_out_small_talk(owner: Any, session: ChatSession) -> None:
    say(session, "Talk to a person")
    _wanted(session, because="asked")
    shown = _page(owner, session).partition('id="handover"')[2].partition("</section>")[0]
    assert "Talk to a person" not in shown
    assert "burst pipe" in shown


def test_hand_over_stays_while_a_colleague_answers_and_ends_with_the_bot(agent: Any, session: ChatSession) -> None:
    _wanted(session, queue="support_l2", because="asked")
    _press(agent, "console-take-over", session)
    during = "support_l2" in _page(agent, session)
    _press(agent, "console-hand-back", session)
    assert during is True
    assert "support_l2" not in _page(agent, session)


def test_conversation_that_nobody_handed_over_has_no_summary(owner: Any, session: ChatSession) -> None:
    assert 'id="handover" class="handover" aria-label="What you should know" hidden' in _page(owner, session)


@pytest.mark.parametrize("second", ["", "third_line"])
def test_who_waits_already_keeps_their_place_and_may_change_the_queue(session: ChatSession, second: str) -> None:
    _wanted(session, queue="support_l2")
    with tenant_scope(session.tenant_id):
        since = ChatSession.objects.get(pk=session.pk).wanted_person_at
    _wanted(session, queue=second)
    with tenant_scope(session.tenant_id):
        found = ChatSession.objects.get(pk=session.pk)
    assert found.wanted_person_at == since
    assert found.wanted_queue == (second or "support_l2")


# --- news of one part


def _news(user: Any, session: ChatSession, part: str) -> str:
    told = {**HTMX, "HTTP_HX_TARGET": part, "HTTP_HX_TRIGGER": part}
    return str(browser(user).get(reverse("console-conversation", args=[session.pk]), **told).content.decode())


def test_news_of_the_list_render_no_conversation(agent: Any, session: ChatSession) -> None:
    page = _news(agent, session, "conversations")
    assert f'id="c-{session.pk}" ' in page
    assert 'aria-current="true"' in page
    assert 'id="tabs"' in page
    assert 'id="log"' not in page
    assert 'id="contact"' not in page


def test_news_of_the_conversation_render_no_list(agent: Any, session: ChatSession) -> None:
    page = _news(agent, session, "log")
    assert 'id="conversations"' not in page
    assert all(f'id="{part}"' in page for part in ("log", "contact", "answering", "desk-state", "label-items"))


def test_press_that_changes_both_gets_both(agent: Any, session: ChatSession) -> None:
    told = {**HTMX, "HTTP_HX_TARGET": "conversations", "HTTP_HX_TRIGGER": "several"}
    data = {"pick": [str(session.pk)], "resolve": ""}
    address = reverse("console-several-beside", args=[session.pk])
    page = browser(agent).post(address, data, follow=True, **told).content.decode()
    assert 'id="conversations"' in page
    assert 'id="desk-state"' in page


# --- what is chosen stays chosen


def test_search_keeps_what_the_list_was_narrowed_to(agent: Any, deployment: Any, session: ChatSession) -> None:
    asked = {"tab": "mine", "status": "snoozed", "assignee": "nobody", "deployment": str(deployment.pk), "q": "pi"}
    page = browser(agent).get(reverse("console-inbox"), asked).content.decode()
    form = page.partition('role="search"')[2].partition("</form>")[0]
    for name in ("tab", "status", "assignee", "deployment"):
        assert f'name="{name}" value="{asked[name]}"' in form
    narrowing = page.partition('aria-label="State"')[2].partition("</nav>")[0]
    assert narrowing.count("q=pi") == narrowing.count("<a ")


def test_search_that_names_no_state_goes_on_in_all(agent: Any, session: ChatSession) -> None:
    page = browser(agent).get(reverse("console-inbox"), {"q": "pi"}).content.decode()
    assert 'name="status"' not in page.partition('role="search"')[2].partition("</form>")[0]


def test_pages_of_a_search_keep_it(agent: Any, deployment: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(desk.conversations, "__kwdefaults__", {"limit": 1})
    for _ in range(2):
        say(make_session(deployment), "A burst pipe")
    asked = {"q": "bur", "deployment": str(deployment.pk)}
    page = browser(agent).get(reverse("console-inbox"), asked).content.decode()
    older = page.partition('rel="next" href="')[2].partition('"')[0]
    assert "q=bur" in older
    assert f"deployment={deployment.pk}" in older
    assert "before=" in older
