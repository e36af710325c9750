"""E-mail as a channel, with a real mail server and a real mailbox."""

from __future__ import annotations

import base64
import hashlib
import hmac
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.message import EmailMessage
from typing import Any

import pytest
from celery.signals import worker_shutting_down
from django.test import Client, override_settings
from django.urls import reverse

from apps.bus import threads
from apps.bus.enums import Kind, State
from apps.bus.models import QueueMessage
from apps.messengers import handlers, inbound
from apps.messengers.email.adapter import compose
from apps.messengers.email.servers import Mailbox
from apps.messengers.enums import ChannelKind, Direction, MessageState
from apps.messengers.models import Channel, ChannelMessage, ChannelThread, InboundMail
from apps.messengers.ports import Outbound, OutboundOption, Place
from apps.messengers.services import change_channel
from apps.sessions import chronicle
from apps.sessions.enums import EntryKind, Sender
from apps.sessions.locks import lock_session
from apps.sessions.models import ChatSession, ChronicleEntry
from apps.visitors import offers
from apps.visitors.models import VisitorFile
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope
from tests.factories.bus import carry_out_kinds
from tests.factories.mail_servers import ADA, PASSWORD, SUPPORT, MailServers, imap_server, mail_servers
from tests.factories.messengers import make_channel, message

SECRET = "a webhook secret of some length"


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MailServers]:
    with mail_servers(tmp_path_factory.mktemp("mail")) as running:
        yield running


@pytest.fixture
def mailbox(servers: MailServers, deployment: Any) -> Iterator[Channel]:
    with override_settings(CHANNELS_PRIVATE=True, CHANNELS_CA=servers.authority):
        channel = make_channel(deployment, ChannelKind.EMAIL, **servers.settings)
        poll(channel)
        yield channel


@pytest.fixture
def channel(deployment: Any) -> Channel:
    """Its mails come by webhook."""
    return make_channel(deployment, ChannelKind.EMAIL, address=SUPPORT, webhook_secret=SECRET)


def poll(channel: Channel) -> None:
    carry_out_kinds(channel.tenant_id, Kind.CHANNEL_POLL)


def take_in(channel: Channel) -> None:
    carry_out_kinds(channel.tenant_id, Kind.MAIL_READ)
    carry_out_kinds(channel.tenant_id, Kind.CHANNEL_INBOUND)


def mail(text: str, **headers: str) -> EmailMessage:
    written = EmailMessage()
    fields = {"From": f"Ada Byron <{ADA}>", "To": SUPPORT, "Subject": "My parcel", **headers}
    fields.setdefault("Message-ID", f"<{hashlib.sha256(repr((text, fields)).encode()).hexdigest()[:20]}@example.test>")
    for name, value in fields.items():
        written[name] = value
    written.set_content(text)
    return written


def say(channel: Channel, session_id: Any, text: str) -> None:
    with tenant_scope(channel.tenant_id):
        chronicle.append(lock_session(session_id), kind=EntryKind.MESSAGE, sender=Sender.BOT, text=text)


def post(channel: Channel, content: bytes, *, secret: str = SECRET, stamp: int | None = None) -> Any:
    stamp = int(time.time()) if stamp is None else stamp
    digest = hmac.new(secret.encode(), f"m1.{stamp}.".encode() + content, hashlib.sha256).digest()
    headers = {
        "webhook-id": "m1",
        "webhook-timestamp": str(stamp),
        "webhook-signature": f"v1,{base64.b64encode(digest).decode()}",
    }
    url = reverse("channel-webhook", args=["email", channel.public_id])
    return Client().post(url, content, content_type="message/rfc822", headers=headers)


def hand_in(channel: Channel, written: EmailMessage) -> ChannelMessage:
    assert post(channel, written.as_bytes()).status_code == 200
    take_in(channel)
    with tenant_scope(channel.tenant_id):
        found = ChannelMessage.objects.filter(channel=channel, direction=Direction.IN)
        return found.select_related("thread").order_by("-changed_at")[0]


def texts(channel: Channel) -> list[str]:
    with tenant_scope(channel.tenant_id):
        return list(
            ChronicleEntry.objects.filter(sender=Sender.VISITOR).order_by("created_at").values_list("text", flat=True)
        )


# -- with real servers -------------------------------------------------------------------------------------------------


