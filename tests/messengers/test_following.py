"""A visitor leaves the widget, is answered by e-mail, and answers from there into the same conversation."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.core import mail
from django.test import Client, override_settings
from django.urls import reverse

from apps.access import tokens
from apps.bus.enums import Kind
from apps.contacts.enums import IdentityKind, Proof
from apps.contacts.models import ContactIdentity
from apps.messengers import inbound, ports
from apps.messengers.enums import ChannelKind
from apps.messengers.models import Channel, ChannelMessage, ChannelThread
from apps.sessions.models import ChatSession
from kernel.clock import now
from kernel.tenancy import tenant_scope
from tests.factories.bus import carry_out_kinds
from tests.factories.mail_servers import SUPPORT
from tests.factories.messengers import Recorder, make_channel, message
from tests.factories.sessions import make_session
from tests.factories.tenants import make_deployment
from tests.messengers.test_email import SECRET, hand_in, say, texts
from tests.messengers.test_email import mail as written


@pytest.fixture(autouse=True)
def installation_mail() -> Iterator[None]:
    backend = "django.core.mail.backends.locmem.EmailBackend"
    with override_settings(EMAIL_HOST="mail.test", EMAIL_BACKEND=backend):
        mail.outbox = []
        yield


@pytest.fixture
def channel(deployment: Any) -> Channel:
    return make_channel(deployment, ChannelKind.EMAIL, address=SUPPORT, webhook_secret=SECRET)


@pytest.fixture
def session(deployment: Any) -> ChatSession:
    return begin(deployment)


def begin(deployment: Any) -> ChatSession:
    session = make_session(deployment)
    session.deployment = deployment
    return session


def address_of(session: ChatSession) -> str:
    """An address of this test alone: how often one is written to is limited."""
    return f"ada-{session.pk.hex}@example.test"


def ask(session: ChatSession, address: str | None = None, key: str = "") -> Any:
    deployment = session.deployment
    token = tokens.mint(tokens.Visitor(deployment.public_key, session.tenant_id, session.pk))
    url = reverse("widget-email-answers", args=[key or deployment.public_key])
    headers = {"Authorization": f"Bearer {token}"}
    return Client(headers=headers).post(
        url, {"address": address_of(session) if address is None else address}, content_type="application/json"
    )


def deliver(channel: Channel) -> None:
    carry_out_kinds(channel.tenant_id, Kind.CHANNEL_DELIVERY)


def link() -> str:
    found = re.search(r"/channels/confirm/[\w-]+/", str(mail.outbox[-1].message()).replace("=\n", ""))
    assert found is not None
    return found[0]


def test_answer_reaches_who_left_and_their_reply_comes_back(channel: Channel, session: ChatSession) -> None:
    assert ask(session).status_code == 202
    deliver(channel)
    say(channel, session.pk, "Too early")
    deliver(channel)
    assert len(mail.outbox) == 1
    assert Client().get(link()).status_code == 200
    with tenant_scope(channel.tenant_id):
        assert ChannelThread.objects.get().confirm_hash != ""
    assert Client().post(link()).status_code == 200
    say(channel, session.pk, "Your refund was approved.")
    deliver(channel)
    deliver(channel)
    sent = mail.outbox[-1].message()
    assert "Your refund was approved." in sent.as_string()
    hand_in(channel, written("Thank you!", From=address_of(session), To=str(sent["Reply-To"])))
    assert texts(channel) == ["Thank you!"]
    with tenant_scope(channel.tenant_id):
        assert ChatSession.objects.count() == 1
        identity = ContactIdentity.objects.get(kind=IdentityKind.EMAIL)
        assert identity.value == address_of(session)
        assert identity.proved_by == Proof.LINK


def test_address_that_was_not_confirmed_is_in_no_conversation(channel: Channel, session: ChatSession) -> None:
    ask(session)
    deliver(channel)
    asked = mail.outbox[-1].message()
    assert "+" not in str(asked["Reply-To"])
    with tenant_scope(channel.tenant_id):
        key = ChannelThread.objects.get().key
    hand_in(channel, written("Who are you?", From=address_of(session), To=f"support+{key}@shop.test"))
    with tenant_scope(channel.tenant_id):
        assert ChatSession.objects.count() == 2


def test_link_confirms_once_and_not_after_its_day(channel: Channel, session: ChatSession) -> None:
    ask(session)
    deliver(channel)
    address = link()
    assert Client().post(address).status_code == 200
    assert Client().post(address).status_code == 404
    assert Client().get("/channels/confirm/nonsense/").status_code == 404
    ask(session, f"grace-{session.pk.hex}@example.test")
    deliver(channel)
    with tenant_scope(channel.tenant_id):
        ChannelThread.objects.exclude(confirm_hash="").update(confirm_until=now() - timedelta(seconds=1))
    assert Client().post(link()).status_code == 404


def test_confirming_needs_a_press(channel: Channel, session: ChatSession) -> None:
    ask(session)
    deliver(channel)
    for _ in range(3):
        Client().get(link())
    with tenant_scope(channel.tenant_id):
        assert ChatSession.objects.get(pk=session.pk).channel == ""


def test_visitor_who_is_there_gets_no_mail(
    channel: Channel, session: ChatSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(session)
    deliver(channel)
    Client().post(link())

    async def here(*_: Any) -> bool:
        return True

    monkeypatch.setattr("apps.messengers.delivery.is_open", here)
    deliver(channel)
    mail.outbox.clear()
    say(channel, session.pk, "Read in the widget")
    deliver(channel)
    assert len(mail.outbox) == 0
    with tenant_scope(channel.tenant_id):
        assert not ChannelMessage.objects.filter(seq__isnull=False).exists()


def test_mailbox_of_a_stranger_gets_one_mail_and_three_in_an_hour(channel: Channel, deployment: Any) -> None:
    answers = [ask(begin(deployment), f"victim-{deployment.pk.hex}@example.test").status_code for _ in range(5)]
    assert answers == [202, 202, 202, 429, 429]


@pytest.mark.parametrize("address", ["", "nonsense", "a@b", "x" * 300 + "@example.test"])
def test_no_address_is_refused(channel: Channel, session: ChatSession, address: str) -> None:
    assert ask(session, address).status_code == 400


def test_chatbot_without_a_mailbox_offers_nothing(session: ChatSession) -> None:
    assert ask(session).status_code == 404
    url = reverse("widget-offers", args=[session.deployment.public_key])
    assert Client().get(url).json()["email_answers"] is False


def test_token_of_another_company_opens_nothing(channel: Channel, session: ChatSession, other_tenant: Any) -> None:
    other = make_deployment(other_tenant)
    assert ask(session, key=other.public_key).status_code in (401, 404)


def test_mail_without_proof_ends_a_raised_level(channel: Channel, session: ChatSession) -> None:
    ask(session)
    deliver(channel)
    Client().post(link())
    say(channel, session.pk, "Anything else?")
    deliver(channel)
    deliver(channel)
    sent = mail.outbox[-1].message()
    with tenant_scope(channel.tenant_id):
        ChatSession.objects.filter(pk=session.pk).update(
            level="verified", customer="C-1", level_expires_at=now() + timedelta(hours=1)
        )
    hand_in(channel, written("With the token", From=address_of(session), To=str(sent["Reply-To"])))
    with tenant_scope(channel.tenant_id):
        assert ChatSession.objects.get(pk=session.pk).level == "verified"
    hand_in(channel, written("Without it", **{"From": address_of(session), "In-Reply-To": str(sent["Message-ID"])}))
    with tenant_scope(channel.tenant_id):
        assert ChatSession.objects.get(pk=session.pk).level == "public"


# -- by a link -----------------------------------------------------------------------------------------------------


class Messenger(Recorder):
    kind = ChannelKind.TELEGRAM

    def link(self, settings: Any, secret: str) -> str:
        return f"https://t.test/bot?start={secret}"


@pytest.fixture
def messenger(monkeypatch: pytest.MonkeyPatch) -> Messenger:
    adapter = Messenger()
    monkeypatch.setitem(ports._adapters, adapter.kind, adapter)
    return adapter


def follow(session: ChatSession, kind: str = "telegram") -> Any:
    deployment = session.deployment
    token = tokens.mint(tokens.Visitor(deployment.public_key, session.tenant_id, session.pk))
    url = reverse("widget-continue", args=[deployment.public_key])
    client = Client(headers={"Authorization": f"Bearer {token}"})
    return client.post(url, {"channel": kind}, content_type="application/json")


def start(channel: Channel, secret: str, peer: str = "77") -> inbound.Outcome:
    return inbound.receive(channel.tenant_id, channel.pk, message(peer=peer, continues=secret))


def press(channel: Channel, choice: str, peer: str = "77") -> inbound.Outcome:
    return inbound.receive(channel.tenant_id, channel.pk, message("", peer=peer, choice=choice))


def test_visitor_goes_on_in_a_messenger_and_answers_follow(
    channel: Channel, session: ChatSession, messenger: Messenger, deployment: Any
) -> None:
    telegram = make_channel(deployment, ChannelKind.TELEGRAM, number="1", token="t")
    offers = Client().get(reverse("widget-offers", args=[deployment.public_key])).json()
    assert offers["continue_in"] == [{"channel": "telegram", "name": "Telegram"}]
    made = follow(session)
    assert made.status_code == 201
    secret = made.json()["url"].partition("start=")[2]
    assert start(telegram, secret).problem == "asked_to_continue"
    deliver(telegram)
    question = messenger.sent[-1][1]
    assert "Do you want to continue" in question.text
    assert len(question.options[0].choice.encode()) <= 64
    assert press(telegram, question.options[0].choice).problem == "continued"
    assert press(telegram, question.options[0].choice, peer="666").problem == "choice_over"
    with tenant_scope(telegram.tenant_id):
        assert ChatSession.objects.get(pk=session.pk).resume_hash != session.resume_hash
    outcome = inbound.receive(telegram.tenant_id, telegram.pk, message("I'm here now", peer="77"))
    assert outcome.session_id == session.pk
    say(telegram, session.pk, "Good to see you.")
    for _ in range(4):
        deliver(telegram)
    assert messenger.texts[-1] == "Good to see you."
    assert "You can continue your conversation here." in messenger.texts


def test_earlier_conversation_in_the_messenger_is_left_as_it_is(
    session: ChatSession, messenger: Messenger, deployment: Any
) -> None:
    telegram = make_channel(deployment, ChannelKind.TELEGRAM, number="1", token="t")
    earlier = inbound.receive(telegram.tenant_id, telegram.pk, message("Hello", peer="77"))
    with tenant_scope(telegram.tenant_id):
        ChatSession.objects.filter(pk=session.pk).update(
            level="verified", customer="C-1", level_expires_at=now() + timedelta(hours=1)
        )
    say(telegram, earlier.session_id, "An answer in the earlier one")
    deliver(telegram)
    secret = follow(session).json()["url"].partition("start=")[2]
    start(telegram, secret)
    same = inbound.receive(telegram.tenant_id, telegram.pk, message("Not yet", peer="77"))
    assert same.session_id == earlier.session_id
    press(telegram, f"c:{secret}")
    with tenant_scope(telegram.tenant_id):
        assert ChatSession.objects.get(pk=session.pk).level == "public"
    messenger.sent.clear()
    say(telegram, session.pk, "An answer in the later one")
    for _ in range(5):
        deliver(telegram)
    assert messenger.texts[-1] == "An answer in the later one"
    assert "Not yet" not in messenger.texts
    later = inbound.receive(telegram.tenant_id, telegram.pk, message("Go on", peer="77"))
    assert earlier.session_id != later.session_id == session.pk


def test_link_ends_after_a_day_and_there_is_none_without_a_channel(
    session: ChatSession, messenger: Messenger, deployment: Any
) -> None:
    assert follow(session).status_code == 404
    telegram = make_channel(deployment, ChannelKind.TELEGRAM, number="1", token="t")
    secret = follow(session).json()["url"].partition("start=")[2]
    with tenant_scope(telegram.tenant_id):
        ChannelThread.objects.update(confirm_until=now() - timedelta(seconds=1))
    assert start(telegram, secret).problem == "empty"
    assert press(telegram, f"c:{secret}").problem == "choice_over"
    assert follow(session, "nonsense").status_code == 400
