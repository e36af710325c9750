"""The one way out to every channel: each entry that the widget would show leaves once, in order.

An entry is enqueued in the transaction that records it, one job of the thread's own scope each, and sent by the trusted
worker. The attempt is committed before the provider is called. After a crash in between the message may have arrived:
it is sent again where the provider shows it once, and otherwise marked as failed with `outcome_unknown`.
"""

from __future__ import annotations

import json
import mimetypes
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any
from uuid import UUID, uuid4

from django.db.models import F
from django.urls import reverse

from apps.bus.deliveries import Delivery
from apps.bus.enums import Kind
from apps.bus.models import QueueMessage
from apps.bus.services import enqueue
from apps.messengers import file_links, ports
from apps.messengers.enums import Direction, MessageState
from apps.messengers.models import Channel, ChannelMessage, ChannelThread
from apps.messengers.ports import NotSent, Outbound, OutboundFile, OutboundOption, Place, Sent
from apps.messengers.ratings import ASKED_AT, rating_options
from apps.sessions import rules
from apps.sessions.enums import EntryKind, Sender
from apps.sessions.models import ChatSession, ChronicleEntry
from apps.sessions.ratelimit.open_sockets import is_open
from apps.sessions.served import languages_of
from apps.tenants import vault
from apps.visitors.files import file_of
from apps.visitors.offers import offers_of
from kernel import tracing
from kernel.canonical import sha256_hex
from kernel.clock import now
from kernel.errors import NotFound
from kernel.language import gettext, in_language
from kernel.tenancy import in_scope
from kernel.tracing import SpanName

MOST_ATTEMPTS = 8
# How long a visitor of the widget may be away before an answer is sent to them.
CONFIRM_FOR = timedelta(hours=24)
AWAY_AFTER = timedelta(seconds=60)
# How long after their last message there they are taken to be in a channel rather than in the widget.
HERE_FOR = timedelta(minutes=10)
FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS = 5, 3600
_SENT = (EntryKind.MESSAGE, EntryKind.STATUS, EntryKind.DECISION, EntryKind.FILE, EntryKind.SECURE_INPUT)
_OVER = (MessageState.SENT, MessageState.DELIVERED, MessageState.READ, MessageState.FAILED)


class Notice(StrEnum):
    """What a person is told outside of the conversation."""

    CONSENT = "consent"
    AGREED = "agreed"
    FILES_REFUSED = "files_refused"
    CHOICE_OVER = "choice_over"
    CONFIRM = "confirm"
    CONFIRMED = "confirmed"
    CONTINUE = "continue"
    CONTINUED = "continued"
    GREETING = "greeting"
    RATING = "rating"
    RATED = "rated"
    ACCOUNT_LINKED = "account_linked"
    CODE_REFUSED = "code_refused"


@dataclass(frozen=True)
class _Attempt:
    row_id: UUID
    adapter: ports.Adapter
    place: Place
    message: Outbound
    number: int
    session_id: UUID | None = None
    follows_widget: bool = False
    # Merged into the thread's reference once it was sent.
    reference: Mapping[str, Any] = field(default_factory=dict)


def enqueue_entries(session: ChatSession, entries: Sequence[ChronicleEntry]) -> None:
    """Enqueue a conversation's new entries for the thread where its visitor wrote last, in the transaction that wrote
    them.

    A visitor of the widget who is not known to be elsewhere is given time to come back first.
    """
    seqs = [entry.seq for entry in entries if entry.sender != Sender.VISITOR and entry.kind in _SENT]
    if not seqs:
        return
    threads = ChannelThread.objects.filter(session_id=session.pk, opted_out_at=None, confirm_hash="")
    newest = threads.order_by(F("last_received_at").desc(nulls_last=True), "-created_at")
    found = newest.values_list("pk", "follows_widget", "last_received_at").first()
    if found is None:
        return
    thread_id, follows, received_at = found
    due_at = now() + AWAY_AFTER if follows and not _is_here(received_at) else None
    for seq in seqs:
        # The same however often it is enqueued: an entry leaves once.
        once = f"channel:{thread_id}:{session.pk}:{seq}"
        payload = {"session": str(session.pk), "seq": seq}
        enqueue(Kind.CHANNEL_DELIVERY, scope_id=thread_id, payload=payload, message_id=once, due_at=due_at)