def test_mail_is_answered_in_its_thread_and_the_reply_continues_it(mailbox: Channel, servers: MailServers) -> None:
    before = len(servers.mailbox(SUPPORT))
    servers.write(mail("Where is my parcel?", **{"Message-ID": "<first@example.test>"}))
    servers.wait_for(SUPPORT, before + 1)
    poll(mailbox)
    take_in(mailbox)
    assert texts(mailbox) == ["Where is my parcel?"]
    with tenant_scope(mailbox.tenant_id):
        session = ChatSession.objects.get()
        assert session.channel == "email"
        assert session.level == "public"
        assert session.customer == ""
    say(mailbox, session.pk, "It is **on its way**.")
    carry_out_kinds(mailbox.tenant_id, Kind.CHANNEL_DELIVERY)
    (answer,) = servers.wait_for(ADA, 1)
    assert answer["Subject"] == "Re: My parcel"
    assert answer["In-Reply-To"] == "<first@example.test>"
    assert answer["Auto-Submitted"] == "auto-replied"
    html = answer.get_body(("html",))
    assert html is not None
    assert "<strong>on its way</strong>" in html.get_content()
    reply = mail("Thanks!\n\nOn Mon, Nov 3, 2025 at 10:00 AM Support <s@shop.test> wrote:\n> It is on its way.")
    del reply["To"]
    reply["To"] = str(answer["Reply-To"])
    servers.write(reply)
    servers.wait_for(SUPPORT, before + 2)
    poll(mailbox)
    take_in(mailbox)
    assert texts(mailbox) == ["Where is my parcel?", "Thanks!"]
    with tenant_scope(mailbox.tenant_id):
        assert ChatSession.objects.count() == 1
        assert not InboundMail.objects.exists()


def test_first_look_answers_no_old_mails(servers: MailServers, deployment: Any) -> None:
    before = len(servers.mailbox(SUPPORT))
    servers.write(mail("Long ago"))
    servers.wait_for(SUPPORT, before + 1)
    with override_settings(CHANNELS_PRIVATE=True, CHANNELS_CA=servers.authority):
        fresh = make_channel(deployment, ChannelKind.EMAIL, **servers.settings)
        poll(fresh)
        poll(fresh)
        take_in(fresh)
    assert texts(fresh) == []


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"imap_password": "wrong"}, "imap_login_refused"),
        ({"imap_folder": "Nowhere"}, "imap_no_folder"),
        ({"imap_port": "1"}, "imap_unreachable"),
    ],
)
def test_wrong_mailbox_is_named(servers: MailServers, deployment: Any, change: dict[str, str], problem: str) -> None:
    with override_settings(CHANNELS_PRIVATE=True, CHANNELS_CA=servers.authority):
        wrong = make_channel(deployment, ChannelKind.EMAIL, **{**servers.settings, **change})
        poll(wrong)
    with tenant_scope(wrong.tenant_id):
        assert Channel.objects.get(pk=wrong.pk).problem == problem


def test_mailbox_inside_the_operators_network_is_not_called(servers: MailServers, deployment: Any) -> None:
    with override_settings(CHANNELS_PRIVATE=False, CHANNELS_CA=servers.authority):
        inside = make_channel(deployment, ChannelKind.EMAIL, **servers.settings)
        poll(inside)
    with tenant_scope(inside.tenant_id):
        assert Channel.objects.get(pk=inside.pk).problem == "imap_address_refused"


def test_certificate_of_nobody_known_is_refused(servers: MailServers, deployment: Any) -> None:
    with override_settings(CHANNELS_PRIVATE=True, CHANNELS_CA=""):
        untrusted = make_channel(deployment, ChannelKind.EMAIL, **servers.settings)
        poll(untrusted)
    with tenant_scope(untrusted.tenant_id):
        assert Channel.objects.get(pk=untrusted.pk).problem == "imap_tls_failed"


# -- watching ----------------------------------------------------------------------------------------------------------


@contextmanager
def watching(channel: Channel) -> Iterator[threading.Thread]:
    """The channel is watched by a worker's thread, which is asked to end afterwards."""
    with override_settings(CHANNEL_WATCHES=1, CHANNEL_POLL_SECONDS=60):
        thread = threading.Thread(target=poll, args=[channel])
        thread.start()
        try:
            wait_until(lambda: channel.pk in handlers._watched)
            time.sleep(0.3)  # logged in and waiting
            yield thread
        finally:
            worker_shutting_down.send(sender=None)
            thread.join(5)
            threads._stopping.clear()
        assert not thread.is_alive()


def wait_until(is_so: Callable[[], bool], seconds: float = 10) -> None:
    until = time.monotonic() + seconds
    while not is_so() and time.monotonic() < until:
        time.sleep(0.02)
    assert is_so()


