"""Text messages against a small server in Twilio's shape: signed forms, receipts, opting out, and its error codes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

import pytest
from django.test import Client
from django.urls import reverse

from apps.bus.enums import Kind
from apps.contacts.enums import IdentityKind
from apps.contacts.models import ContactIdentity
from apps.messengers import ports, services
from apps.messengers.delivery import place_of
from apps.messengers.enums import ChannelKind, Direction, MessageState
from apps.messengers.models import Channel, ChannelMessage, ChannelThread
from apps.messengers.ports import NotSent, Outbound, OutboundFile, OutboundOption
from apps.messengers.sms.adapter import signature
from apps.sessions.models import ChronicleEntry
from apps.visitors import offers, prompts
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope
from tests.factories.bus import carry_out_kinds
from tests.factories.messenger_providers import Twilio, serving
from tests.factories.messengers import make_channel
from tests.messengers.conftest import Say

ADA = "+491701234567"
WEBHOOK = "https://chat.example.com/channels/sms/x"


@pytest.fixture
def twilio(database: None) -> Iterator[Twilio]:
    with serving(Twilio()) as provider:
        assert isinstance(provider, Twilio)
        yield provider


@pytest.fixture
def channel(twilio: Twilio, deployment: Any) -> Channel:
    made = make_channel(deployment, ChannelKind.SMS, **twilio.values)
    return asyncio.run(services.connect(made.tenant_id, made.pk, webhook=WEBHOOK, actor="user:test"))


def call(channel: Channel, *, token: str = "12345", address: str = WEBHOOK, **form: str) -> Any:
    url = reverse("channel-webhook", args=["sms", channel.public_id])
    signed = {"X-Twilio-Signature": signature(token, address, list(form.items()))}
    return Client().post(url, urlencode(form), content_type="application/x-www-form-urlencoded", headers=signed)


def message(number: int, text: str = "", *, who: str = ADA, **more: str) -> dict[str, str]:
    return {"MessageSid": f"SMin{number}", "From": who, "To": Twilio.number, "Body": text, "NumMedia": "0", **more}


def write(channel: Channel, number: int, text: str = "", **more: str) -> UUID:
    assert call(channel, **message(number, text, **more)).status_code == 200
    with tenant_scope(channel.tenant_id):
        session_id = ChannelThread.objects.get(key=ADA).session_id
    assert session_id is not None
    return session_id


def deliver(channel: Channel) -> None:
    carry_out_kinds(channel.tenant_id, Kind.CHANNEL_DELIVERY)


def row(channel: Channel, direction: Direction) -> ChannelMessage:
    with tenant_scope(channel.tenant_id):
        return ChannelMessage.objects.filter(channel=channel, direction=direction).order_by("-created_at")[0]


def send(channel: Channel, outbound: Outbound, **place: Any) -> ports.Sent:
    with tenant_scope(channel.tenant_id):
        there = place_of(channel)
    whole = ports.Place(**{**vars(there), "peer": ADA, **place})
    return asyncio.run(ports.adapter_of("sms").send(whole, outbound))


# -- calls -------------------------------------------------------------------------------------------------------------


def test_signature_is_as_twilio_publishes_it() -> None:
    """The examples of Twilio's page on security, and of the tests of its own libraries."""
    form = [
        ("To", "+18005551212"),
        ("Digits", "1234"),
        ("CallSid", "CA1234567890ABCDE"),
        ("From", "+14158675309"),
        ("Caller", "+14158675309"),
    ]
    assert signature("12345", "https://mycompany.com/myapp.php?foo=1&bar=2", form) == "RSOYDt4T1cUTdK1PDd93/VVr8B8="
    repeated = [("Sid", "CA123"), ("SidAccount", "AC123"), *(("Digits", each) for each in ("5678", "1234", "1234"))]
    url = "https://mycompany.com/myapp.php?foo=1&bar=2"
    assert signature("12345", url, repeated) == "IK+Dwps556ElfBT0I3Rgjkr1wJU="


@pytest.mark.parametrize("wrong", [{"token": "guessed"}, {"address": "https://evil.example/x"}])
def test_call_with_another_signature_is_refused(channel: Channel, wrong: dict[str, str]) -> None:
    assert call(channel, **wrong, **message(1, "Hello")).status_code == 403
    with tenant_scope(channel.tenant_id):
        assert not ChannelMessage.objects.exists()


def test_changed_form_and_missing_signature_are_refused(channel: Channel) -> None:
    url = reverse("channel-webhook", args=["sms", channel.public_id])
    form = message(1, "Hello")
    signed = signature("12345", WEBHOOK, list(form.items()))
    for headers, sent in (({}, form), ({"X-Twilio-Signature": signed}, {**form, "Body": "Goodbye"})):
        kind = "application/x-www-form-urlencoded"
        assert Client().post(url, urlencode(sent), content_type=kind, headers=headers).status_code == 403
    assert Client().get(url).status_code == 403


