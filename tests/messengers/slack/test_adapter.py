"""Slack as a channel: signatures, threads, presses, files and refusals, against a stand-in for its Web API."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from django.test import RequestFactory

from apps.bus.enums import Kind
from apps.messengers.delivery import place_of
from apps.messengers.enums import Direction, MessageState
from apps.messengers.models import Channel, ChannelMessage, ChannelThread
from apps.messengers.ports import NotSent, Outbound, OutboundFile
from apps.messengers.slack import adapter, mrkdwn
from apps.sessions import chronicle
from apps.sessions.enums import EntryKind, Sender
from apps.sessions.locks import lock_session
from apps.sessions.models import ChronicleEntry
from apps.visitors import offers, prompts
from apps.visitors.models import VisitorFile
from kernel.tenancy import tenant_scope
from tests.factories.bus import carry_out_kinds
from tests.factories.slack import BOT, TEAM, Slack, call_channel, make_slack_channel, press, say, slack_server

# Published with the description of the signature (docs.slack.dev, "Verifying requests from Slack").
VECTOR_SECRET, VECTOR_TIME = "8f742231b10e8888abcd99yyyzzz85a5", "1531420618"
VECTOR_BODY = (
    b"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V"
    b"&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text="
    b"&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN"
    b"&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"
)
VECTOR = "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503"


@pytest.fixture
def slack() -> Iterator[Slack]:
    with slack_server() as running:
        yield running


@pytest.fixture
def channel(slack: Slack, deployment: Any) -> Channel:
    return make_slack_channel(deployment)


def threads(channel: Channel) -> list[ChannelThread]:
    with tenant_scope(channel.tenant_id):
        return list(ChannelThread.objects.filter(channel=channel).order_by("created_at"))


def entries(channel: Channel) -> list[str]:
    with tenant_scope(channel.tenant_id):
        return list(ChronicleEntry.objects.order_by("created_at").values_list("text", flat=True))


def answer(channel: Channel, text: str) -> ChannelMessage:
    """Say this in the channel's newest conversation, deliver it and return its row."""
    with tenant_scope(channel.tenant_id):
        session = lock_session(threads(channel)[-1].session_id)  # type: ignore[arg-type]  # it has a conversation
        chronicle.append(session, kind=EntryKind.MESSAGE, sender=Sender.BOT, text=text)
    carry_out_kinds(channel.tenant_id, Kind.CHANNEL_DELIVERY)
    with tenant_scope(channel.tenant_id):
        return ChannelMessage.objects.filter(direction=Direction.OUT).order_by("-created_at")[0]


# -- calls that are not Slack's ----------------------------------------------------------------------------------------


def test_signature_is_the_published_one() -> None:
    assert adapter.signature(VECTOR_SECRET, VECTOR_TIME, VECTOR_BODY) == VECTOR


@pytest.mark.parametrize("how", [{"secret": "another"}, {"age": 301}, {"age": -301}])
def test_call_with_a_wrong_or_old_signature_is_refused(channel: Channel, how: dict[str, Any]) -> None:
    body = json.dumps({"type": "url_verification", "challenge": "c"}).encode()
    assert call_channel(channel, body, **how).status_code == 403
    assert call_channel(channel, body).json() == {"challenge": "c"}


@pytest.mark.parametrize("moment", ["", "x", "٣", "9" * 40])
def test_call_without_a_proper_time_is_refused(channel: Channel, moment: str) -> None:
    request = RequestFactory().post("/", headers={"X-Slack-Request-Timestamp": moment})
    with tenant_scope(channel.tenant_id):
        place = place_of(channel)
    with pytest.raises(PermissionError):
        adapter.SlackAdapter().receive(request, b"{}", place)


@pytest.mark.parametrize(
    "event",
    [
        {"bot_id": "B1"},
        {"user": BOT},
        {"user": None},
        {"subtype": "message_changed"},
        {"subtype": "bot_message"},
        {"user_team": "T2"},
        {"channel_type": "channel"},
        {"type": "reaction_added"},
    ],
)
def test_what_no_employee_wrote_to_the_app_is_left_out(channel: Channel, event: dict[str, Any]) -> None:
    assert say(channel, "Hello", **event).status_code == 200
    assert entries(channel) == []