def stored_mails(channel: Channel) -> int:
    with tenant_scope(channel.tenant_id):
        return int(InboundMail.objects.count())


def job_of(channel: Channel) -> QueueMessage:
    with tenant_scope(channel.tenant_id):
        return QueueMessage.objects.get(kind=Kind.CHANNEL_POLL)


def test_mails_that_come_one_after_the_other_are_taken_in_at_once(mailbox: Channel, servers: MailServers) -> None:
    with watching(mailbox):
        for number in (1, 2):
            servers.write(mail(f"Hello {number}"))
            began = time.monotonic()
            wait_until(lambda: stored_mails(mailbox) == number)  # noqa: B023 (called at once)
            assert time.monotonic() - began < 5  # far from the minute after which it looks again
    assert job_of(mailbox).state == State.QUEUED
    with tenant_scope(mailbox.tenant_id):
        kept = Channel.objects.get(pk=mailbox.pk).kept["uid"]
    poll(mailbox)
    assert stored_mails(mailbox) == 2
    with tenant_scope(mailbox.tenant_id):
        assert Channel.objects.get(pk=mailbox.pk).kept["uid"] == kept


def test_dropped_connection_loses_no_mail(mailbox: Channel, servers: MailServers) -> None:
    with watching(mailbox) as watch:
        servers.drop_connections()
        watch.join(10)
        assert not watch.is_alive()
    assert job_of(mailbox).state == State.QUEUED
    with tenant_scope(mailbox.tenant_id):
        assert Channel.objects.get(pk=mailbox.pk).problem == ""
    before = len(servers.mailbox(SUPPORT))
    servers.write(mail("Meanwhile"))
    servers.wait_for(SUPPORT, before + 1)
    poll(mailbox)
    assert stored_mails(mailbox) == 1


