"""The form before the first word: whoever wants past it first."""

from __future__ import annotations

from typing import Any

import pytest
from django.urls import reverse

from apps.audit.models import AuditEntry
from apps.sessions.models import ChatSession
from apps.tenants.models import Deployment
from apps.visitors import forgetting, offers, prechat
from apps.visitors.models import FormAnswers
from kernel.errors import SilasError
from kernel.tenancy import in_thread, tenant_scope
from tests.factories.console import browser
from tests.factories.sessions import make_session, say
from tests.factories.visitors import Browser, ask, refused
from tests.sessions.test_socket import _present

NAME = {"kind": "name", "label": "Your name", "required": True}
MAIL = {"kind": "email", "label": "E-mail"}
TOPIC = {"kind": "choice", "label": "About", "choices": ["Claims", "Other"]}


@pytest.fixture
def asked(deployment: Deployment) -> list[str]:
    return ask(deployment, NAME, MAIL, TOPIC)


@pytest.fixture
def session(deployment: Deployment, asked: list[str]) -> ChatSession:
    return make_session(deployment)


@pytest.fixture
def visitor(deployment: Deployment, session: ChatSession) -> Browser:
    return Browser(deployment, session)


def kept(session: ChatSession) -> list[dict[str, str]]:
    with tenant_scope(session.tenant_id):
        return prechat.answers_of(session.pk)


def _begin(visitor: Browser, **body: str) -> Any:
    return visitor.post("sessions", body).json()


async def test_message_before_the_form_is_not_taken(deployment: Deployment, session: ChatSession) -> None:
    socket = await _present(deployment, session)
    await socket.send_frame(type="message", text="Hello", client_id="c1")
    frames = await socket.frames_until("error")
    assert frames[-1]["code"] == "form_required"
    assert frames[-1]["client_id"] == "c1"
    await socket.disconnect()


async def test_message_after_the_form_is_taken(
    deployment: Deployment, session: ChatSession, visitor: Browser, asked: list[str]
) -> None:
    socket = await _present(deployment, session)
    await socket.frames_until("ready")
    await in_thread(visitor.post, "form", {"answers": {asked[0]: "Ada"}})
    await socket.send_frame(type="message", text="Hello", client_id="c1")
    assert (await socket.frames_until("ack"))[-1]["client_id"] == "c1"
    await socket.disconnect()


@pytest.mark.parametrize(
    ("place", "value", "problem"),
    [
        (0, "", "required"),
        (0, "  \n ", "required"),
        (0, "x" * 121, "too_long"),
        (0, "Ada\u202eadA", "not_shown"),
        (1, "no address", "email"),
        (1, "a@b.c, d@e.f", "email"),
        (2, "Something else", "choice"),
    ],
)
def test_wrong_answer_is_refused(visitor: Browser, asked: list[str], place: int, value: str, problem: str) -> None:
    answer = visitor.post("form", {"answers": {asked[0]: "Ada"} | {asked[place]: value}})
    assert answer.status_code == 400
    assert answer.json()["error"]["extra"]["fields"] == {asked[place]: problem}


def test_form_with_a_wrong_answer_writes_nothing(visitor: Browser, session: ChatSession, asked: list[str]) -> None:
    visitor.post("form", {"answers": {asked[0]: "Ada", asked[1]: "no address"}})
    assert kept(session) == []


@pytest.mark.parametrize("body", [{}, {"answers": []}, {"answers": {"x": {"y": 1}}}, {"answers": "text"}, []])
def test_form_of_another_shape_is_refused(visitor: Browser, body: Any) -> None:
    assert visitor.post("form", body).status_code == 400


def test_answer_to_what_is_not_asked_is_refused(visitor: Browser, asked: list[str]) -> None:
    answer = visitor.post("form", {"answers": {asked[0]: "Ada", "customer": "C-1"}})
    assert refused(answer) == (409, "form_changed")