def test_call_of_another_workspace_is_left_out(channel: Channel) -> None:
    event = {"type": "message", "channel_type": "im", "channel": "D9", "user": "U9", "ts": "1.1", "text": "Hello"}
    body = {"type": "event_callback", "team_id": "T2", "event_id": "E1", "event": event}
    assert call_channel(channel, json.dumps(body).encode()).status_code == 200
    assert entries(channel) == []


# -- messages ----------------------------------------------------------------------------------------------------------


def test_direct_message_delivered_twice_is_stored_once_and_answered(channel: Channel, slack: Slack) -> None:
    for _attempt in range(2):
        say(channel, "My VPN is &lt;down&gt;, see <https://status.example|status>", ts="1700.000001")
    assert entries(channel) == ["My VPN is <down>, see status (https://status.example)"]
    row = answer(channel, "**Restart** it, see [the guide](https://wiki.example/vpn).")
    (sent,) = slack.of("chat.postMessage")
    assert sent["channel"] == "DU1"
    assert sent["text"] == "*Restart* it, see <https://wiki.example/vpn|the guide>."
    assert "thread_ts" not in sent
    assert row.state == MessageState.SENT
    assert row.external_id.startswith("DU1:")


def test_mention_begins_a_thread_and_two_people_in_it_have_a_conversation_each(channel: Channel, slack: Slack) -> None:
    say(channel, f"<@{BOT}> my VPN is down", where="C1", ts="1700.1")
    say(channel, f"<@{BOT}> still down", where="C1", ts="1700.2", thread_ts="1700.1")
    say(channel, f"<@{BOT}> mine too", where="C1", ts="1700.3", thread_ts="1700.1", user="U2")
    ours, theirs = threads(channel)
    assert ours.session_id != theirs.session_id
    assert entries(channel) == ["my VPN is down", "still down", "mine too"]
    answer(channel, "Restart it.")
    (sent,) = slack.of("chat.postMessage")
    assert sent["thread_ts"] == "1700.1"


def test_option_is_a_button_and_its_press_an_answer_of_whoever_was_asked(channel: Channel, slack: Slack) -> None:
    say(channel, f"<@{BOT}> my VPN is down", where="C1", ts="1700.1")
    asked = prompts.Question(
        question="Which?", options=({"value": "a", "label": "Red"}, {"value": "b", "label": "Blue"})
    )
    with tenant_scope(channel.tenant_id):
        card = prompts.ask_visitor(threads(channel)[0].session_id, asked, actor="user:test")  # type: ignore[arg-type]
    carry_out_kinds(channel.tenant_id, Kind.CHANNEL_DELIVERY)
    (sent,) = slack.of("chat.postMessage")
    buttons = sent["blocks"][-1]["elements"]
    assert [button["text"]["text"] for button in buttons] == ["Red", "Blue"]
    value = buttons[1]["value"]
    message = ("C1", "1700000000.000100")
    press(slack, channel, value, user="U2", message=message, thread="1700.1")
    with tenant_scope(channel.tenant_id):
        card.refresh_from_db()
    assert card.status == "open"
    assert press(slack, channel, value, message=message, thread="1700.1").status_code == 200
    with tenant_scope(channel.tenant_id):
        card.refresh_from_db()
    assert card.status == "answered"


def test_file_is_fetched_with_the_token_from_slack_alone(channel: Channel, slack: Slack, deployment: Any) -> None:
    with tenant_scope(channel.tenant_id):
        offers.change(deployment, actor="user:test", texts=True)
    slack.files = {"/files/note.txt": b"a note"}
    files = [
        {"name": "note.txt", "url_private": f"{slack.origin}/files/note.txt"},
        {"name": "other.txt", "url_private": "https://elsewhere.example/x.txt"},
        {"name": "login.html", "url_private": f"{slack.origin}/files/none"},
    ]
    say(channel, "See this", files=files, subtype="file_share")
    carry_out_kinds(channel.tenant_id, Kind.CHANNEL_INBOUND)
    with tenant_scope(channel.tenant_id):
        assert [row.name for row in VisitorFile.objects.all()] == ["note.txt"]
    assert "See this" in entries(channel)


