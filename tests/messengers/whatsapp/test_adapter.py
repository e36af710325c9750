"""WhatsApp against a small Cloud API: signed calls, the window of 24 hours, buttons, files and Meta's error codes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.test import Client
from django.urls import reverse

from apps.bus.enums import Kind
from apps.contacts.models import ContactIdentity
from apps.messengers import ports, services
from apps.messengers.delivery import place_of
from apps.messengers.enums import ChannelKind, Direction, MessageState
from apps.messengers.models import Channel, ChannelMessage, ChannelThread
from apps.messengers.ports import NotSent, Outbound, OutboundFile, OutboundOption
from apps.messengers.whatsapp.adapter import signature
from apps.sessions.models import ChatSession, ChronicleEntry
from apps.visitors import offers, prompts
from apps.visitors.models import VisitorFile
from kernel.clock import now
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope
from tests.factories.bus import carry_out_kinds
from tests.factories.messenger_providers import WhatsApp, serving
from tests.factories.messengers import make_channel
from tests.messengers.conftest import Say

ADA = "491701234567"


@pytest.fixture
def whatsapp(database: None) -> Iterator[WhatsApp]:
    with serving(WhatsApp()) as provider:
        assert isinstance(provider, WhatsApp)
        yield provider


@pytest.fixture
def channel(whatsapp: WhatsApp, deployment: Any) -> Channel:
    return make_channel(deployment, ChannelKind.WHATSAPP, **whatsapp.values, template="answer_ready")


def call(channel: Channel, *, body: str | None = None, secret: str = "app-secret", **value: Any) -> Any:
    told = {"messaging_product": "whatsapp", "metadata": {"phone_number_id": WhatsApp.number}, **value}
    whole = {
        "object": "whatsapp_business_account",
        "entry": [{"id": "1", "changes": [{"field": "messages", "value": told}]}],
    }
    data = json.dumps(whole) if body is None else body
    url = reverse("channel-webhook", args=["whatsapp", channel.public_id])
    headers = {"X-Hub-Signature-256": signature(secret, data.encode())}
    return Client().post(url, data, content_type="application/json", headers=headers)


def message(number: int, text: str = "", *, who: str = ADA, **more: Any) -> dict[str, Any]:
    told = {"id": f"wamid.in{number}", "from": who, "timestamp": "1700000000", "type": "text", **more}
    return {**told, "text": {"body": text}} if text else told


def write(channel: Channel, number: int, text: str = "", **more: Any) -> UUID:
    contacts = [{"profile": {"name": "Ada Lovelace"}, "wa_id": ADA}]
    assert call(channel, messages=[message(number, text, **more)], contacts=contacts).status_code == 200
    with tenant_scope(channel.tenant_id):
        session_id = ChannelThread.objects.get(key=f"+{ADA}").session_id
    assert session_id is not None
    return session_id


def deliver(channel: Channel) -> None:
    carry_out_kinds(channel.tenant_id, Kind.CHANNEL_DELIVERY)


def row(channel: Channel, direction: Direction) -> ChannelMessage:
    with tenant_scope(channel.tenant_id):
        return ChannelMessage.objects.filter(channel=channel, direction=direction).order_by("-created_at")[0]


def let_window_close(channel: Channel) -> None:
    with tenant_scope(channel.tenant_id):
        ChannelThread.objects.update(last_received_at=now() - timedelta(hours=24))


def send(channel: Channel, outbound: Outbound, **place: Any) -> ports.Sent:
    with tenant_scope(channel.tenant_id):
        there = place_of(channel)
    whole = ports.Place(**{**vars(there), "peer": f"+{ADA}", "open_for": 5.0, **place})
    return asyncio.run(ports.adapter_of("whatsapp").send(whole, outbound))


# -- calls -------------------------------------------------------------------------------------------------------------


def test_signature_is_hmac_sha256_as_rfc_4231_says() -> None:
    """Test case 2 of RFC 4231; Meta publishes no vector of its own."""
    digest = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
    assert signature("Jefe", b"what do ya want for nothing?") == f"sha256={digest}"


def test_call_with_another_signature_is_refused(channel: Channel) -> None:
    assert call(channel, messages=[message(1, "Hello")], secret="guessed").status_code == 403
    url = reverse("channel-webhook", args=["whatsapp", channel.public_id])
    for header in ("", "sha256=", "ä"):
        answer = Client().post(url, "{}", content_type="application/json", headers={"X-Hub-Signature-256": header})
        assert answer.status_code == 403
    with tenant_scope(channel.tenant_id):
        assert not ChannelMessage.objects.exists()


def test_signature_counts_for_the_exact_bytes(channel: Channel) -> None:
    url = reverse("channel-webhook", args=["whatsapp", channel.public_id])
    signed = signature("app-secret", b'{"object": "x"}')
    answer = Client().post(
        url, '{"object":"x"}', content_type="application/json", headers={"X-Hub-Signature-256": signed}
    )
    assert answer.status_code == 403


@pytest.mark.parametrize("body", ["none", "[]", '{"object": "page"}', '{"object": "whatsapp_business_account"}'])
def test_body_of_another_shape_is_refused(channel: Channel, body: str) -> None:
    assert call(channel, body=body).status_code == 400


@pytest.mark.parametrize(
    ("mode", "token", "challenge", "status"),
    [
        ("subscribe", "verify-me", "1158201444", 200),
        ("subscribe", "guessed", "1158201444", 403),
        ("unsubscribe", "verify-me", "1158201444", 403),
        ("subscribe", "verify-me", "<script>", 400),
    ],
)
def test_address_is_confirmed_with_the_verify_token_alone(
    channel: Channel, mode: str, token: str, challenge: str, status: int
) -> None:
    query = {"hub.mode": mode, "hub.verify_token": token, "hub.challenge": challenge}
    answer = Client().get(reverse("channel-webhook", args=["whatsapp", channel.public_id]), query)
    assert answer.status_code == status
    if status == 200:
        assert answer.content == b"1158201444"
        assert answer["Content-Type"].startswith("text/plain")


def test_another_number_of_the_same_app_is_left_alone(channel: Channel) -> None:
    answer = call(channel, messages=[message(1, "Hello")], metadata={"phone_number_id": "999999"})
    assert answer.status_code == 200
    with tenant_scope(channel.tenant_id):
        assert not ChannelMessage.objects.exists()


# -- conversations -----------------------------------------------------------------------------------------------------


def test_message_begins_a_conversation_and_its_answer_is_sent(channel: Channel, whatsapp: WhatsApp, say: Say) -> None:
    session_id = write(channel, 1, "Where is my parcel?")
    with tenant_scope(channel.tenant_id):
        assert ChatSession.objects.get(pk=session_id).channel == "whatsapp"
        identity = ContactIdentity.objects.get(kind=ChannelKind.WHATSAPP)
        assert identity.value == f"+{ADA}"
        assert identity.contact.name == "Ada Lovelace"
    say(channel, session_id, "It is **on its way**.")
    assert whatsapp.sent[-1]["to"] == f"+{ADA}"
    assert whatsapp.sent[-1]["text"]["body"] == "It is *on its way*."
    assert row(channel, Direction.OUT).external_id == "wamid.1"


def test_call_delivered_twice_is_stored_once(channel: Channel) -> None:
    session_id = write(channel, 1, "Hello")
    write(channel, 1, "Hello")
    with tenant_scope(channel.tenant_id):
        assert ChronicleEntry.objects.filter(session_id=session_id).count() == 1


def test_person_without_a_number_is_answered_by_their_id(channel: Channel, whatsapp: WhatsApp, say: Say) -> None:
    told = {"id": "wamid.x", "from_user_id": "US.13491208655302741918", "type": "text", "text": {"body": "Hello"}}
    contacts = [{"profile": {"name": "Ada", "username": "ada"}, "user_id": "US.13491208655302741918"}]
    assert call(channel, messages=[told], contacts=contacts).status_code == 200
    with tenant_scope(channel.tenant_id):
        thread = ChannelThread.objects.get()
        assert thread.peer_name == "Ada"
    say(channel, thread.session_id, "Hi")
    assert whatsapp.sent[-1]["recipient"] == "US.13491208655302741918"
    assert "to" not in whatsapp.sent[-1]


def test_consent_is_asked_for_within_the_window(channel: Channel, whatsapp: WhatsApp, deployment: Any) -> None:
    with tenant_scope(channel.tenant_id):
        offers.change(deployment, actor="user:test", consent_text="We store what you write.", consent_version="v1")
    assert call(channel, messages=[message(1, "Hello")]).status_code == 200
    deliver(channel)
    interactive = whatsapp.sent[-1]["interactive"]
    assert interactive["body"]["text"].startswith("We store what you write.")
    choice = interactive["action"]["buttons"][0]["reply"]["id"]
    reply = {"type": "button_reply", "button_reply": {"id": choice, "title": "I agree"}}
    call(channel, messages=[message(2, type="interactive", interactive=reply)])
    write(channel, 3, "Hello again")


def test_receipts_in_any_order_move_a_message_forward(channel: Channel, say: Say) -> None:
    say(channel, write(channel, 1, "Hello"), "An answer")
    for state, expected in (("read", "read"), ("delivered", "read"), ("sent", "read"), ("warning", "read")):
        assert call(channel, statuses=[{"id": "wamid.1", "status": state}]).status_code == 200
        assert row(channel, Direction.OUT).state == expected


def test_failure_that_is_reported_later_is_shown(channel: Channel, say: Say) -> None:
    say(channel, write(channel, 1, "Hello"), "An answer")
    call(channel, statuses=[{"id": "wamid.1", "status": "failed", "errors": [{"code": 131026}]}])
    assert row(channel, Direction.OUT).state == MessageState.FAILED
    assert row(channel, Direction.OUT).problem == "undeliverable"


def test_reply_after_opting_out_is_not_answered(channel: Channel, whatsapp: WhatsApp, say: Say) -> None:
    session_id = write(channel, 1, "Hello")
    write(channel, 2, "Stop")
    write(channel, 3, "But one more thing")
    say(channel, session_id, "An answer")
    assert whatsapp.sent == []
    write(channel, 4, "start")
    say(channel, session_id, "Another answer")
    assert whatsapp.sent[-1]["text"]["body"] == "Another answer"


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"type": "button", "button": {"text": "Yes please", "payload": "x"}}, "Yes please"),
        ({"type": "location", "location": {"latitude": 52.5, "longitude": 13.4}}, "52.5, 13.4"),
        (
            {"type": "contacts", "contacts": [{"name": {"formatted_name": "Bo"}, "phones": [{"phone": "+1 5"}]}]},
            "Bo +1 5",
        ),
    ],
)
def test_other_kinds_are_read_as_text(channel: Channel, more: dict[str, Any], text: str) -> None:
    write(channel, 1, **more)
    with tenant_scope(channel.tenant_id):
        assert ChronicleEntry.objects.get().text == text


@pytest.mark.parametrize("kind", ["reaction", "system", "unsupported"])
def test_what_is_no_message_is_no_message(channel: Channel, kind: str) -> None:
    assert call(channel, messages=[{**message(1, type=kind), kind: {"emoji": "👍"}}]).status_code == 200
    with tenant_scope(channel.tenant_id):
        assert not ChronicleEntry.objects.exists()


# -- questions ---------------------------------------------------------------------------------------------------------


def options(*labels: str) -> list[OutboundOption]:
    return [OutboundOption(label, f"p:{number}") for number, label in enumerate(labels)]


def test_up_to_three_short_options_are_buttons(channel: Channel, whatsapp: WhatsApp) -> None:
    send(channel, Outbound("Which?", once="a", options=options("Red", "Green", "Blue")))
    interactive = whatsapp.sent[-1]["interactive"]
    assert interactive["type"] == "button"
    assert [each["reply"] for each in interactive["action"]["buttons"]][2] == {"id": "p:2", "title": "Blue"}


@pytest.mark.parametrize("labels", [tuple("abcd"), ("a", "b", "A label that is longer than a button"), ("a", "a")])
def test_up_to_ten_options_are_a_list(channel: Channel, whatsapp: WhatsApp, labels: tuple[str, ...]) -> None:
    send(channel, Outbound("Which?", once="a", options=options(*labels)))
    interactive = whatsapp.sent[-1]["interactive"]
    assert interactive["type"] == "list"
    rows = interactive["action"]["sections"][0]["rows"]
    assert len(rows) == len(labels)
    assert all(len(each["title"]) <= 24 for each in rows)
    assert [each.get("description", each["title"]) for each in rows] == list(labels)


@pytest.mark.parametrize("labels", [[str(number) for number in range(11)], ["x" * 73]])
def test_more_or_longer_options_are_lines(channel: Channel, whatsapp: WhatsApp, labels: list[str]) -> None:
    send(channel, Outbound("Which?", once="a", options=options(*labels)))
    assert f"{len(labels)}. {labels[-1]}" in whatsapp.sent[-1]["text"]["body"]


def test_long_question_goes_before_its_buttons(channel: Channel, whatsapp: WhatsApp) -> None:
    send(channel, Outbound("word " * 400, once="a", options=options("Yes")))
    assert [each["type"] for each in whatsapp.sent] == ["text", "interactive"]


def test_press_answers_the_question_once(channel: Channel, whatsapp: WhatsApp) -> None:
    session_id = write(channel, 1, "Hello")
    asked = prompts.Question(question="Sure?", options=({"value": "y", "label": "Yes"},))
    with tenant_scope(channel.tenant_id):
        card = prompts.ask_visitor(session_id, asked, actor="user:test")
    deliver(channel)
    choice = whatsapp.sent[-1]["interactive"]["action"]["buttons"][0]["reply"]["id"]
    for number, kind in ((2, "list_reply"), (3, "button_reply")):
        write(channel, number, type="interactive", interactive={"type": kind, kind: {"id": choice, "title": "Yes"}})
    with tenant_scope(channel.tenant_id):
        card.refresh_from_db()
        assert card.status == "answered"
        assert ChronicleEntry.objects.filter(session_id=session_id, text="Yes").count() == 1
    assert row(channel, Direction.IN).problem == "choice_over"


# -- the window of 24 hours --------------------------------------------------------------------------------------------


def test_template_with_the_text_takes_the_place_of_a_late_answer(
    channel: Channel, whatsapp: WhatsApp, say: Say
) -> None:
    session_id = write(channel, 1, "Hello")
    let_window_close(channel)
    say(channel, session_id, "It is\n\n**here**.")
    assert whatsapp.sent[-1]["type"] == "template"
    template = whatsapp.sent[-1]["template"]
    assert template["name"] == "answer_ready"
    assert template["language"] == {"code": "en"}
    assert template["components"][0]["parameters"] == [{"type": "text", "text": "It is here."}]
    assert row(channel, Direction.OUT).state == MessageState.SENT


def test_text_that_the_template_has_no_room_for_follows_the_persons_reply(
    channel: Channel, whatsapp: WhatsApp, say: Say
) -> None:
    whatsapp.room = False
    session_id = write(channel, 1, "Hello")
    let_window_close(channel)
    say(channel, session_id, "First answer")
    say(channel, session_id, "Second answer")
    assert [each["type"] for each in whatsapp.sent] == ["template", "template"]
    assert "components" not in whatsapp.sent[-1]["template"]
    write(channel, 2, "Yes?")
    say(channel, session_id, "Third answer")
    say(channel, session_id, "Fourth answer")
    texts = [each["text"]["body"] for each in whatsapp.sent if each["type"] == "text"]
    assert texts == ["First answer", "Second answer", "Third answer", "Fourth answer"]


def test_window_that_closed_meanwhile_leads_to_the_template(channel: Channel, whatsapp: WhatsApp) -> None:
    whatsapp.refusals = [(400, {"error": {"code": 131047}})]
    send(channel, Outbound("Hello", once="a"))
    assert [each["type"] for each in whatsapp.sent] == ["text", "template"]


@pytest.mark.parametrize("open_for", [None, 24 * 3600.0])
def test_without_a_template_a_late_answer_fails(whatsapp: WhatsApp, deployment: Any, open_for: float | None) -> None:
    channel = make_channel(deployment, ChannelKind.WHATSAPP, **whatsapp.values)
    with pytest.raises(NotSent) as refused:
        send(channel, Outbound("Hello", once="a"), open_for=open_for)
    assert refused.value.code == "window_closed"
    assert refused.value.retry_after is None
    assert whatsapp.sent == []


# -- files -------------------------------------------------------------------------------------------------------------


def test_files_are_fetched_and_those_of_30_megabytes_are_refused(
    channel: Channel, whatsapp: WhatsApp, deployment: Any
) -> None:
    with tenant_scope(channel.tenant_id):
        offers.change(deployment, actor="user:test", texts=True)
    whatsapp.files = {"small": b"a note", "large": b"x" * 30_000_000, "unsized": b"x" * 30_000_000}
    for number, name in enumerate([*whatsapp.files, "gone"], 1):
        document = {"id": name, "filename": f"{name}.txt", "mime_type": "text/plain", "caption": "See here"}
        call(channel, messages=[message(number, type="document", document=document)])
        carry_out_kinds(channel.tenant_id, Kind.CHANNEL_INBOUND)
    with tenant_scope(channel.tenant_id):
        assert [stored.name for stored in VisitorFile.objects.all()] == ["small.txt"]
        assert ChronicleEntry.objects.filter(text="See here").count() == 4
    for _ in range(3):
        deliver(channel)
    said = " ".join(each["text"]["body"] for each in whatsapp.sent)
    for name in ("large.txt", "unsized.txt", "gone.txt"):
        assert name in said


def test_token_is_not_sent_to_another_host(channel: Channel, whatsapp: WhatsApp) -> None:
    with tenant_scope(channel.tenant_id):
        place = place_of(channel)
    body = {"id": "x", "url": "https://fbsbx.com.evil.example/x", "file_size": 3}
    whatsapp.refusals = [(200, body)]
    inbound = ports.Inbound("1", "k", "p", files=[ports.InboundFile("a.txt", ref="x")])
    fetched = asyncio.run(ports.adapter_of("whatsapp").fetch(place, inbound))
    assert fetched.files == (ports.InboundFile("a.txt"),)
    assert len(whatsapp.asked) == 1


def test_file_is_uploaded_and_sent_as_a_document(channel: Channel, whatsapp: WhatsApp) -> None:
    file = OutboundFile("report.pdf", b"%PDF-1.7", "application/pdf")
    send(channel, Outbound("report.pdf", once="a", file=file))
    assert whatsapp.asked[-2].content["file"] == ("report.pdf", b"%PDF-1.7")
    assert whatsapp.sent[-1]["document"] == {"id": "uploaded", "filename": "report.pdf"}


# -- refusals ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "code", "problem", "retry_after"),
    [
        (400, 131026, "undeliverable", None),
        (400, 131030, "bad_recipient", None),
        (429, 130429, "rate_limited", 30),
        (400, 131056, "rate_limited", 60),
        (400, 131048, "rate_limited", 3600),
        (401, 190, "unauthorized", 600),
        (403, 10, "not_permitted", 600),
        (500, 131000, "unavailable", 15),
        (503, None, "http_503", 30),
        (429, None, "http_429", 60),
        (403, 131031, "account_locked", None),
        (400, 100, "refused_100", None),
        (200, [1], "http_200", 60),
    ],
)
def test_each_error_code_says_whether_to_try_again(
    channel: Channel, whatsapp: WhatsApp, status: int, code: Any, problem: str, retry_after: float | None
) -> None:
    whatsapp.refusals = [(status, {"error": {"code": code}})]
    with pytest.raises(NotSent) as refused:
        send(channel, Outbound("Hello", once="a"))
    assert refused.value.code == problem
    assert refused.value.retry_after == retry_after


def test_flood_is_waited_for(channel: Channel, whatsapp: WhatsApp, say: Say) -> None:
    session_id = write(channel, 1, "Hello")
    whatsapp.refusals = [(429, {"error": {"code": 130429}})]
    say(channel, session_id, "An answer")
    assert row(channel, Direction.OUT).state == MessageState.WAITING
    deliver(channel)
    assert row(channel, Direction.OUT).state == MessageState.SENT


def test_check_names_the_number_and_says_why_it_is_refused(channel: Channel, whatsapp: WhatsApp) -> None:
    checked = asyncio.run(services.connect(channel.tenant_id, channel.pk, webhook="https://x", actor="user:test"))
    assert checked.settings["number"] == "+49 30 123"
    whatsapp.refusals = [(401, {"error": {"code": 190}})]
    with pytest.raises(SilasError) as refused:
        asyncio.run(services.connect(channel.tenant_id, channel.pk, webhook="https://x", actor="user:test"))
    assert refused.value.extra["reason"] == "unauthorized"


@pytest.mark.parametrize("number", ["", "../me", "+49301234"])
def test_number_id_of_another_shape_is_refused(whatsapp: WhatsApp, deployment: Any, number: str) -> None:
    with pytest.raises(SilasError) as refused:
        make_channel(deployment, ChannelKind.WHATSAPP, **{**whatsapp.values, "phone_number_id": number})
    assert "phone_number_id" in refused.value.extra["fields"]
