"""Telegram against a small Bot API: what comes in by webhook, what is sent, and what each refusal leads to."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
from django.test import Client
from django.urls import reverse

from apps.approvals.cards.kinds import CardKind
from apps.approvals.models import Card
from apps.bus.enums import Kind
from apps.contacts.models import ContactIdentity
from apps.messengers import ports, services
from apps.messengers.cards import accounts
from apps.messengers.delivery import place_of
from apps.messengers.enums import ChannelKind, Direction, MessageState
from apps.messengers.models import Channel, ChannelMessage, ChannelThread
from apps.messengers.ports import NotSent, Outbound, OutboundFile
from apps.messengers.telegram.adapter import webhook_secret
from apps.sessions.models import ChatSession, ChronicleEntry
from apps.visitors import offers, prompts
from apps.visitors.models import VisitorFile
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope
from tests.factories.bus import carry_out_kinds
from tests.factories.cards import make_kind
from tests.factories.messenger_providers import Telegram, serving
from tests.factories.messengers import make_channel
from tests.factories.tenants import make_deployment
from tests.messengers.conftest import Say

ADA = {"id": 99, "is_bot": False, "first_name": "Ada", "last_name": "Lovelace", "language_code": "de"}
PRIVATE = {"id": 99, "type": "private"}


@pytest.fixture
def telegram(database: None) -> Iterator[Telegram]:
    with serving(Telegram()) as provider:
        assert isinstance(provider, Telegram)
        yield provider


@pytest.fixture
def channel(telegram: Telegram, deployment: Any) -> Channel:
    return make_channel(deployment, ChannelKind.TELEGRAM, token=telegram.token)


def secret_of(channel: Channel) -> str:
    with tenant_scope(channel.tenant_id):
        return webhook_secret(place_of(channel))


def call(channel: Channel, update: Any, *, secret: str | None = None) -> Any:
    url = reverse("channel-webhook", args=["telegram", channel.public_id])
    headers = {"X-Telegram-Bot-Api-Secret-Token": secret_of(channel) if secret is None else secret}
    data = update if isinstance(update, str) else json.dumps(update)
    return Client().post(url, data, content_type="application/json", headers=headers)


def message(number: int, text: str = "", **more: Any) -> dict[str, Any]:
    told = {"message_id": number, "date": 1, "from": ADA, "chat": PRIVATE, **more}
    return {"update_id": 1000 + number, "message": {**told, **({"text": text} if text else {})}}


def write(channel: Channel, number: int, text: str, **more: Any) -> UUID:
    assert call(channel, message(number, text, **more)).status_code == 200
    with tenant_scope(channel.tenant_id):
        session_id = ChannelThread.objects.get(key=str(more.get("chat", PRIVATE)["id"])).session_id
    assert session_id is not None
    return session_id


def deliver(channel: Channel) -> None:
    carry_out_kinds(channel.tenant_id, Kind.CHANNEL_DELIVERY)


def incoming(channel: Channel) -> list[ChannelMessage]:
    with tenant_scope(channel.tenant_id):
        return list(ChannelMessage.objects.filter(channel=channel, direction=Direction.IN).order_by("created_at"))


def last_sent(channel: Channel) -> ChannelMessage:
    with tenant_scope(channel.tenant_id):
        rows = ChannelMessage.objects.filter(channel=channel, direction=Direction.OUT)
        return rows.order_by("-seq")[0]


def send(channel: Channel, outbound: Outbound, **place: Any) -> Any:
    with tenant_scope(channel.tenant_id):
        there = place_of(channel)
    whole = ports.Place(**{**vars(there), "peer": "99", **place})
    return asyncio.run(ports.adapter_of("telegram").send(whole, outbound))


# -- calls -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("secret", ["", "wrong", "ä", "0" * 64])
def test_call_without_the_channels_secret_is_refused(channel: Channel, secret: str) -> None:
    assert call(channel, message(1, "Hello"), secret=secret).status_code == 403
    assert incoming(channel) == []


def test_secret_of_another_channel_does_not_open_this_one(channel: Channel, telegram: Telegram) -> None:
    other = make_channel(make_deployment(channel.tenant), ChannelKind.TELEGRAM, token=telegram.token)
    assert call(channel, message(1, "Hello"), secret=secret_of(other)).status_code == 403


@pytest.mark.parametrize("body", ["no json", "[]", "7", '{"message": 5}', '{"message": {"chat": {}}}'])
def test_body_of_another_shape_is_refused(channel: Channel, body: str) -> None:
    assert call(channel, body).status_code == 400
    assert incoming(channel) == []


@pytest.mark.parametrize(
    "update",
    [
        message(1, "Hello", chat={"id": -5, "type": "group"}),
        message(1, "Hello", **{"from": {**ADA, "is_bot": True}}),
        {"update_id": 1, "edited_message": message(1, "Hello")["message"]},
        {"update_id": 1, "my_chat_member": {}},
        {
            "update_id": 1,
            "callback_query": {
                "id": "5",
                "from": ADA,
                "data": "consent",
                "message": {"chat": {"id": -5, "type": "supergroup"}},
            },
        },
    ],
    ids=["group", "bot", "edited", "membership", "press in a group"],
)
def test_groups_bots_and_edits_are_ignored(channel: Channel, update: Any) -> None:
    assert call(channel, update).status_code == 200
    assert incoming(channel) == []


# -- conversations -----------------------------------------------------------------------------------------------------


def test_message_begins_a_conversation_and_its_answer_is_sent(channel: Channel, telegram: Telegram, say: Say) -> None:
    session_id = write(channel, 1, "Where is my parcel?")
    with tenant_scope(channel.tenant_id):
        session = ChatSession.objects.get(pk=session_id)
        assert session.channel == "telegram"
        assert session.locale == "de"
        identity = ContactIdentity.objects.get(kind=ChannelKind.TELEGRAM)
        assert identity.value == "99"
        assert identity.contact.name == "Ada Lovelace"
    say(channel, session_id, "It is **on its way**: <tomorrow> & later.")
    sent = telegram.asked[-1].content
    assert sent["chat_id"] == "99"
    assert sent["text"] == "It is <b>on its way</b>: &lt;tomorrow&gt; &amp; later."
    assert sent["parse_mode"] == "HTML"
    assert last_sent(channel).state == MessageState.SENT
    assert last_sent(channel).external_id == "99:1"


def test_update_delivered_twice_is_stored_once_and_a_late_one_still_is(channel: Channel) -> None:
    session_id = write(channel, 2, "Second")
    write(channel, 2, "Second")
    write(channel, 1, "First, delivered late")
    with tenant_scope(channel.tenant_id):
        texts = ChronicleEntry.objects.filter(session_id=session_id).order_by("seq").values_list("text", flat=True)
        assert list(texts) == ["Second", "First, delivered late"]


def test_start_is_greeted_and_stop_ends_answers(
    channel: Channel, telegram: Telegram, deployment: Any, say: Say
) -> None:
    with tenant_scope(channel.tenant_id):
        deployment.greeting = "Welcome to the shop!"
        deployment.save()
    assert call(channel, message(1, "/start from-the-website")).status_code == 200
    deliver(channel)
    assert telegram.texts == ["Welcome to the shop!"]
    session_id = write(channel, 2, "Hello")
    assert call(channel, message(3, "/stop")).status_code == 200
    say(channel, session_id, "An answer")
    assert telegram.texts == ["Welcome to the shop!"]
    assert call(channel, message(4, "/start")).status_code == 200
    say(channel, session_id, "Another answer")
    assert telegram.texts[-1] == "Another answer"


def test_options_are_buttons_and_a_press_answers_once(channel: Channel, telegram: Telegram) -> None:
    session_id = write(channel, 1, "Hello")
    options = ({"value": "a", "label": "Red"}, {"value": "b", "label": "Blue"})
    with tenant_scope(channel.tenant_id):
        card = prompts.ask_visitor(session_id, prompts.Question(question="Which?", options=options), actor="user:test")
    deliver(channel)
    keyboard = telegram.asked[-1].content["reply_markup"]["inline_keyboard"]
    assert [row[0]["text"] for row in keyboard] == ["Red", "Blue"]
    data = keyboard[1][0]["callback_data"]
    pressed = {"id": "77", "from": ADA, "data": data, "message": {"message_id": 5, "chat": PRIVATE}}
    answer = call(channel, {"update_id": 5, "callback_query": pressed})
    assert answer.json() == {"method": "answerCallbackQuery", "callback_query_id": "77"}
    call(channel, {"update_id": 5, "callback_query": pressed})
    with tenant_scope(channel.tenant_id):
        card.refresh_from_db()
        assert card.status == "answered"
        assert ChronicleEntry.objects.filter(session_id=session_id, text="Blue").count() == 1


def test_press_of_another_person_decides_nothing(channel: Channel) -> None:
    session_id = write(channel, 1, "Hello")
    asked = prompts.Question(question="Sure?", options=({"value": "y", "label": "Yes"},))
    with tenant_scope(channel.tenant_id):
        card = prompts.ask_visitor(session_id, asked, actor="user:test")
    stranger, chat = {**ADA, "id": 66}, {"id": 66, "type": "private"}
    pressed = {"id": "78", "from": stranger, "data": f"p:{card.pk.hex}:0", "message": {"chat": chat}}
    assert call(channel, {"update_id": 6, "callback_query": pressed}).status_code == 200
    with tenant_scope(channel.tenant_id):
        card.refresh_from_db()
        assert card.status == "open"


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"sticker": {"file_id": "s", "emoji": "👍"}}, "👍"),
        ({"location": {"latitude": 52.5, "longitude": 13.4}}, "52.5, 13.4"),
        ({"contact": {"first_name": "Ada", "phone_number": "+4930123"}}, "Ada +4930123"),
    ],
)
def test_stickers_places_and_contacts_are_read_as_text(channel: Channel, more: dict[str, Any], text: str) -> None:
    assert call(channel, message(1, **more)).status_code == 200
    with tenant_scope(channel.tenant_id):
        assert ChronicleEntry.objects.get().text == text


# -- files -------------------------------------------------------------------------------------------------------------


def test_files_are_fetched_and_one_of_30_megabytes_is_refused(
    channel: Channel, telegram: Telegram, deployment: Any
) -> None:
    with tenant_scope(channel.tenant_id):
        offers.change(deployment, actor="user:test", texts=True)
    telegram.files = {"small": b"a note", "large": b"x" * 30_000_000}
    for number, name in enumerate(telegram.files, 1):
        document = {"file_id": name, "file_name": f"{name}.txt", "mime_type": "text/plain"}
        assert call(channel, message(number, caption="See here", document=document)).status_code == 200
    carry_out_kinds(channel.tenant_id, Kind.CHANNEL_INBOUND)
    carry_out_kinds(channel.tenant_id, Kind.CHANNEL_INBOUND)
    with tenant_scope(channel.tenant_id):
        assert [row.name for row in VisitorFile.objects.all()] == ["small.txt"]
        assert ChronicleEntry.objects.filter(text="See here").count() == 2
    deliver(channel)
    assert any("large.txt" in text for text in telegram.texts)


def test_file_is_fetched_again_after_a_fault_of_telegram(channel: Channel, telegram: Telegram, deployment: Any) -> None:
    with tenant_scope(channel.tenant_id):
        offers.change(deployment, actor="user:test", pictures=True)
    telegram.files = {"big": b"\x89PNG\r\n\x1a\n"}
    telegram.refusals = [(502, {"ok": False})]
    call(channel, message(1, photo=[{"file_id": "small"}, {"file_id": "big"}]))
    carry_out_kinds(channel.tenant_id, Kind.CHANNEL_INBOUND)
    assert incoming(channel)[0].state == MessageState.WAITING
    carry_out_kinds(channel.tenant_id, Kind.CHANNEL_INBOUND)
    assert incoming(channel)[0].state == MessageState.RECEIVED


def test_file_leaves_as_a_document(channel: Channel, telegram: Telegram) -> None:
    file = OutboundFile("report.pdf", b"%PDF-1.7", "application/pdf")
    assert send(channel, Outbound("report.pdf", once="a", file=file)).external_id == "99:1"
    assert telegram.asked[-1].content["document"] == ("report.pdf", b"%PDF-1.7")


# -- refusals ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "told", "code", "retry_after", "opted_out"),
    [
        (403, {"description": "Forbidden: bot was blocked by the user"}, "blocked", None, True),
        (403, {"description": "Forbidden: user is deactivated"}, "blocked", None, True),
        (400, {"description": "Bad Request: chat not found"}, "chat_not_found", None, False),
        (400, {"description": "Bad Request: message text is empty"}, "http_400", None, False),
        (401, {"description": "Unauthorized"}, "unauthorized", 600, False),
        (404, {"description": "Not Found"}, "unauthorized", 600, False),
        (429, {"parameters": {"retry_after": 35}}, "rate_limited", 35, False),
        (429, {}, "rate_limited", 30, False),
        (500, {}, "http_500", 5, False),
        (502, {}, "http_502", 5, False),
    ],
)
def test_each_refusal_says_whether_to_try_again(
    channel: Channel,
    telegram: Telegram,
    status: int,
    told: dict[str, Any],
    code: str,
    retry_after: float | None,
    opted_out: bool,
) -> None:
    telegram.refusals = [(status, {"ok": False, "error_code": status, **told})]
    with pytest.raises(NotSent) as refused:
        send(channel, Outbound("Hello", once="a"))
    assert refused.value.code == code
    assert refused.value.retry_after == retry_after
    assert refused.value.opted_out == opted_out


def test_answer_that_is_none_of_telegram_is_a_failure(channel: Channel, telegram: Telegram) -> None:
    telegram.broken = True
    with pytest.raises(NotSent, match="http_200"):
        send(channel, Outbound("Hello", once="a"))


def test_text_that_telegram_cannot_parse_is_sent_plain(channel: Channel, telegram: Telegram) -> None:
    telegram.refusals = [(400, {"ok": False, "description": "Bad Request: can't parse entities: byte 5"})]
    send(channel, Outbound("A *strange* text", once="a"))
    assert "parse_mode" not in telegram.asked[-1].content
    assert telegram.asked[-1].content["text"] == "A *strange* text"


def test_flood_is_waited_for_and_a_long_answer_goes_on_where_it_stopped(
    channel: Channel, telegram: Telegram, say: Say
) -> None:
    session_id = write(channel, 1, "Hello")
    text = "\n\n".join(f"{number} " + "word " * 700 for number in range(3))
    original = telegram.answer

    def limited(asked: Any) -> Any:
        if len(telegram.texts) == 2 and not telegram.headers:
            telegram.headers = {"Retry-After": "1"}
            return 429, "application/json", json.dumps({"ok": False, "parameters": {"retry_after": 7}}).encode()
        return original(asked)

    telegram.answer = limited  # type: ignore[method-assign]  # one refusal in the middle
    say(channel, session_id, text)
    assert last_sent(channel).state == MessageState.WAITING
    assert last_sent(channel).problem == "rate_limited"
    deliver(channel)
    assert last_sent(channel).state == MessageState.SENT
    firsts = [sent.split()[0] for sent in telegram.texts]
    assert firsts == ["0", "1", "1", "2"]
    assert all(len(sent) <= 4096 for sent in telegram.texts)


def test_person_who_blocked_the_bot_gets_no_more(channel: Channel, telegram: Telegram, say: Say) -> None:
    session_id = write(channel, 1, "Hello")
    telegram.refusals = [(403, {"ok": False, "description": "Forbidden: bot was blocked by the user"})]
    say(channel, session_id, "An answer")
    assert last_sent(channel).state == MessageState.FAILED
    asked = len(telegram.asked)
    say(channel, session_id, "Another answer")
    assert len(telegram.asked) == asked


# -- settings ----------------------------------------------------------------------------------------------------------


def connect(channel: Channel, webhook: str = "https://chat.example.com/channels/telegram/x") -> Channel:
    return asyncio.run(services.connect(channel.tenant_id, channel.pk, webhook=webhook, actor="user:test"))


def test_check_names_the_bot_and_sets_the_webhook(channel: Channel, telegram: Telegram) -> None:
    assert connect(channel).settings == {
        "bot": "help_bot",
        "link": "https://t.me/help_bot",
        "webhook": "https://chat.example.com/channels/telegram/x",
    }
    hook = telegram.asked[-1]
    assert hook.path.endswith("/setWebhook")
    assert hook.content["url"] == "https://chat.example.com/channels/telegram/x"
    assert hook.content["secret_token"] == secret_of(channel)
    assert hook.content["allowed_updates"] == ["message", "callback_query"]


def test_check_says_why_telegram_refuses(channel: Channel, telegram: Telegram) -> None:
    telegram.refusals = [(401, {"ok": False, "description": "Unauthorized"})]
    with pytest.raises(SilasError) as refused:
        connect(channel)
    assert refused.value.extra["reason"] == "unauthorized"


@pytest.mark.parametrize("token", ["x", "4711:short", "4711:" + "a" * 35 + "/../getMe"])
def test_token_of_another_shape_is_refused(telegram: Telegram, deployment: Any, token: str) -> None:
    with pytest.raises(SilasError) as refused:
        make_channel(deployment, ChannelKind.TELEGRAM, token=token)
    assert "token" in refused.value.extra["fields"]


def test_token_is_in_no_log(channel: Channel, telegram: Telegram, caplog: pytest.LogCaptureFixture) -> None:
    connect(channel)
    telegram.refusals = [(500, {})]
    with pytest.raises(NotSent):
        send(channel, Outbound("Hello", once="a"))
    assert telegram.token.partition(":")[2] not in caplog.text


# -- cards for approvers -----------------------------------------------------------------------------------------------


@pytest.fixture
def approver_chat(channel: Channel, telegram: Telegram, tenant: Any, owner: Any) -> str:
    """The owner's chat with the bot, linked by the code that they sent."""
    with tenant_scope(tenant):
        accounts.set_policy(
            owner, enabled=True, channels=[str(channel.pk)], people=[], decide_in_place=True, verified_days=30
        )
        code = accounts.create_code(owner)
    assert call(channel, message(1, code)).status_code == 200
    telegram.asked.clear()
    return str(PRIVATE["id"])