def test_signed_form_of_another_shape_is_refused(channel: Channel) -> None:
    assert call(channel, Body="Hello").status_code == 400


def test_address_of_the_request_counts_before_the_channel_was_checked(twilio: Twilio, deployment: Any) -> None:
    channel = make_channel(deployment, ChannelKind.SMS, **twilio.values)
    address = f"http://testserver{reverse('channel-webhook', args=['sms', channel.public_id])}"
    assert call(channel, address=address, **message(1, "Hello")).status_code == 200


# -- conversations -----------------------------------------------------------------------------------------------------


def test_message_begins_a_conversation_and_its_answer_is_sent(channel: Channel, twilio: Twilio, say: Say) -> None:
    answer = call(channel, **message(1, "Where is my parcel?"))
    assert answer.content == b"<Response/>"
    assert answer["Content-Type"] == "text/xml"
    say(channel, write(channel, 1, "Where is my parcel?"), "It is **on its way**.")
    with tenant_scope(channel.tenant_id):
        assert ContactIdentity.objects.get(kind=IdentityKind.PHONE).value == ADA
        assert ChronicleEntry.objects.filter(text="Where is my parcel?").count() == 1
    assert twilio.sent == [{"To": ADA, "From": Twilio.number, "Body": "It is on its way.", "StatusCallback": WEBHOOK}]
    assert row(channel, Direction.OUT).external_id == "SM1"


def test_sender_that_is_no_number_proves_nothing(channel: Channel) -> None:
    assert call(channel, **message(1, "Your code is 123", who="BANK")).status_code == 200
    with tenant_scope(channel.tenant_id):
        assert ChannelThread.objects.get().proved_by == ""
        assert not ContactIdentity.objects.exists()


def test_receipts_in_any_order_move_a_message_forward(channel: Channel, say: Say) -> None:
    say(channel, write(channel, 1, "Hello"), "An answer")
    for status in ("delivered", "sent", "sending", "queued"):
        assert call(channel, MessageSid="SM1", MessageStatus=status).status_code == 200
        assert row(channel, Direction.OUT).state == MessageState.DELIVERED


@pytest.mark.parametrize(("code", "problem"), [("30003", "undeliverable"), ("30007", "filtered"), ("1", "refused_1")])
def test_failure_that_is_reported_later_is_shown(channel: Channel, say: Say, code: str, problem: str) -> None:
    say(channel, write(channel, 1, "Hello"), "An answer")
    call(channel, MessageSid="SM1", MessageStatus="undelivered", ErrorCode=code)
    assert row(channel, Direction.OUT).state == MessageState.FAILED
    assert row(channel, Direction.OUT).problem == problem


@pytest.mark.parametrize("form", [{"text": " Stop "}, {"text": "Arrêt", "OptOutType": "STOP"}])
def test_stop_ends_answers_and_start_begins_them(
    channel: Channel, twilio: Twilio, say: Say, form: dict[str, str]
) -> None:
    session_id = write(channel, 1, "Hello")
    write(channel, 2, **form)
    write(channel, 3, "One more thing")
    say(channel, session_id, "An answer")
    assert twilio.sent == []
    write(channel, 4, "START", OptOutType="START")
    say(channel, session_id, "Another answer")
    assert [each["Body"] for each in twilio.sent] == ["Another answer"]


def test_help_is_left_to_twilio(channel: Channel) -> None:
    assert call(channel, **message(1, "HELP", OptOutType="HELP")).status_code == 200
    with tenant_scope(channel.tenant_id):
        assert not ChannelMessage.objects.exists()


def test_yes_answers_the_question_for_consent(channel: Channel, twilio: Twilio, deployment: Any) -> None:
    with tenant_scope(channel.tenant_id):
        offers.change(deployment, actor="user:test", consent_text="We store what you write.", consent_version="v1")
    call(channel, **message(1, "Hello"))
    deliver(channel)
    assert twilio.sent[-1]["Body"].startswith("We store what you write.")
    call(channel, **message(2, "YES", OptOutType="START"))
    assert row(channel, Direction.IN).problem == "consent_given"


def test_multimedia_is_refused_with_a_text(channel: Channel, twilio: Twilio) -> None:
    media = {"NumMedia": "1", "MediaUrl0": "https://api.twilio.com/x", "MediaContentType0": "image/jpeg"}
    write(channel, 1, "See here", **media)
    deliver(channel)
    assert "image/jpeg" in twilio.sent[-1]["Body"]
    with tenant_scope(channel.tenant_id):
        assert ChronicleEntry.objects.filter(text="See here").exists()


# -- out ---------------------------------------------------------------------------------------------------------------