def _is_here(received_at: datetime | None) -> bool:
    """Whether the visitor is in the channel now: they wrote there a moment ago."""
    return received_at is not None and now() - received_at < HERE_FOR


def enqueue_notice(thread: ChannelThread, notice: Notice, **about: object) -> None:
    payload = {"notice": notice.value, **about}
    enqueue(Kind.CHANNEL_DELIVERY, scope_id=thread.pk, payload=payload, message_id=f"notice:{uuid4()}")


async def send(delivery: Delivery) -> None:
    """Handle one `CHANNEL_DELIVERY`."""
    attempt = await in_scope(delivery.tenant_id, _start, delivery)
    if attempt is None:
        return
    # Asked last, right before the sending: a visitor who is back in the widget reads it there.
    if attempt.follows_widget and attempt.session_id and await is_open(delivery.tenant_id, attempt.session_id):
        await in_scope(delivery.tenant_id, _forgo, delivery, attempt)
        return
    with tracing.span(SpanName.SENDING, kind=attempt.adapter.kind, attempt=attempt.number) as span:
        try:
            sent: Sent | NotSent = await attempt.adapter.send(attempt.place, attempt.message)
        except NotSent as refusal:
            sent = refusal
            span.fail(refusal)
    await in_scope(delivery.tenant_id, _settle, delivery, attempt, sent)


def give_up(message: QueueMessage) -> bool:
    """Mark what the bus could not deliver as failed; False because the channel's page shows it."""
    payload = message.payload or {}
    sent = ChannelMessage.objects.filter(thread_id=UUID(message.subject), direction=Direction.OUT)
    rows = sent.filter(seq=payload.get("seq"), session_id=payload.get("session"))
    rows.exclude(state__in=_OVER).update(state=MessageState.FAILED, problem="not_delivered", changed_at=now())
    return False


def place_of(channel: Channel, thread: ChannelThread | None = None) -> Place:
    """The channel with its opened secrets and, with a thread, its address. Inside the tenant's scope."""
    received = thread.last_received_at if thread else None
    return Place(
        settings=channel.settings,
        secrets=json.loads(vault.unseal(bytes(channel.sealed), belongs_to=seal_place(channel)))
        if channel.sealed
        else {},
        public_id=channel.public_id,
        peer=thread.peer if thread else "",
        # The holder of an address's token may answer in its conversation, so none goes to an unconfirmed one.
        key=thread.key if thread and not thread.confirm_hash else "",
        peer_name=thread.peer_name if thread else "",
        reference=thread.reference if thread else {},
        open_for=(now() - received).total_seconds() if received else None,
    )


def seal_place(channel: Channel) -> str:
    return f"channel:{channel.pk}"


def _start(delivery: Delivery) -> _Attempt | None:
    """Commit the attempt; None for what is over, or needs no sending any more."""
    payload = delivery.message.payload or {}
    thread = (
        ChannelThread.objects.select_related("channel__deployment", "session__deployment")
        .filter(pk=UUID(delivery.message.subject))
        .first()
    )
    if thread is None or thread.opted_out_at or not thread.channel.enabled:
        return None
    adapter = ports.adapter_of(thread.channel.kind)
    if notice := payload.get("notice"):
        if notice == Notice.CONFIRM and not thread.confirm_hash:
            return None
        asked_at = payload["seq"] if notice == Notice.RATING else None
        if asked_at is not None and (thread.session is None or thread.session.seq != asked_at):
            return None
        message = _notice(Notice(notice), thread, payload, once=delivery.message.message_id)
        reference = {} if asked_at is None else {ASKED_AT: asked_at}
        return _Attempt(uuid4(), adapter, place_of(thread.channel, thread), message, number=1, reference=reference)
    entry = ChronicleEntry.objects.filter(session_id=thread.session_id, seq=payload["seq"]).first()
    if entry is None or thread.session is None or payload.get("session") != str(thread.session_id):
        return None  # the thread went on in another conversation meanwhile
    if entry.sender == Sender.VISITOR or entry.kind not in _SENT:
        return None
    moment = now()
    # The unique row is where the attempt is claimed, before anything is sent.
    row, _ = ChannelMessage.objects.select_for_update(no_key=True).get_or_create(
        thread=thread,
        direction=Direction.OUT,
        session_id=thread.session_id,
        seq=entry.seq,
        defaults={
            "channel": thread.channel,
            "state": MessageState.WAITING,
            "created_at": moment,
            "changed_at": moment,
        },
    )
    if row.state in _OVER:
        return None
    is_file = entry.kind == EntryKind.FILE
    safely = adapter.sends_files_twice_safely if is_file else adapter.sends_twice_safely
    # An earlier attempt ended without an answer, so the provider may have sent it: twice would be worse than an error
    # that is shown.
    if row.state == MessageState.SENDING and not safely:
        _end(row, MessageState.FAILED, "outcome_unknown")
        return None
    message_or_none = _outbound(thread.session, entry, thread.channel)
    if message_or_none is None:
        return None
    row.state, row.attempts, row.changed_at = MessageState.SENDING, row.attempts + 1, moment
    row.save(update_fields=["state", "attempts", "changed_at"])
    place = place_of(thread.channel, thread)
    may_read = thread.follows_widget and not _is_here(thread.last_received_at)
    return _Attempt(
        row.pk,
        adapter,
        place,
        message_or_none,
        row.attempts,
        thread.session_id,
        follows_widget=may_read,
    )


