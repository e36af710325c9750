"""What every channel does alike: messages in and out of conversations, once, in order, with consent and limits."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client, override_settings
from django.urls import reverse

from apps.bus.enums import Kind
from apps.bus.models import QueueMessage
from apps.contacts.enums import IdentityKind, Proof, identity_kinds
from apps.contacts.models import ContactIdentity
from apps.inbox import handoff
from apps.messengers import inbound, ports, queries
from apps.messengers.delivery import place_of
from apps.messengers.enums import ChannelKind, Direction, MessageState
from apps.messengers.models import Channel, ChannelMessage, ChannelThread
from apps.messengers.services import change_channel, remove_channel
from apps.sessions import chronicle
from apps.sessions.enums import EntryKind, Sender
from apps.sessions.locks import lock_session
from apps.sessions.models import ChatSession, ChronicleEntry
from apps.tenants import vault
from apps.tenants.enums import KeyScope, Role
from apps.tenants.models import VisitorLimits
from apps.tenants.services import create_api_key
from apps.visitors import offers, prompts
from apps.visitors.models import VisitorFile
from apps.visitors.prompt_forms import FormField, FormWanted
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope
from tests.factories.bus import carry_out_kinds
from tests.factories.messengers import NotSent, Recorder, make_channel, message
from tests.factories.tenants import make_deployment, make_member, make_tenant


@pytest.fixture
def channel(recorder: Recorder, deployment: Any) -> Channel:
    return make_channel(deployment)


def take(channel: Channel, *args: Any, **named: Any) -> Any:
    return inbound.receive(channel.tenant_id, channel.pk, message(*args, **named))


def deliver(channel: Channel) -> None:
    carry_out_kinds(channel.tenant_id, Kind.CHANNEL_DELIVERY)


def say(channel: Channel, session_id: Any, text: str, sender: Sender = Sender.BOT, **more: Any) -> None:
    with tenant_scope(channel.tenant_id):
        session = lock_session(session_id)
        chronicle.append(session, kind=EntryKind.MESSAGE, sender=sender, text=text, **more)


def rows(channel: Channel, direction: Direction) -> list[ChannelMessage]:
    with tenant_scope(channel.tenant_id):
        return list(ChannelMessage.objects.filter(channel=channel, direction=direction).order_by("created_at"))


def call(channel: Channel, body: Any, signature: str = "right") -> Any:
    url = reverse("channel-webhook", args=[channel.kind, channel.public_id])
    data = body if isinstance(body, bytes) else json.dumps(body)
    return Client().post(url, data, content_type="application/json", headers={"X-Signature": signature})


# -- in ----------------------------------------------------------------------------------------------------------------


def test_first_message_begins_a_conversation_and_the_next_continues_it(channel: Channel) -> None:
    first, second = take(channel, "Hello"), take(channel, "Are you there?")
    assert first.session_id == second.session_id
    assert first.seq == 1
    assert second.seq == 2
    with tenant_scope(channel.tenant_id):
        session = ChatSession.objects.get(pk=first.session_id)
        assert session.channel == "sms"
        assert session.level == "public"
        identity = ContactIdentity.objects.get(kind=IdentityKind.PHONE)
        assert identity.value == "+491701234567"
        assert identity.proved_by == Proof.PROVIDER
        assert QueueMessage.objects.filter(kind=Kind.USER_MESSAGE).count() == 2


def test_same_message_delivered_twice_is_stored_once(channel: Channel) -> None:
    first = take(channel, "Hello", external_id="a")
    again = take(channel, "Hello", external_id="a")
    assert again.session_id == first.session_id
    assert again.seq == first.seq
    assert again.repeated is True
    with tenant_scope(channel.tenant_id):
        assert ChronicleEntry.objects.count() == 1


def test_two_people_never_share_a_conversation(channel: Channel) -> None:
    ours = take(channel, "Hello", key="thread", peer="+491700000001")
    theirs = take(channel, "Hello", key="thread", peer="+491700000002")
    assert ours.session_id != theirs.session_id
    assert take(channel, "Again", key="thread", peer="+491700000002").session_id == theirs.session_id


@pytest.mark.parametrize("text", ["", "   ", "\n\n"])
def test_message_with_nothing_in_it_is_ignored(channel: Channel, text: str) -> None:
    assert take(channel, text).problem == "empty"
    with tenant_scope(channel.tenant_id):
        assert not ChronicleEntry.objects.exists()


def test_emoji_alone_is_a_message(channel: Channel) -> None:
    assert take(channel, "👍").seq == 1


def test_hostile_text_is_kept_as_text_and_within_its_length(channel: Channel) -> None:
    outcome = take(channel, "<script>alert(1)</script>\0" + "x" * 10_000)
    with tenant_scope(channel.tenant_id):
        entry = ChronicleEntry.objects.get(session_id=outcome.session_id)
        assert entry.text.startswith("<script>alert(1)</script>")
        assert len(entry.text) <= 4000
        assert "shortened" in entry.text


def test_channel_or_chatbot_that_is_off_takes_nothing(channel: Channel, deployment: Any) -> None:
    with tenant_scope(channel.tenant_id):
        change_channel(channel.pk, actor="user:test", enabled=False)
    assert take(channel, "Hello").problem == "channel_off"
    with tenant_scope(channel.tenant_id):
        change_channel(channel.pk, actor="user:test", enabled=True)
        deployment.enabled = False
        deployment.save()
    assert take(channel, "Hello").problem == "channel_off"


def test_flood_of_one_sender_is_ignored_and_others_are_heard(channel: Channel) -> None:
    with override_settings(CHANNEL_LIMITS={"sender_messages_a_minute": 3, "messages_a_minute": 100}):
        for number in range(3):
            assert take(channel, f"Message {number}", external_id=f"m{number}").problem == ""
        with pytest.raises(SilasError) as refused:
            take(channel, "Message 4")
        assert refused.value.extra["retry_after"] > 0
        assert take(channel, "Message 0", external_id="m0").repeated
        assert take(channel, "Hello", peer="+491700000009").problem == ""


def test_more_than_anybody_writes_in_an_hour_is_ignored(channel: Channel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbound, "FLOOD_FACTOR", 1)
    with override_settings(CHANNEL_LIMITS={"sender_messages_a_minute": 2, "messages_a_minute": 100}):
        outcomes = [take(channel, f"Message {number}", peer="+491700000033").problem for number in range(4)]
    assert outcomes == ["", "", "rate_limited", "rate_limited"]


def test_message_that_has_to_wait_is_delivered_again_by_the_provider(channel: Channel) -> None:
    with tenant_scope(channel.tenant_id):
        VisitorLimits.objects.create(pending_turns=1)
    take(channel, "One")
    body = {"messages": [{"text": "Two", "external_id": "two"}]}
    answer = call(channel, body)
    assert answer.status_code == 429
    assert int(answer["Retry-After"]) > 0
    with tenant_scope(channel.tenant_id):
        VisitorLimits.objects.update(pending_turns=20)
    assert call(channel, body).status_code == 200
    with tenant_scope(channel.tenant_id):
        assert list(ChronicleEntry.objects.order_by("seq").values_list("text", flat=True)) == ["One", "Two"]


def test_full_conversation_is_followed_by_a_new_one(channel: Channel) -> None:
    first = take(channel, "Hello")
    with tenant_scope(channel.tenant_id):
        ChatSession.objects.filter(pk=first.session_id).update(seq=20_000)
    with override_settings(MAX_CHRONICLE=20_000):
        second = take(channel, "Hello again")
    assert second.session_id != first.session_id


def test_opting_out_stops_answers_until_the_person_opts_in(channel: Channel, recorder: Recorder) -> None:
    session_id = take(channel, "Hello").session_id
    assert take(channel, "STOP").problem == "opted_out"
    say(channel, session_id, "An answer")
    deliver(channel)
    assert recorder.texts == []
    assert take(channel, "start").problem == "opted_in"
    say(channel, session_id, "Another answer")
    deliver(channel)
    assert recorder.texts == ["Another answer"]


# -- consent -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def asks_consent(deployment: Any) -> None:
    with tenant_scope(deployment.tenant_id):
        offers.change(deployment, actor="user:test", consent_text="We store what you write.", consent_version="v1")


def test_nothing_is_stored_before_the_consent(channel: Channel, recorder: Recorder, asks_consent: None) -> None:
    assert take(channel, "My claim number is 4711").problem == "consent_asked"
    with tenant_scope(channel.tenant_id):
        assert not ChatSession.objects.exists()
        assert not ChronicleEntry.objects.exists()
    deliver(channel)
    assert "We store what you write." in recorder.texts[0]
    assert take(channel, "Yes!").problem == "consent_given"
    deliver(channel)
    assert recorder.texts[1].startswith("Thank you")
    outcome = take(channel, "My claim number is 4711")
    assert outcome.seq == 1


def test_new_version_of_the_consent_is_asked_for_again(
    channel: Channel, deployment: Any, asks_consent: None, recorder: Recorder
) -> None:
    take(channel, "Hello")
    take(channel, "", choice="consent")
    before = take(channel, "Hello")
    with tenant_scope(channel.tenant_id):
        offers.change(deployment, actor="user:test", consent_text="We store more.", consent_version="v2")
    assert take(channel, "Hello").problem == "consent_asked"
    take(channel, "ok")
    assert take(channel, "Hello").session_id == before.session_id


# -- out ---------------------------------------------------------------------------------------------------------------


def test_answers_leave_in_order_and_the_visitors_own_words_do_not(channel: Channel, recorder: Recorder) -> None:
    session_id = take(channel, "Hello").session_id
    for number in range(3):
        say(channel, session_id, f"Answer {number}")
    for _ in range(3):
        deliver(channel)
    assert recorder.texts == ["Answer 0", "Answer 1", "Answer 2"]
    assert [row.state for row in rows(channel, Direction.OUT)] == [MessageState.SENT] * 3
    assert recorder.sent[-1][0].reference == {"last": "out-2"}
    assert recorder.sent[0][0].secrets == {"token": "secret-token"}


def test_member_answers_with_their_name(channel: Channel, recorder: Recorder) -> None:
    session_id = take(channel, "Hello").session_id
    with tenant_scope(channel.tenant_id):
        agent = make_member(channel.tenant, Role.AGENT)
    with tenant_scope(channel.tenant_id):
        handoff.take_over(session_id, agent)
    with tenant_scope(channel.tenant_id):
        handoff.reply(session_id, agent, "I'm here to help.")
    deliver(channel)
    assert recorder.sent[-1][1].text == "I'm here to help."
    assert recorder.sent[-1][1].author == agent.display_name


def test_failed_delivery_is_tried_again_and_a_refused_one_is_not(channel: Channel, recorder: Recorder) -> None:
    session_id = take(channel, "Hello").session_id
    recorder.failures = [NotSent("busy", retry_after=1)]
    say(channel, session_id, "Answer")
    deliver(channel)
    (row,) = rows(channel, Direction.OUT)
    assert row.state == MessageState.WAITING
    assert row.problem == "busy"
    deliver(channel)
    assert recorder.texts == ["Answer"]
    recorder.failures = [NotSent("blocked", opted_out=True)]
    say(channel, session_id, "Second")
    deliver(channel)
    row = rows(channel, Direction.OUT)[-1]
    assert row.state == MessageState.FAILED
    assert row.problem == "blocked"
    with tenant_scope(channel.tenant_id):
        assert ChannelThread.objects.get().opted_out_at is not None
        assert Channel.objects.get(pk=channel.pk).problem == "blocked"


def test_attempt_with_an_unknown_outcome_is_made_again_only_where_it_is_safe(
    channel: Channel, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    session_id = take(channel, "Hello").session_id
    for safe, expected in ((False, MessageState.FAILED), (True, MessageState.SENT)):
        monkeypatch.setattr(Recorder, "sends_twice_safely", safe)
        say(channel, session_id, f"Answer {safe}")
        recorder.failures = [RuntimeError("the worker died here")]
        deliver(channel)
        deliver(channel)
        assert rows(channel, Direction.OUT)[-1].state == expected
    assert recorder.texts == ["Answer True"]


def test_receipts_move_a_message_forward_only(channel: Channel, recorder: Recorder) -> None:
    session_id = take(channel, "Hello").session_id
    say(channel, session_id, "Answer")
    deliver(channel)
    assert call(channel, {"receipts": [{"id": "out-1", "state": "read"}]}).status_code == 200
    assert rows(channel, Direction.OUT)[0].state == MessageState.READ
    call(channel, {"receipts": [{"id": "out-1", "state": "delivered"}]})
    assert rows(channel, Direction.OUT)[0].state == MessageState.READ


def test_question_is_answered_by_press_number_or_label(channel: Channel, recorder: Recorder) -> None:
    session_id = take(channel, "Hello").session_id
    asked = prompts.Question(
        question="Which one?", options=({"value": "a", "label": "Red"}, {"value": "b", "label": "Blue"})
    )
    answers = [{"text": "2"}, {"text": "blue"}, {}]
    for each in answers:
        with tenant_scope(channel.tenant_id):
            prompts.ask_visitor(session_id, asked, actor="user:test")
        deliver(channel)
        options = recorder.sent[-1][1].options
        assert [option.label for option in options] == ["Red", "Blue"]
        assert all(len(option.choice.encode()) <= 64 for option in options)
        take(channel, each.get("text", ""), **({} if each else {"choice": options[1].choice}))
        with tenant_scope(channel.tenant_id):
            entry = ChronicleEntry.objects.filter(session_id=session_id).order_by("-seq")[0]
            assert entry.kind == EntryKind.DECISION
            assert entry.sender == Sender.VISITOR
            assert entry.text == "Blue"
    late = take(channel, "", choice=recorder.sent[-1][1].options[0].choice)
    assert late.problem == "choice_over"


def test_press_of_another_conversations_question_decides_nothing(channel: Channel, recorder: Recorder) -> None:
    session_id = take(channel, "Hello").session_id
    asked = prompts.Question(question="Sure?", options=({"value": "y", "label": "Yes"},))
    with tenant_scope(channel.tenant_id):
        card = prompts.ask_visitor(session_id, asked, actor="user:test")
    stranger = take(channel, "", choice=f"p:{card.pk.hex}:0", peer="+491700000666")
    assert stranger.problem == "choice_over"
    with tenant_scope(channel.tenant_id):
        card.refresh_from_db()
        assert card.status == "open"


def test_form_is_filled_in_by_lines(channel: Channel, recorder: Recorder) -> None:
    session_id = take(channel, "Hello").session_id
    fields = (FormField(name="street", label="Street", required=True), FormField(name="city", label="City"))
    with tenant_scope(channel.tenant_id):
        card = prompts.ask_visitor(session_id, FormWanted(question="Your address?", fields=fields), actor="user:test")
    deliver(channel)
    assert "Street:\nCity:" in recorder.texts[-1]
    take(channel, "Street: 1 Main St\ncity: Berlin")
    with tenant_scope(channel.tenant_id):
        card.refresh_from_db()
        assert card.answers == {"street": "1 Main St", "city": "Berlin"}


def test_secret_is_never_asked_for_in_a_channel(channel: Channel, recorder: Recorder) -> None:
    session_id = take(channel, "Hello").session_id
    wanted = prompts.SecretWanted(label="IBAN", guidance={"instructions": "See your card."})
    with tenant_scope(channel.tenant_id):
        prompts.ask_visitor(session_id, wanted, actor="user:test")
    deliver(channel)
    assert "Please don't send them here" in recorder.texts[-1]


# -- files -------------------------------------------------------------------------------------------------------------


def test_files_are_kept_as_the_widgets_are_and_others_are_refused(
    channel: Channel, recorder: Recorder, deployment: Any
) -> None:
    with tenant_scope(channel.tenant_id):
        offers.change(deployment, actor="user:test", texts=True)
    recorder.stored = {"1": b"a note", "2": b"MZ\x90\x00" + b"\x00" * 64}
    body = {
        "messages": [
            {
                "text": "Two files",
                "external_id": "files",
                "files": [{"name": "note.txt", "ref": "1"}, {"name": "setup.exe", "ref": "2"}],
            }
        ]
    }
    assert call(channel, body).status_code == 200
    carry_out_kinds(channel.tenant_id, Kind.CHANNEL_INBOUND)
    with tenant_scope(channel.tenant_id):
        assert [row.name for row in VisitorFile.objects.all()] == ["note.txt"]
        assert ChronicleEntry.objects.filter(text="Two files").count() == 1
    deliver(channel)
    assert "setup.exe" in recorder.texts[-1]
    assert call(channel, body).status_code == 200
    carry_out_kinds(channel.tenant_id, Kind.CHANNEL_INBOUND)
    with tenant_scope(channel.tenant_id):
        assert VisitorFile.objects.count() == 1


# -- calls of the provider ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "signature", "status"),
    [
        ({"messages": []}, "wrong", 403),
        (b"not json", "right", 400),
        ({"messages": [{"nonsense": 1, "peer": 5}]}, "right", 400),
        (b"x" * 2_000_001, "right", 413),
    ],
)
def test_call_that_is_not_the_providers_is_refused(channel: Channel, body: Any, signature: str, status: int) -> None:
    assert call(channel, body, signature).status_code == status
    assert rows(channel, Direction.IN) == []


def test_unknown_channel_and_wrong_kind_are_not_found(channel: Channel) -> None:
    assert Client().post(f"/channels/sms/{uuid4()}").status_code == 404
    assert Client().post(f"/channels/telegram/{channel.public_id}").status_code == 404
    with tenant_scope(channel.tenant_id):
        remove_channel(channel.pk, actor="user:test")
    assert call(channel, {"messages": []}).status_code == 404


def test_guesses_are_slowed_down(channel: Channel) -> None:
    answers = [
        Client().post(f"/channels/sms/{uuid4()}", headers={}, REMOTE_ADDR="203.0.113.77").status_code for _ in range(62)
    ]
    assert answers[-1] == 429


# -- settings ----------------------------------------------------------------------------------------------------------


def api(tenant: Any, method: str, path: str, body: Any = None, *scopes: KeyScope, **headers: str) -> Any:
    with tenant_scope(tenant):
        key = create_api_key("test", scopes=set(scopes), actor="user:test").key
    client = Client(headers={"Authorization": f"Bearer {key}", **headers})
    return client.generic(method.upper(), path, json.dumps(body) if body is not None else "", "application/json")


def test_channel_is_added_changed_and_removed_by_api(recorder: Recorder, tenant: Any, deployment: Any) -> None:
    body = {
        "kind": "sms",
        "deployment": str(deployment.pk),
        "name": "Text messages",
        "settings": {"number": "+4930123", "token": "very-secret"},
    }
    made = api(tenant, "post", "/api/v1/channels", body)
    assert made.status_code == 201
    assert "very-secret" not in made.content.decode()
    assert made.json()["webhook"].startswith("http")
    one = f"/api/v1/channels/{made.json()['id']}"
    stale = api(tenant, "patch", one, {"name": "SMS"}, **{"If-Match": '"7"'})
    assert stale.status_code == 412
    assert stale.json()["error"]["code"] == "changed_meanwhile"
    changed = api(tenant, "patch", one, {"name": "SMS"}, **{"If-Match": made["ETag"]})
    assert changed.json()["name"] == "SMS"
    assert api(tenant, "post", f"{one}/check").json()["settings"]["bot"] == "recorder"
    recorder.failures = [NotSent("unauthorized")]
    refused = api(tenant, "post", f"{one}/check")
    assert refused.status_code == 502
    assert refused.json()["error"]["extra"]["reason"] == "unauthorized"
    assert api(tenant, "delete", one).status_code == 204
    assert api(tenant, "get", one).status_code == 404


@pytest.mark.parametrize(
    ("settings", "field"),
    [({}, "number"), ({"number": "1", "token": "2", "x": "3"}, "x"), ({"number": "1"}, "token")],
)
def test_wrong_settings_are_named(
    recorder: Recorder, tenant: Any, deployment: Any, settings: dict[str, str], field: str
) -> None:
    body = {"kind": "sms", "deployment": str(deployment.pk), "name": "SMS", "settings": settings}
    refused = api(tenant, "post", "/api/v1/channels", body)
    assert refused.status_code == 400
    assert refused.json()["error"]["code"] == "channel_settings"
    assert field in refused.json()["error"]["extra"]["fields"]


def test_another_tenants_channel_is_not_found(channel: Channel, tenant: Any) -> None:
    other = make_tenant()
    for method, path in (("get", ""), ("patch", ""), ("delete", ""), ("post", "/check"), ("get", "/messages")):
        body = {"name": "x"} if method == "patch" else None
        assert api(other, method, f"/api/v1/channels/{channel.pk}{path}", body).status_code == 404
    foreign = {"kind": "sms", "deployment": str(channel.deployment_id), "name": "x"}
    assert api(other, "post", "/api/v1/channels", foreign).status_code == 404


def test_key_without_the_scope_is_refused_by_name(channel: Channel, tenant: Any) -> None:
    refused = api(tenant, "get", "/api/v1/channels", None, KeyScope.SESSIONS_READ)
    assert refused.status_code == 403
    assert refused.json()["error"]["extra"]["scope"] == "settings:read"


def test_health_counts_the_last_hour(channel: Channel, recorder: Recorder) -> None:
    session_id = take(channel, "Hello").session_id
    say(channel, session_id, "Answer")
    deliver(channel)
    with tenant_scope(channel.tenant_id):
        health = queries.health(channel.pk)
    assert health.received == 1
    assert health.sent == 1
    assert health.failed == 0


def test_forgotten_conversation_takes_the_address_with_it(channel: Channel) -> None:
    from apps.sessions.signals import conversations_forgotten

    session_id = take(channel, "Hello").session_id
    with tenant_scope(channel.tenant_id):
        conversations_forgotten([session_id])
        assert not ChannelThread.objects.exists()


def test_secrets_are_sealed_anew_with_a_new_data_key(channel: Channel) -> None:
    with tenant_scope(channel.tenant_id):
        before = bytes(Channel.objects.get(pk=channel.pk).sealed)
        vault.rotate_data_key(actor="rotate_secrets")
        after = Channel.objects.get(pk=channel.pk)
        assert bytes(after.sealed) != before
        assert place_of(after).secrets == {"token": "secret-token"}


def test_secrets_do_not_open_elsewhere(channel: Channel, deployment: Any) -> None:
    other = make_channel(make_deployment(channel.tenant))
    with tenant_scope(channel.tenant_id):
        Channel.objects.filter(pk=other.pk).update(sealed=Channel.objects.get(pk=channel.pk).sealed)
        with pytest.raises(SilasError, match=r".*") as refused:
            change_channel(other.pk, actor="user:test", name="Copied")
        assert refused.value.code == "seal_broken"


@pytest.mark.parametrize("kind", ["telegram", "whatsapp", "sms"])
def test_adapter_says_how_it_is_set_up(kind: str) -> None:
    adapter = ports.adapter_of(kind)
    steps = [str(step) for step in adapter.steps({}, "https://chat.example.com/hook")]
    assert len(steps) >= 3
    assert not any("{" in step for step in steps)
    assert all(str(setting.label) for setting in adapter.settings)


@pytest.mark.parametrize("kind", ["telegram", "whatsapp", "slack", "teams"])
def test_id_of_a_channels_own_is_a_kind_of_identity_under_the_channels_name(kind: str) -> None:
    assert ContactIdentity(kind=kind).get_kind_display() == ChannelKind(kind).label


def test_phone_number_of_a_channel_is_no_kind_of_its_own() -> None:
    assert "sms" not in dict(identity_kinds())
