"""Asking a visitor from the console: the form, the preview, and the answer."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.urls import reverse

from apps.inbox import handoff
from apps.sessions.models import ChatSession
from apps.visitors import prompts
from apps.visitors.models import VisitorCard
from kernel.clock import now
from kernel.tenancy import tenant_scope
from tests.factories.console import HTMX, browser
from tests.factories.sessions import make_session, say, visitor_of
from tests.factories.tenants import make_member

CHOICE = {"kind": "choice", "question": "Which day suits you?", "answers": "Monday\nTuesday", "seconds": "86400"}
YES = {"kind": "yes", "question": "Shall we cancel it?", "yes": "Cancel it", "no": "Keep it", "seconds": "86400"}
SECRET = {"kind": "secret", "label": "Your PIN", "instructions": "Six digits.", "seconds": "3600"}
FORM = {"kind": "form", "question": "About your return", "seconds": "86400"} | {
    "label_1": "Order number",
    "takes_1": "number",
    "required_1": "on",
    "label_2": "Day",
    "takes_2": "date",
    "label_4": "Way",
    "takes_4": "choice",
    "choices_4": "Post; Shop",
}


@pytest.fixture
def session(deployment: Any) -> ChatSession:
    made = make_session(deployment)
    say(made, "My order does not come.")
    return made


def _ask(user: Any, session: ChatSession, data: dict[str, str], **more: Any) -> Any:
    return browser(user).post(reverse("console-ask", args=[session.pk]), data, **more)


def _cards(session: ChatSession) -> list[VisitorCard]:
    with tenant_scope(session.tenant_id):
        return list(VisitorCard.objects.filter(session=session))


def _log(user: Any, session: ChatSession) -> str:
    page = browser(user).get(reverse("console-conversation", args=[session.pk])).content.decode()
    return str(page.partition('id="log"')[2].partition('id="writing"')[0])


@pytest.mark.parametrize("who", ["viewer", "stranger"])
def test_question_of_somebody_without_the_role_is_refused(session: ChatSession, who: str, request: Any) -> None:
    assert _ask(request.getfixturevalue(who), session, CHOICE).status_code == 403
    assert _cards(session) == []


def test_question_from_another_company_is_not_found(session: ChatSession, other_tenant: Any) -> None:
    assert _ask(make_member(other_tenant, "owner"), session, CHOICE).status_code == 404


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        (CHOICE | {"question": ""}, "id_question_error"),
        (CHOICE | {"answers": " \n "}, "id_answers_error"),
        (CHOICE | {"answers": "Monday\nmonday"}, "id_answers_error"),
        (CHOICE | {"answers": "\n".join("abcdefghi")}, "id_answers_error"),
        (CHOICE | {"answers": "x" * 81}, "id_answers_error"),
        (CHOICE | {"question": "Send it to \u202eevil"}, "id_question_error"),
        (CHOICE | {"risk": "irreversible"}, "id_risk_error"),
        (CHOICE | {"seconds": "5"}, "id_seconds_error"),
        (YES | {"no": ""}, "id_no_error"),
        (SECRET | {"instructions": ""}, "id_instructions_error"),
        (FORM | {"label_1": "", "label_2": "", "label_4": ""}, "id_label_1_error"),
        (FORM | {"label_2": "Order number"}, "id_label_2_error"),
        (FORM | {"choices_4": "Post"}, "id_choices_4_error"),
        (FORM | {"takes_1": "file"}, "id_takes_1_error"),
        (FORM | {"label_8": "Pay \u202eevil"}, "id_label_8_error"),
        ({"kind": "plan", "question": "x"}, 'role="alert"'),
    ],
)
def test_question_that_is_none_is_told_at_its_field(
    agent: Any, session: ChatSession, wrong: dict[str, str], field: str
) -> None:
    answer = _ask(agent, session, wrong)
    assert answer.status_code == 422
    assert field in answer.content.decode()
    assert _cards(session) == []


def test_question_while_a_colleague_answers_is_refused_and_kept(agent: Any, owner: Any, session: ChatSession) -> None:
    with tenant_scope(session.tenant_id):
        handoff.take_over(session.pk, owner)
    answer = _ask(agent, session, CHOICE, **HTMX)
    assert answer.status_code == 409
    assert answer["X-Console-Refusal"] == "not_asked"
    assert "A colleague is now answering" in answer.content.decode()
    assert "Which day suits you?" in answer.content.decode()


def test_look_shows_the_card_and_asks_nothing(agent: Any, session: ChatSession) -> None:
    shown = _ask(agent, session, CHOICE | {"risk": "high", "look": "1"}).content.decode()
    preview = shown.partition('id="ask-preview"')[2]
    assert "<li>Tuesday</li>" in preview
    assert "slide and confirm" in preview
    assert _cards(session) == []


def test_question_sent_twice_is_asked_once(agent: Any, session: ChatSession) -> None:
    for _ in range(2):
        assert _ask(agent, session, CHOICE | {"once": "n1"}).status_code == 302
    assert len(_cards(session)) == 1


def test_yes_or_no_has_a_risk_and_two_answers(agent: Any, session: ChatSession) -> None:
    _ask(agent, session, YES | {"risk": "high"})
    (card,) = _cards(session)
    assert card.risk == "high"
    assert [each["label"] for each in card.payload["options"]] == ["Cancel it", "Keep it"]


def test_dialog_leads_to_the_conversation(agent: Any, session: ChatSession) -> None:
    answer = _ask(agent, session, CHOICE, **HTMX)
    assert answer.status_code == 204
    assert str(session.pk) in answer["HX-Location"]


def test_thread_says_what_was_asked_and_what_was_chosen(agent: Any, deployment: Any, session: ChatSession) -> None:
    _ask(agent, session, CHOICE)
    before = _log(agent, session)
    (card,) = _cards(session)
    with tenant_scope(session.tenant_id):
        prompts.answer(visitor_of(deployment, session.pk), card.pk, value="answer_2")
    after = _log(agent, session)
    assert "Withdraw" in before
    assert 'chip">Tuesday' in before
    assert "Withdraw" not in after
    assert 'chip ok">Tuesday' in after
    assert 'chip">Monday' in after


def test_thread_holds_no_secret(agent: Any, deployment: Any, session: ChatSession) -> None:
    _ask(agent, session, SECRET)
    (card,) = _cards(session)
    with tenant_scope(session.tenant_id):
        prompts.store_secret(visitor_of(deployment, session.pk), card.pk, "847362")
    shown = _log(agent, session)
    assert "Your PIN" in shown
    assert "never shown here" in shown
    assert "847362" not in shown


def test_question_whose_time_is_up_says_so(agent: Any, session: ChatSession) -> None:
    _ask(agent, session, SECRET)
    with time_machine.travel(now() + timedelta(hours=2)):
        shown = _log(agent, session)
    assert "Expired without an answer" in shown
    assert "Withdraw" not in shown


def test_question_is_taken_back_once(agent: Any, session: ChatSession) -> None:
    _ask(agent, session, CHOICE)
    (card,) = _cards(session)
    address = reverse("console-ask-back", args=[session.pk, card.pk])
    assert [browser(agent).post(address).status_code for _ in range(2)] == [302, 409]
    assert "Withdrawn without an answer" in _log(agent, session)


def test_form_is_asked_with_its_fields_in_order(agent: Any, session: ChatSession) -> None:
    assert _ask(agent, session, FORM).status_code == 302
    (card,) = _cards(session)
    told = [(each["label"], each["kind"], each["required"], each["choices"]) for each in card.payload["fields"]]
    assert card.kind == "form"
    assert told == [
        ("Order number", "number", True, []),
        ("Day", "date", False, []),
        ("Way", "choice", False, ["Post", "Shop"]),
    ]


def test_look_at_a_form_shows_its_fields(agent: Any, session: ChatSession) -> None:
    shown = _ask(agent, session, FORM | {"look": "1"}).content.decode().partition('id="ask-preview"')[2]
    assert "<dt>Order number</dt>" in shown
    assert "Day (optional)" in shown
    assert "Post · Shop" in shown
    assert _cards(session) == []


def test_thread_and_contact_show_what_was_filled_in(agent: Any, deployment: Any, session: ChatSession) -> None:
    _ask(agent, session, FORM)
    (card,) = _cards(session)
    names = [each["name"] for each in card.payload["fields"]]
    with tenant_scope(session.tenant_id):
        visitor = visitor_of(deployment, session.pk)
        prompts.fill(visitor, card.pk, {names[0]: "1234", names[1]: "2026-02-01", names[2]: "Shop"})
    page = browser(agent).get(reverse("console-conversation", args=[session.pk])).content.decode()
    thread, _, beside = page.partition('id="contact"')
    assert "<dd>2026-02-01</dd>" in thread
    assert "verify their identity" in thread
    assert "Order number" in beside
    assert "1234" in beside