def test_watch_of_a_changed_channel_ends(mailbox: Channel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apps.messengers.email.servers.WAIT_SECONDS", 0.2)
    with watching(mailbox) as watch:
        with tenant_scope(mailbox.tenant_id):
            change_channel(mailbox.pk, actor="user:test", enabled=False)
        watch.join(10)
        assert not watch.is_alive()


def test_mailbox_is_only_looked_into_where_the_worker_has_no_room(mailbox: Channel) -> None:
    with override_settings(CHANNEL_WATCHES=0):
        poll(mailbox)
    assert job_of(mailbox).state == State.QUEUED


@pytest.mark.parametrize("refusal", ["no capability", "refused"])
def test_server_that_reports_no_mails_is_looked_into(deployment: Any, refusal: str) -> None:
    with imap_server(idle=refusal) as port, override_settings(CHANNEL_WATCHES=1):
        values = {"imap_host": "localhost", "imap_port": str(port), "imap_security": "none", "imap_user": "u"}
        channel = make_channel(deployment, ChannelKind.EMAIL, address=SUPPORT, imap_password="p", **values)
        poll(channel)
    assert job_of(channel).state == State.QUEUED
    with tenant_scope(channel.tenant_id):
        row = Channel.objects.get(pk=channel.pk)
    assert row.problem == ""
    assert row.kept == {"validity": "1", "uid": 6}


def test_mail_that_is_reported_during_a_look_is_not_waited_for() -> None:
    with imap_server(idle="taken", reports=True) as port:
        values = {"imap_host": "localhost", "imap_port": port, "imap_security": "none", "imap_user": "u"}
        box = Mailbox(values, "p")
        fetched, following = box.fetch({"validity": "1", "uid": 6})
        assert [each.uid for each in fetched] == [7]
        began = time.monotonic()
        box.wait(lambda: False)
        assert time.monotonic() - began < 1
        fetched, _ = box.fetch(following)
        assert fetched == []
        box.wait(lambda: True)
        box.close()


# -- by webhook --------------------------------------------------------------------------------------------------------


def test_mail_by_webhook_is_believed_by_its_signature_alone(channel: Channel) -> None:
    content = mail("Hello").as_bytes()
    assert post(channel, content, secret="another secret of some length").status_code == 403
    assert post(channel, content, stamp=int(time.time()) - 3600).status_code == 403
    assert post(channel, content).status_code == 200
    assert post(channel, content).status_code == 200
    take_in(channel)
    assert texts(channel) == ["Hello"]


def test_mail_of_thirty_megabytes_is_refused(channel: Channel) -> None:
    assert post(channel, b"x" * 30_000_001).status_code == 413


@pytest.mark.parametrize(
    ("headers", "problem"),
    [
        ({"Auto-Submitted": "auto-replied"}, "automatic"),
        ({"Precedence": "bulk"}, "automatic"),
        ({"From": SUPPORT}, "own_mail"),
        ({"From": "support+x@shop.test"}, "own_mail"),
        ({"X-Silas-Channel": "whatever"}, "own_mail"),
        ({"From": "a@b.test, c@d.test"}, "no_sender"),
    ],
)
def test_mail_that_nobody_wrote_begins_nothing(channel: Channel, headers: dict[str, str], problem: str) -> None:
    row = hand_in(channel, mail("I am away until Monday.", **headers))
    assert row.state == MessageState.IGNORED
    assert row.problem == problem
    assert texts(channel) == []


def test_forged_sender_is_ignored_where_the_companys_server_says_so(deployment: Any) -> None:
    channel = make_channel(
        deployment, ChannelKind.EMAIL, address=SUPPORT, webhook_secret=SECRET, trusted_server="mx.shop.test"
    )
    forged = mail("Refund me", **{"Authentication-Results": "mx.shop.test; dmarc=fail"})
    assert hand_in(channel, forged).problem == "forged_sender"
    own_claim = mail("Refund me please", **{"Authentication-Results": "evil.test; dmarc=fail"})
    assert hand_in(channel, own_claim).problem == ""


def test_reply_from_another_address_begins_a_conversation_of_its_own(channel: Channel) -> None:
    first = hand_in(channel, mail("My card ends in 42", **{"Message-ID": "<mine@example.test>"}))
    assert first.thread is not None
    stranger = mail("What did they say?", **{"From": "eve@evil.test", "In-Reply-To": "<mine@example.test>"})
    second = hand_in(channel, stranger)
    assert second.thread is not None
    assert second.thread.session_id != first.thread.session_id


def test_token_of_another_companys_thread_is_worth_nothing(channel: Channel, other_tenant: Any) -> None:
    from tests.factories.tenants import make_deployment

    other = make_channel(make_deployment(other_tenant), ChannelKind.EMAIL, address=SUPPORT, webhook_secret=SECRET)
    hand_in(other, mail("Theirs"))
    with tenant_scope(other_tenant):
        theirs = ChannelThread.objects.get()
    row = hand_in(channel, mail("Mine", To=f"support+{theirs.key}@shop.test"))
    assert row.thread is not None
    assert row.thread.key != theirs.key


def test_attachment_is_kept_and_a_dangerous_one_is_refused(channel: Channel, deployment: Any) -> None:
    with tenant_scope(channel.tenant_id):
        offers.change(deployment, actor="user:test", texts=True)
    written = mail("See the note")
    written.add_attachment(b"a note", maintype="text", subtype="plain", filename="note.txt")
    written.add_attachment(b"MZ\x90", maintype="application", subtype="octet-stream", filename="setup.exe")
    row = hand_in(channel, written)
    assert row.problem == "files_refused"
    with tenant_scope(channel.tenant_id):
        assert [file.name for file in VisitorFile.objects.all()] == ["note.txt"]
    assert texts(channel) == ["note.txt", "See the note"]


def test_bounce_marks_the_answer_as_failed(channel: Channel) -> None:
    row = hand_in(channel, mail("Hello"))
    assert row.thread is not None
    say(channel, row.thread.session_id, "An answer")
    with override_settings(EMAIL_HOST="mail.test", EMAIL_BACKEND="django.core.mail.backends.locmem.EmailBackend"):
        carry_out_kinds(channel.tenant_id, Kind.CHANNEL_DELIVERY)
    with tenant_scope(channel.tenant_id):
        sent = ChannelMessage.objects.get(direction=Direction.OUT)
    assert sent.state == MessageState.SENT
    bounce = (
        "From: MAILER-DAEMON@mx.test\r\nTo: support@shop.test\r\nMessage-ID: <b@mx.test>\r\n"
        'Content-Type: multipart/report; report-type=delivery-status; boundary="x"\r\n\r\n'
        "--x\r\nContent-Type: message/delivery-status\r\n\r\nReporting-MTA: dns; mx.test\r\n\r\n"
        "Final-Recipient: rfc822; ada@example.test\r\nAction: failed\r\nStatus: 5.1.1\r\n\r\n"
        f"--x\r\nContent-Type: text/rfc822-headers\r\n\r\nMessage-ID: <{sent.external_id}>\r\n\r\n--x--\r\n"
    )
    assert post(channel, bounce.encode()).status_code == 200
    take_in(channel)
    with tenant_scope(channel.tenant_id):
        sent.refresh_from_db()
        assert sent.state == MessageState.FAILED
        assert sent.problem == "bounced"


# -- what is sent ------------------------------------------------------------------------------------------------------


def place(**more: Any) -> Place:
    settings = {"address": SUPPORT, "sender": "", "plus": "yes", "smtp_host": ""}
    fields: dict[str, Any] = {"settings": settings, "secrets": {}, "public_id": "c1", "peer": ADA, "key": "tok", **more}
    return Place(**fields)


def test_mail_is_the_same_at_every_attempt() -> None:
    outbound = Outbound("Hello", once="session:1", title="Shop")
    assert compose(place(), outbound)["Message-ID"] == compose(place(), outbound)["Message-ID"]


@pytest.mark.parametrize("subject", ["My parcel\r\nBcc: victim@example.test", "x\n\ny"])
def test_subject_adds_no_header(subject: str) -> None:
    written = compose(place(reference={"subject": subject}), Outbound("Hello", once="1", title="Shop\r\nBcc: a@b.test"))
    assert written["Bcc"] is None
    assert "\n" not in str(written["Subject"])


def test_text_cannot_bring_markup_into_the_mail() -> None:
    written = compose(place(), Outbound("<script>alert(1)</script> <img src=x>", once="1", title="Shop"))
    html = written.get_body(("html",))
    assert html is not None
    assert "<script>" not in html.get_content()
    assert "<img" not in html.get_content()


def test_options_are_numbered_and_a_members_answer_is_not_automatic() -> None:
    options = (OutboundOption("Red", "p:1"), OutboundOption("Blue", "p:2"))
    written = compose(place(), Outbound("Which?", once="1", title="Shop", author="Grace", options=options))
    body = written.get_body(("plain",))
    assert body is not None
    assert "1. Red\n2. Blue" in body.get_content()
    assert written["Auto-Submitted"] is None
    assert "Grace" in str(written["From"])


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"address": "nonsense", "webhook_secret": SECRET}, "address"),
        ({"address": SUPPORT}, "webhook_secret"),
        ({"address": SUPPORT, "webhook_secret": "short"}, "webhook_secret"),
        ({"address": SUPPORT, "webhook_secret": SECRET, "smtp_port": "99999"}, "smtp_port"),
        ({"address": SUPPORT, "webhook_secret": SECRET, "imap_security": "perhaps"}, "imap_security"),
        ({"address": SUPPORT, "imap_host": "mail.shop.test"}, "imap_password"),
    ],
)
def test_wrong_settings_are_named(deployment: Any, values: dict[str, str], field: str) -> None:
    with pytest.raises(SilasError) as refused:
        make_channel(deployment, ChannelKind.EMAIL, **values)
    assert refused.value.extra["fields"].keys() == {field}