def send_file(channel: Channel, **about: Any) -> Any:
    with tenant_scope(channel.tenant_id):
        place = replace(place_of(channel), peer="C1", reference={"thread_ts": "1700.1"})
    message = Outbound("note.txt", once="one", file=OutboundFile("note.txt", b"a note", "text/plain"), **about)
    return asyncio.run(adapter.SlackAdapter().send(place, message))


def test_file_is_uploaded_and_shared_in_the_thread(channel: Channel, slack: Slack) -> None:
    assert send_file(channel).external_id == "C1:F1"
    assert slack.of("files.getUploadURLExternal") == [{"filename": "note.txt", "length": 6}]
    assert b'filename="note.txt"' in slack.uploads["F1"]
    assert b"a note" in slack.uploads["F1"]
    (shared,) = slack.of("files.completeUploadExternal")
    assert shared == {"files": [{"id": "F1", "title": "note.txt"}], "channel_id": "C1", "thread_ts": "1700.1"}
    assert slack.of("chat.postMessage") == []


def test_file_is_named_where_the_app_may_not_upload(channel: Channel, slack: Slack) -> None:
    slack.refusals = ["missing_scope"]
    send_file(channel)
    (sent,) = slack.of("chat.postMessage")
    assert sent["text"] == "note.txt"


def test_file_is_uploaded_to_slack_alone(channel: Channel, slack: Slack) -> None:
    slack.upload_url = "https://elsewhere.example/upload/F1"
    with pytest.raises(NotSent) as refused:
        send_file(channel)
    assert refused.value.code == "address_refused"
    assert slack.of("files.completeUploadExternal") == []


# -- refusals ----------------------------------------------------------------------------------------------------------


def outcome(channel: Channel, **message: Any) -> Any:
    with tenant_scope(channel.tenant_id):
        place = place_of(channel)
    try:
        return asyncio.run(adapter.SlackAdapter().send(place, Outbound("Hello", once="one", **message)))
    except NotSent as refusal:
        return refusal


@pytest.mark.parametrize(
    ("refusal", "code", "wait"),
    [
        ("token_revoked", "token_revoked", None),
        ("account_inactive", "account_inactive", None),
        ("internal_error", "internal_error", 5),
        ((429, {"Retry-After": "30"}), "http_429", 30),
        ((503, {}), "http_503", 5),
    ],
)
def test_refusal_is_told_apart(channel: Channel, slack: Slack, refusal: Any, code: str, wait: float | None) -> None:
    slack.refusals = [refusal]
    refused = outcome(channel)
    assert refused.code == code
    assert refused.retry_after == wait


def test_same_message_sent_again_is_shown_once(channel: Channel) -> None:
    assert outcome(channel).external_id == outcome(channel).external_id


def test_connection_names_workspace_and_bot(channel: Channel) -> None:
    with tenant_scope(channel.tenant_id):
        place = place_of(channel)
    found = asyncio.run(adapter.SlackAdapter().connect(place, "https://here.example/"))
    assert found["team"] == TEAM
    assert found["bot_user"] == BOT


@pytest.mark.parametrize(
    ("markdown", "shown"),
    [
        ("a **b** *c* _d_ ~~e~~", "a *b* _c_ _d_ ~e~"),
        ("# Title\n\n- one\n* two", "*Title*\n\n• one\n• two"),
        ("`**x**` and ```\n*y*\n```", "`**x**` and ```\n*y*\n```"),
        ("<!channel> & <@U1>", "&lt;!channel&gt; &amp; &lt;@U1&gt;"),
        ("[x](javascript:alert(1))", "[x](javascript:alert(1))"),
    ],
)
def test_markdown_becomes_mrkdwn(markdown: str, shown: str) -> None:
    assert mrkdwn.from_markdown(markdown) == shown