def _forgo(delivery: Delivery, attempt: _Attempt) -> None:
    """The visitor reads it in the widget."""
    ChannelMessage.objects.filter(pk=attempt.row_id).delete()
    delivery.finish()


def _settle(delivery: Delivery, attempt: _Attempt, sent: Sent | NotSent) -> None:
    row = ChannelMessage.objects.select_for_update(no_key=True).filter(pk=attempt.row_id).first()
    # Locked and read again: while the provider answered, the person may have written.
    thread = ChannelThread.objects.select_for_update(of=("self",), no_key=True).get(pk=UUID(delivery.message.subject))
    channel = Channel.objects.filter(pk=thread.channel_id)
    reference = {**sent.reference, **(attempt.reference if isinstance(sent, Sent) else {})}
    if reference:
        thread.reference = {**thread.reference, **reference}
        thread.save(update_fields=["reference"])
    if isinstance(sent, Sent):
        if row:
            row.external_id = sent.external_id[:255]
            _end(row, MessageState.SENT, "")
        channel.exclude(problem="").update(problem="", problem_at=None)
        delivery.finish()
        return
    channel.update(problem=sent.code, problem_at=now())
    if sent.opted_out:
        thread.opted_out_at = now()
        thread.save(update_fields=["opted_out_at"])
    if sent.retry_after is None or attempt.number >= MOST_ATTEMPTS:
        if row:
            _end(row, MessageState.FAILED, sent.code)
        delivery.finish()
        return
    if row is None:
        raise sent  # a notice has no row to count in: the bus counts, and gives up
    _end(row, MessageState.WAITING, sent.code)
    wait = max(sent.retry_after, FIRST_WAIT_SECONDS * 2 ** (attempt.number - 1))
    delivery.defer(min(wait, LONGEST_WAIT_SECONDS), sent.code)


def _end(row: ChannelMessage, state: MessageState, problem: str) -> None:
    row.state, row.problem, row.changed_at = state, problem, now()
    row.save(update_fields=["state", "problem", "external_id", "changed_at"])


def _outbound(session: ChatSession, entry: ChronicleEntry, channel: Channel) -> Outbound | None:
    """The entry as a message of a channel; None for one that says nothing there."""
    payload, title = entry.payload, session.deployment.title
    languages = languages_of(session)
    common: dict[str, Any] = {
        "once": f"{entry.session_id}:{entry.seq}",
        "title": title,
        "author": rules.author_name(entry),
        "language": languages[0] if languages else "en",
    }
    with in_language(*languages):
        match entry.kind:
            case EntryKind.DECISION:
                return _question(entry, common)
            case EntryKind.SECURE_INPUT:
                text = gettext(
                    "We need confidential details from you: {label}. Please don't send them here. Open the chat on our"
                    " website to enter them safely."
                )
                return Outbound(text.format(label=payload.get("label", "")), **common)
            case EntryKind.FILE:
                return _file(session, entry, common, channel)
    if not entry.text:
        return None
    cited = payload.get("citations") or []
    sources = tuple(dict.fromkeys((str(each["title"]), str(each["url"])) for each in cited if each.get("url")))
    return Outbound(entry.text, **common, sources=sources)


