"""Transcripts by e-mail: to whom, of what, and how often."""

from __future__ import annotations

import smtplib
from email.message import Message
from typing import Any
from uuid import uuid4

import pytest
from django.core import mail
from django.core.mail.backends.base import BaseEmailBackend

from apps.audit.models import AuditEntry
from apps.autonomy.models import Notification
from apps.bus.enums import Queue
from apps.bus.rules import MAX_ATTEMPTS
from apps.sessions import chronicle
from apps.sessions.enums import EntryKind, Sender
from apps.sessions.locks import lock_session
from apps.sessions.models import ChatSession
from apps.tenants.models import Deployment
from apps.visitors import forgetting, transcripts
from apps.visitors.models import TranscriptRequest
from kernel.tenancy import tenant_scope
from tests.factories.bus import lease_any, let_leases_run_out, let_waits_pass
from tests.factories.sessions import make_session, say
from tests.factories.visitors import Browser, offer, refused
from tests.factories.work import Hands

TO = "ada@example.com"


class Away(BaseEmailBackend):
    """A mail server that does not answer."""

    def send_messages(self, messages: Any) -> int:
        raise OSError("away")


class Refusing(BaseEmailBackend):
    def send_messages(self, messages: Any) -> int:
        raise smtplib.SMTPRecipientsRefused({})


@pytest.fixture(autouse=True)
def outbox(database: None, settings: Any) -> list[Any]:
    settings.EMAIL_HOST, settings.EMAIL_BACKEND = "mail.test", "django.core.mail.backends.locmem.EmailBackend"
    mail.outbox = []
    return mail.outbox


@pytest.fixture
def session(deployment: Deployment) -> ChatSession:
    offer(deployment, transcripts=True)
    session = make_session(deployment)
    say(session, "Where is <b>my</b> order?")
    return session


@pytest.fixture
def visitor(deployment: Deployment, session: ChatSession) -> Browser:
    return Browser(deployment, session)


def _ask(visitor: Browser, address: str = TO, client_id: str = "") -> Any:
    """Each test has addresses of its own: they are counted over all of them."""
    address = address.replace("ada", f"ada-{uuid4().hex}") if address == TO else address
    return visitor.post("transcripts", {"address": address, "client_id": client_id or uuid4().hex})


def _state(visitor: Browser, asked: Any) -> str:
    return str(visitor.get(f"transcripts/{asked.json()['id']}").json()["state"])


def _send(session: ChatSession) -> None:
    Hands(session.tenant_id).work(Queue.TRUSTED)


@pytest.mark.parametrize(
    "address",
    [
        "",
        "ada",
        "a@b.test, c@d.test",
        "a@b.test\nBcc: c@d.test",
        "Ada <a@b.test>",
        "a@b.test;c@d.test",
        "x" * 250 + "@b.test",
    ],
)
def test_what_is_no_single_address_is_refused(
    visitor: Browser, session: ChatSession, address: str, outbox: list[Any]
) -> None:
    assert _ask(visitor, address).status_code == 400
    _send(session)
    assert outbox == []


def test_transcript_without_a_token_is_refused(visitor: Browser) -> None:
    visitor.token = "forged"
    assert _ask(visitor).status_code == 401


def test_transcript_is_not_sent_where_it_is_not_offered(deployment: Deployment, visitor: Browser) -> None:
    offer(deployment, transcripts=False)
    assert _ask(visitor).status_code == 404


def test_transcript_is_not_taken_without_a_mail_server(visitor: Browser, settings: Any) -> None:
    settings.EMAIL_HOST = ""
    assert _ask(visitor).status_code == 404


def test_transcript_of_nothing_is_refused(deployment: Deployment, session: ChatSession) -> None:
    assert refused(_ask(Browser(deployment, make_session(deployment)))) == (409, "nothing_said")


def test_too_many_letters_of_a_conversation_are_refused(visitor: Browser) -> None:
    assert [_ask(visitor).status_code for _ in range(4)] == [201, 201, 201, 429]


def test_too_many_letters_to_one_address_are_refused(deployment: Deployment, session: ChatSession) -> None:
    address, answers = f"{uuid4().hex}@example.com", []
    for _ in range(4):
        other = make_session(deployment)
        say(other, "Hello")
        answers.append(_ask(Browser(deployment, other), address).status_code)
    assert answers == [201, 201, 201, 429]


def test_too_many_letters_from_one_place_are_refused(deployment: Deployment, session: ChatSession) -> None:
    answers = []
    for _ in range(11):
        other = make_session(deployment)
        say(other, "Hello")
        answers.append(_ask(Browser(deployment, other, REMOTE_ADDR="203.0.113.77")).status_code)
    assert answers == [201] * 10 + [429]


def test_letter_is_not_sent_before_it_is_committed(visitor: Browser, outbox: list[Any]) -> None:
    asked = _ask(visitor)
    assert asked.status_code == 201
    assert _state(visitor, asked) == "owed"
    assert outbox == []


def test_letter_asked_for_twice_is_sent_once(visitor: Browser, session: ChatSession, outbox: list[Any]) -> None:
    first, second = _ask(visitor, client_id="same"), _ask(visitor, client_id="same")
    _send(session)
    _send(session)
    assert first.json()["id"] == second.json()["id"]
    assert len(outbox) == 1


def test_sent_letter_says_so_and_lets_the_address_go(visitor: Browser, session: ChatSession) -> None:
    asked = _ask(visitor)
    _send(session)
    with tenant_scope(session.tenant_id):
        assert TranscriptRequest.objects.get(session=session).address == ""
    assert _state(visitor, asked) == "sent"