def test_form_sent_twice_is_written_once(visitor: Browser, session: ChatSession, asked: list[str]) -> None:
    first = visitor.post("form", {"answers": {asked[0]: "Ada"}}).json()
    second = visitor.post("form", {"answers": {asked[0]: "Eve"}}).json()
    assert first == {"repeated": False}
    assert second == {"repeated": True}
    assert kept(session)[0]["value"] == "Ada"


def test_form_without_a_token_is_refused(visitor: Browser, asked: list[str]) -> None:
    visitor.token = ""
    assert visitor.post("form", {"answers": {asked[0]: "Ada"}}).status_code == 401


def test_answers_prove_nobody(visitor: Browser, session: ChatSession, asked: list[str]) -> None:
    visitor.post("form", {"answers": {asked[0]: "Ada"}})
    with tenant_scope(session.tenant_id):
        now = ChatSession.objects.get(pk=session.pk)
    assert now.level == "public"
    assert now.customer == ""
    assert now.customer_name == ""


def test_what_was_typed_is_not_in_the_audit_log(visitor: Browser, session: ChatSession, asked: list[str]) -> None:
    visitor.post("form", {"answers": {asked[0]: "Ada Unmistakable"}})
    with tenant_scope(session.tenant_id):
        entry = AuditEntry.objects.get(event="form_answered")
    assert entry.data == '{"answered":1,"questions":3}'


def test_staff_see_the_answers_as_text(visitor: Browser, session: ChatSession, asked: list[str], owner: Any) -> None:
    visitor.post("form", {"answers": {asked[0]: "<b>Ada</b>"}})
    page = browser(owner).get(reverse("console-conversation", args=[session.pk])).content.decode()
    assert "&lt;b&gt;Ada&lt;/b&gt;" in page
    assert "This doesn't verify their identity" in page


def test_form_is_due_until_it_is_answered(visitor: Browser, asked: list[str]) -> None:
    begun = _begin(visitor)
    visitor.token = begun["token"]
    visitor.post("form", {"answers": {asked[0]: "Ada"}})
    resumed = _begin(visitor, resume_token=begun["resume_token"])
    assert begun["form_due"] is True
    assert "form_due" not in resumed


def test_form_is_not_due_where_something_was_said(deployment: Deployment, visitor: Browser) -> None:
    with tenant_scope(deployment.tenant_id):
        offers.change_form(deployment, [], actor="user:test")
    session = make_session(deployment)
    say(session, "Hello")
    ask(deployment, NAME)
    with tenant_scope(session.tenant_id):
        assert not prechat.is_due(session)


def test_form_that_asks_nothing_is_not_due(deployment: Deployment) -> None:
    assert _begin(Browser(deployment, make_session(deployment))).get("form_due") is None


def test_forgetting_a_visitor_deletes_their_answers(
    visitor: Browser, session: ChatSession, asked: list[str], owner: Any
) -> None:
    visitor.post("form", {"answers": {asked[0]: "Ada"}})
    with tenant_scope(session.tenant_id):
        forgetting.forget_visitor(session.pk, owner)
        assert not FormAnswers.objects.filter(session=session).exists()


@pytest.mark.parametrize(
    "question",
    [
        {"kind": "password", "label": "Secret"},
        {"kind": "text", "label": " "},
        {"kind": "text", "label": "x" * 121},
        {"kind": "choice", "label": "About"},
        {"kind": "text", "label": "About", "choices": ["a"]},
        {"kind": "choice", "label": "About", "choices": [str(n) for n in range(21)]},
    ],
)
def test_question_that_cannot_be_asked_is_refused(deployment: Deployment, question: dict[str, Any]) -> None:
    with pytest.raises(SilasError) as refusal:
        ask(deployment, question)
    assert refusal.value.code == "invalid_form"


def test_form_of_too_many_questions_is_refused(deployment: Deployment) -> None:
    with pytest.raises(SilasError, match="Use up to 8 questions"):
        ask(deployment, *[NAME] * 9)


def test_form_that_stays_as_it_is_keeps_its_questions(deployment: Deployment, asked: list[str]) -> None:
    assert ask(deployment, NAME, MAIL, TOPIC) == asked