def test_question_is_lines_with_numbers_and_a_number_answers(channel: Channel, twilio: Twilio) -> None:
    session_id = write(channel, 1, "Hello")
    options = ({"value": "a", "label": "Red"}, {"value": "b", "label": "Blue"})
    with tenant_scope(channel.tenant_id):
        prompts.ask_visitor(session_id, prompts.Question(question="Which?", options=options), actor="user:test")
    deliver(channel)
    assert twilio.sent[-1]["Body"] == "Which?\n\n1. Red\n2. Blue\n\nReply with the number."
    write(channel, 2, "2")
    with tenant_scope(channel.tenant_id):
        assert ChronicleEntry.objects.filter(session_id=session_id).order_by("-seq")[0].text == "Blue"


def test_long_answer_is_up_to_three_messages(channel: Channel, twilio: Twilio) -> None:
    send(channel, Outbound("word " * 2000, once="a"))
    assert len(twilio.sent) == 3
    assert all(len(each["Body"]) <= 1600 for each in twilio.sent)
    assert twilio.sent[-1]["Body"].endswith("…")


def test_file_is_named(channel: Channel, twilio: Twilio) -> None:
    send(channel, Outbound("a.pdf", once="a", file=OutboundFile("a.pdf", b"%PDF", "application/pdf")))
    assert "a.pdf" in twilio.sent[-1]["Body"]


def test_options_without_question_marks_are_kept_as_written(channel: Channel, twilio: Twilio) -> None:
    send(channel, Outbound("Which?", once="a", options=[OutboundOption("A*B* [x](http://e.example)", "p:0")]))
    assert "1. A*B* [x](http://e.example)" in twilio.sent[-1]["Body"]


@pytest.mark.parametrize(
    ("status", "code", "problem", "retry_after", "opted_out"),
    [
        (400, 21610, "opted_out", None, True),
        (400, 21211, "bad_recipient", None, False),
        (400, 21408, "region_off", None, False),
        (400, 99999, "refused_99999", None, False),
        (401, 20003, "unauthorized", 600, False),
        (401, None, "unauthorized", 600, False),
        (429, 20429, "rate_limited", 30, False),
        (429, None, "http_429", 30, False),
        (500, None, "http_500", 30, False),
        (200, None, "http_200", None, False),
    ],
)
def test_each_error_code_says_whether_to_try_again(
    channel: Channel,
    twilio: Twilio,
    status: int,
    code: int | None,
    problem: str,
    retry_after: float | None,
    opted_out: bool,
) -> None:
    twilio.refusals = [(status, {"code": code, "status": status} if code else {})]
    with pytest.raises(NotSent) as refused:
        send(channel, Outbound("Hello", once="a"))
    assert refused.value.code == problem
    assert refused.value.retry_after == retry_after
    assert refused.value.opted_out == opted_out


def test_flood_is_waited_for_and_what_left_is_not_sent_again(channel: Channel, twilio: Twilio, say: Say) -> None:
    session_id = write(channel, 1, "Hello")
    twilio.refusals = [(201, {"sid": "SM1"}), (429, {"code": 20429})]
    say(channel, session_id, "first " * 250 + "\n\n" + "second " * 20)
    assert row(channel, Direction.OUT).state == MessageState.WAITING
    deliver(channel)
    assert row(channel, Direction.OUT).state == MessageState.SENT
    assert [each["Body"].split()[0] for each in twilio.sent] == ["first", "second", "second"]


def test_person_who_opted_out_at_twilio_gets_no_more(channel: Channel, twilio: Twilio, say: Say) -> None:
    session_id = write(channel, 1, "Hello")
    twilio.refusals = [(400, {"code": 21610})]
    say(channel, session_id, "An answer")
    say(channel, session_id, "Another answer")
    assert len(twilio.sent) == 1
    assert row(channel, Direction.OUT).problem == "opted_out"


# -- settings ----------------------------------------------------------------------------------------------------------


def test_check_sets_the_addresses_of_the_number(channel: Channel, twilio: Twilio) -> None:
    assert channel.settings["webhook"] == WEBHOOK
    hook = twilio.asked[-1].content
    assert hook["SmsUrl"] == WEBHOOK
    assert hook["SmsFallbackUrl"] == WEBHOOK


def test_number_of_another_account_is_not_found(twilio: Twilio, deployment: Any) -> None:
    channel = make_channel(deployment, ChannelKind.SMS, **{**twilio.values, "number": "+4930999999"})
    with pytest.raises(SilasError) as refused:
        asyncio.run(services.connect(channel.tenant_id, channel.pk, webhook=WEBHOOK, actor="user:test"))
    assert refused.value.extra["reason"] == "number_unknown"


@pytest.mark.parametrize(
    ("field", "value"), [("number", "030 123"), ("number", "Shop"), ("account_sid", "../AC"), ("account_sid", "AC")]
)
def test_settings_of_another_shape_are_refused(twilio: Twilio, deployment: Any, field: str, value: str) -> None:
    with pytest.raises(SilasError) as refused:
        make_channel(deployment, ChannelKind.SMS, **{**twilio.values, field: value})
    assert field in refused.value.extra["fields"]