def _question(entry: ChronicleEntry, common: dict[str, Any]) -> Outbound | None:
    payload = entry.payload
    if "request_id" not in payload or not payload.get("question"):
        return None
    text = "\n\n".join(filter(None, [str(payload["question"]), str(payload.get("rationale", ""))]))
    if fields := payload.get("fields"):
        lines = "\n".join(f"{field['label']}:{_choices(field)}" for field in fields)
        ask = gettext("Please answer with one line for each:")
        return Outbound(f"{text}\n\n{ask}\n\n{lines}" if len(fields) > 1 else text, **common)
    request_id = UUID(payload["request_id"]).hex
    options = tuple(
        OutboundOption(str(option["label"]), f"p:{request_id}:{number}")
        for number, option in enumerate(payload.get("options", ()))
    )
    return Outbound(text, **common, options=options)


def _choices(field: dict[str, Any]) -> str:
    return f" ({' / '.join(field['choices'])})" if field.get("choices") else ""


def _file(session: ChatSession, entry: ChronicleEntry, common: dict[str, Any], channel: Channel) -> Outbound | None:
    try:
        row, content = file_of(session.pk, UUID(entry.payload["file_id"]))
    except (NotFound, KeyError, ValueError):
        return None
    with content:
        mime = mimetypes.guess_type(row.name)[0] or "application/octet-stream"
        if ports.adapter_of(channel.kind).links_files:
            return Outbound(row.name, **common, file=OutboundFile(row.name, b"", mime, file_links.link(channel, row)))
        return Outbound(row.name, **common, file=OutboundFile(row.name, content.read(), mime))


def _link(thread: ChannelThread) -> str:
    """A new link that confirms the thread's address, in place of one that was sent before."""
    secret = secrets.token_urlsafe(32)
    thread.confirm_hash, thread.confirm_until = sha256_hex(secret), now() + CONFIRM_FOR
    thread.save(update_fields=["confirm_hash", "confirm_until"])
    return str(thread.reference.get("origin", "")) + reverse("channel-confirm", args=[secret])


def _notice(notice: Notice, thread: ChannelThread, payload: dict[str, Any], *, once: str) -> Outbound:
    deployment = thread.channel.deployment
    languages = languages_of(thread.session) if thread.session else tuple(deployment.languages)
    language = languages[0] if languages else "en"
    options: Sequence[OutboundOption] = ()
    with in_language(*languages):
        match notice:
            case Notice.CONSENT:
                offers = offers_of(deployment.pk)
                reply = gettext('Reply "yes" to agree, and then send your message again.')
                text = "\n\n".join(filter(None, [offers.consent_text, offers.consent_link, reply]))
                options = (OutboundOption(gettext("I agree"), "consent"),)
            case Notice.AGREED:
                text = gettext("Thank you. How can we help?")
            case Notice.FILES_REFUSED:
                names = ", ".join(payload.get("names", ()))
                text = gettext("We couldn't accept this file: {names}").format(names=names)
            case Notice.CHOICE_OVER:
                text = gettext("This question has already been answered or has expired.")
            case Notice.GREETING:
                text = deployment.greeting or gettext("How can we help?")
            case Notice.ACCOUNT_LINKED:
                text = gettext("This account is linked. Requests that you may approve will appear here.")
            case Notice.CODE_REFUSED:
                text = gettext("This code isn't valid. Create a new one in the console, under Account.")
            case Notice.CONTINUED:
                text = gettext("You can continue your conversation here.")
            case Notice.RATING:
                text = gettext("How was this conversation?")
                options = rating_options(offers_of(deployment.pk).rating)
            case Notice.RATED:
                text = gettext("Thank you for your rating.")
            case Notice.CONFIRM:
                text = gettext("Confirm your address to get our answers by email: {link}").format(link=_link(thread))
            case Notice.CONFIRMED:
                text = gettext("Your address is confirmed. Reply to this email to continue the conversation.")
            case Notice.CONTINUE:
                text = gettext(
                    "Do you want to continue the conversation that you began in the chat of {title} here? If you didn't"
                    " begin one, ignore this message."
                ).format(title=deployment.title)
                options = (OutboundOption(gettext("Continue"), f"c:{payload['secret']}"),)
    return Outbound(text, once=once, title=deployment.title, language=language, options=options)