def test_password_is_not_sent_to_another_server_than_it_was_entered_for(servers: MailServers, deployment: Any) -> None:
    channel = make_channel(deployment, ChannelKind.EMAIL, **servers.settings)
    for change in ({"imap_host": "imap.evil.test"}, {"imap_security": "none"}, {"imap_port": "144"}):
        with tenant_scope(channel.tenant_id), pytest.raises(SilasError) as refused:
            change_channel(channel.pk, actor="user:test", values=change)
        assert refused.value.extra["fields"] == {"imap_password": "required"}
    with tenant_scope(channel.tenant_id):
        change_channel(channel.pk, actor="user:test", values={"imap_port": "144", "imap_password": PASSWORD})


def test_mail_over_the_installations_server_bears_its_sender() -> None:
    with override_settings(DEFAULT_FROM_EMAIL="Silas <noreply@operator.test>"):
        written = compose(place(), Outbound("Hello", once="1", title="Shop"))
    assert written["From"].addresses[0].addr_spec == "noreply@operator.test"
    assert written["Reply-To"] == "support+tok@shop.test"


def test_mail_bomb_ends_in_the_list_and_not_in_conversations(channel: Channel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbound, "FLOOD_FACTOR", 1)
    with override_settings(CHANNEL_LIMITS={"sender_messages_a_minute": 2, "messages_a_minute": 100}):
        outcomes = [
            inbound.receive(channel.tenant_id, channel.pk, message(f"{n}", peer="bomb@evil.test", sender="")).problem
            for n in range(4)
        ]
    assert outcomes == ["", "", "rate_limited", "rate_limited"]