def press_card(channel: Channel, value: str, message_id: int, *, of: int | None = None) -> Any:
    person, chat = ({**ADA, "id": of}, {**PRIVATE, "id": of}) if of else (ADA, PRIVATE)
    pressed = {"id": "77", "from": person, "message": {"message_id": message_id, "chat": chat}, "data": value}
    return call(channel, {"update_id": 900, "callback_query": pressed})


def sent_card(telegram: Telegram) -> dict[str, Any]:
    return [each.content for each in telegram.asked if each.path.endswith("/sendMessage")][-1]


def test_card_is_decided_by_the_account_that_it_was_sent_to(
    channel: Channel, telegram: Telegram, tenant: Any, approver_chat: str
) -> None:
    card = make_kind(tenant, CardKind.GATE, intent="Run <b>this</b> call")
    carry_out_kinds(tenant.pk, Kind.CARD_NOTICE)
    sent = sent_card(telegram)
    assert sent["chat_id"] == approver_chat
    assert "&lt;b&gt;" in sent["text"]
    approve, decline = sent["reply_markup"]["inline_keyboard"][0]
    assert approve["text"] == "Approve"
    assert decline["text"] == "Decline"
    assert len(approve["callback_data"].encode()) <= 64
    stranger = press_card(channel, approve["callback_data"], 1, of=666)
    assert stranger.status_code == 200
    with tenant_scope(tenant):
        assert Card.objects.get(pk=card.pk).is_open
    assert press_card(channel, approve["callback_data"], 1).status_code == 200
    told = [each.content for each in telegram.asked if each.path.endswith("/answerCallbackQuery")]
    assert told[-1]["text"].startswith("Approved by ")
    with tenant_scope(tenant):
        assert not Card.objects.get(pk=card.pk).is_open
    carry_out_kinds(tenant.pk, Kind.CARD_NOTICE)
    edited = [each.content for each in telegram.asked if each.path.endswith("/editMessageText")][-1]
    assert "Approved by " in edited["text"]
    assert edited["reply_markup"] == {"inline_keyboard": []}


def test_card_that_a_message_cannot_show_whole_is_not_decided_in_place(
    channel: Channel, telegram: Telegram, tenant: Any, approver_chat: str
) -> None:
    make_kind(tenant, CardKind.GATE, rationale="x" * 1000)
    carry_out_kinds(tenant.pk, Kind.CARD_NOTICE)
    assert not any(
        "callback_data" in button for row in sent_card(telegram)["reply_markup"]["inline_keyboard"] for button in row
    )