def test_letter_holds_what_was_said_as_text_and_as_html(
    visitor: Browser, session: ChatSession, outbox: list[Any]
) -> None:
    _ask(visitor)
    _send(session)
    letter = outbox[0]
    assert "Where is <b>my</b> order?" in letter.body
    assert "Where is &lt;b&gt;my&lt;/b&gt; order?" in letter.alternatives[0][0]


def test_letter_has_no_link_that_a_stranger_wrote(visitor: Browser, session: ChatSession, outbox: list[Any]) -> None:
    say(session, "See https://evil.test/ and <a href='https://evil.test'>this</a>")
    _ask(visitor)
    _send(session)
    assert "<a " not in outbox[0].alternatives[0][0]


def test_letter_ends_where_it_was_asked_for(visitor: Browser, session: ChatSession, outbox: list[Any]) -> None:
    _ask(visitor)
    say(session, "Said later")
    _send(session)
    assert "Said later" not in outbox[0].body


def test_letter_leaves_out_what_is_no_message(visitor: Browser, session: ChatSession, outbox: list[Any]) -> None:
    with tenant_scope(session.tenant_id):
        locked = lock_session(session.pk)
        chronicle.append(locked, kind=EntryKind.STATUS, sender=Sender.SYSTEM, text="Inner workings")
    _ask(visitor)
    _send(session)
    assert "Inner workings" not in outbox[0].body


def test_title_of_several_lines_is_one_subject(
    deployment: Deployment, visitor: Browser, session: ChatSession, outbox: list[Any]
) -> None:
    with tenant_scope(deployment.tenant_id):
        Deployment.objects.filter(pk=deployment.pk).update(title="Desk\nBcc: c@d.test")
    _ask(visitor)
    _send(session)
    sent: Message = outbox[0].message()
    assert sent["Bcc"] is None
    assert "\n" not in sent["Subject"]


def test_letter_that_is_owed_when_the_mail_server_goes_is_given_up(
    visitor: Browser, session: ChatSession, settings: Any
) -> None:
    asked = _ask(visitor)
    settings.EMAIL_HOST = ""
    _send(session)
    assert _state(visitor, asked) == "given_up"


def test_letter_of_another_conversation_is_not_told_of(deployment: Deployment, visitor: Browser) -> None:
    asked = _ask(visitor)
    other = Browser(deployment, make_session(deployment))
    assert other.get(f"transcripts/{asked.json()['id']}").status_code == 404


def test_mail_server_that_is_away_is_tried_again(visitor: Browser, session: ChatSession, settings: Any) -> None:
    asked, there = _ask(visitor), settings.EMAIL_BACKEND
    settings.EMAIL_BACKEND = f"{__name__}.Away"
    _send(session)
    assert _state(visitor, asked) == "owed"
    settings.EMAIL_BACKEND = there
    let_waits_pass(session.tenant)
    _send(session)
    assert _state(visitor, asked) == "sent"


def test_letter_that_fails_too_often_is_given_up(visitor: Browser, session: ChatSession, settings: Any) -> None:
    asked = _ask(visitor)
    settings.EMAIL_BACKEND = f"{__name__}.Away"
    for _ in range(transcripts.MOST_ATTEMPTS):
        let_waits_pass(session.tenant)
        _send(session)
    assert _state(visitor, asked) == "given_up"


def test_address_that_is_refused_is_given_up_at_once(visitor: Browser, session: ChatSession, settings: Any) -> None:
    asked = _ask(visitor)
    settings.EMAIL_BACKEND = f"{__name__}.Refusing"
    _send(session)
    assert _state(visitor, asked) == "given_up"


def test_address_is_not_in_the_audit_log(visitor: Browser, session: ChatSession) -> None:
    _ask(visitor)
    _send(session)
    with tenant_scope(session.tenant_id):
        told = [*AuditEntry.objects.filter(event__startswith="transcript_").values_list("data", flat=True)]
    assert len(told) == 2
    assert not any("example.com" in each for each in told)


def test_letter_of_a_forgotten_visitor_is_not_sent(
    visitor: Browser, session: ChatSession, owner: Any, outbox: list[Any]
) -> None:
    _ask(visitor)
    with tenant_scope(session.tenant_id):
        forgetting.forget_visitor(session.pk, owner)
    _send(session)
    assert outbox == []


def test_letter_whose_sender_died_is_sent(visitor: Browser, session: ChatSession, outbox: list[Any]) -> None:
    asked = _ask(visitor)
    with tenant_scope(session.tenant_id):
        lease_any(Queue.TRUSTED, consumer="doomed", scope_id=f"transcript_mail:{asked.json()['id']}")
    _send(session)
    assert outbox == []
    let_leases_run_out(session.tenant)
    _send(session)
    assert len(outbox) == 1


def test_letter_that_cannot_be_written_is_given_up_and_stops_no_other(
    deployment: Deployment, visitor: Browser, session: ChatSession
) -> None:
    with tenant_scope(session.tenant_id):
        unknown: Any = "nobody"
        chronicle.append(lock_session(session.pk), kind=EntryKind.MESSAGE, sender=unknown, text="Hello")
    other = make_session(deployment)
    say(other, "Hello")
    broken, stranger = _ask(visitor), Browser(deployment, other)
    good = _ask(stranger)
    for _ in range(MAX_ATTEMPTS):
        _send(session)
        let_waits_pass(session.tenant)
    assert _state(visitor, broken) == "given_up"
    assert _state(stranger, good) == "sent"
    with tenant_scope(session.tenant_id):
        assert TranscriptRequest.objects.get(pk=broken.json()["id"]).address == ""
        assert Notification.objects.get().about == "transcript"
