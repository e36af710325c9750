"""The one way in from every channel: a person's message becomes a visitor's message in a conversation.

A message is stored once, however often the provider delivers it, and only a thread's own address continues it. It
passes the same limits, gates and guard as one from the widget. What a channel says of a person is kept with their
contact and raises no level: identity gates do that, in the conversation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction

from apps.access import tokens
from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.bus.enums import Kind
from apps.bus.services import enqueue
from apps.contacts.services import identify
from apps.messengers import following, ports
from apps.messengers.cards.accounts import is_code, link
from apps.messengers.delivery import Notice, enqueue_notice
from apps.messengers.enums import Direction, MessageState
from apps.messengers.models import Channel, ChannelMessage, ChannelThread
from apps.messengers.ports import Inbound, InboundFile, Receipt
from apps.messengers.ratings import ASKED_AT, score_of
from apps.sessions import levels
from apps.sessions.locks import lock_session
from apps.sessions.models import ChatSession
from apps.sessions.ratelimit.limits import bounds
from apps.sessions.schemas import MAX_TEXT, Busy
from apps.sessions.services import accept_message, start_session
from apps.tenants.models import Deployment
from apps.visitors import consent, files, prompts
from apps.visitors.enums import AskKind, AskStatus
from apps.visitors.models import VisitorCard
from apps.visitors.offers import offers_of
from apps.visitors.prompt_forms import fields_of
from apps.visitors.ratings import rate
from kernel.canonical import sha256_hex
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import NotFound, SilasError
from kernel.language import gettext, gettext_lazy
from kernel.ratelimit import fixed_window
from kernel.ratelimit.fixed_window import Limit
from kernel.tenancy import tenant_scope
from kernel.unicode_safety import replace_unstorable

MINUTE = 60
# What one sender may send in an hour, in times of what they may in a minute; no person writes more.
FLOOD_FACTOR = 10
AGREE = ("yes", "ja", "sí", "si", "oui", "agree", "ok")
CONSENT_CHOICE = "consent"
_CHOICE = re.compile(r"p:([0-9a-f]{32}):([0-9]{1,2})")
_NUMBER = re.compile(r"\s*([0-9]{1,2})[.)]?\s*")
SHORTENED = gettext_lazy("[The message was longer and has been shortened.]")


@dataclass(frozen=True)
class Outcome:
    """`session_id` and `seq` of a message that was stored; `problem` of one that was not (`ChannelMessage.problem`)."""

    session_id: UUID | None = None
    seq: int | None = None
    problem: str = ""
    repeated: bool = False


def receive(tenant_id: UUID, channel_id: UUID, message: Inbound) -> Outcome:
    """Take a message in. Opens its own scopes.

    Raises `SilasError("rate_limited")` with `retry_after`, with nothing stored, where the conversation or the company
    has too many messages waiting: the provider delivers it again.
    """
    message = _plain(message)
    with tenant_scope(tenant_id):
        # Before the limits are counted: a repetition is no further message.
        if known := _known(channel_id, message):
            return known
    if _is_flood(tenant_id, channel_id, message):
        with tenant_scope(tenant_id):
            return ignore(channel_id, message, "rate_limited")
    with tenant_scope(tenant_id):
        outcome, thread = _place(channel_id, message)
    if outcome is not None:
        return outcome
    assert thread is not None and thread.session_id is not None
    refused = _keep_files(tenant_id, thread.session_id, message)
    with tenant_scope(tenant_id):
        return _store(channel_id, thread.pk, message, refused=refused)


def hold(tenant_id: UUID, channel_id: UUID, message: Inbound) -> None:
    """Keep a message whose files have yet to be fetched, and enqueue the rest. Opens its own scope."""
    message = _plain(message)
    with tenant_scope(tenant_id):
        row, is_new = _row(channel_id, message, MessageState.WAITING)
        if is_new:
            row.held = held_of(message)
            row.save(update_fields=["held"])
            enqueue(Kind.CHANNEL_INBOUND, scope_id=row.pk)


def note_receipts(tenant_id: UUID, channel_id: UUID, receipts: list[Receipt]) -> None:
    """Keep what the provider says of sent messages; a state never goes back. Opens its own scope."""
    order = [MessageState.SENDING, MessageState.SENT, MessageState.DELIVERED, MessageState.READ]
    with tenant_scope(tenant_id):
        sent = ChannelMessage.objects.filter(channel_id=channel_id, direction=Direction.OUT)
        recently = now() - timedelta(minutes=1)
        for receipt in receipts:
            rows = sent.filter(external_id=receipt.external_id)
            # The provider can report a message before our own answer with its id is committed.
            if not rows.exists() and sent.filter(state=MessageState.SENDING, changed_at__gt=recently).exists():
                # It may be of a message whose id is being stored right now.
                said = gettext("Too many requests. Please wait a moment.")
                raise SilasError(ErrorCode.RATE_LIMITED, said, extra={"retry_after": 2})
            if receipt.state == MessageState.FAILED:
                failed = rows.filter(state__in=order[:2])
                failed.update(state=MessageState.FAILED, problem=receipt.problem[:60], changed_at=now())
            elif receipt.state in order:
                # Receipts arrive in any order: one that is late must not take a state back.
                earlier = order[: order.index(receipt.state)]
                rows.filter(state__in=earlier).update(state=receipt.state, changed_at=now())


def held_of(message: Inbound) -> dict[str, object]:
    """A message without its files' bytes, as JSON."""
    names = ("external_id", "key", "peer", "text", "name", "sender", "language", "choice")
    told: dict[str, object] = {name: getattr(message, name) for name in names}
    return told | {
        "reference": dict(message.reference),
        "files": [{"name": file.name, "ref": file.ref} for file in message.files],
    }


def unheld(held: Mapping[str, Any]) -> Inbound:
    listed = tuple(InboundFile(file["name"], ref=file["ref"]) for file in held["files"])
    return Inbound(**{**held, "files": listed})


def _plain(message: Inbound) -> Inbound:
    """Without what cannot be stored, and no longer than a message may be."""
    text = replace_unstorable(message.text).strip()
    if len(text) > MAX_TEXT:
        text = f"{text[: MAX_TEXT - 80].rstrip()}\n\n{SHORTENED}"
    return replace(
        message,
        text=text,
        name=" ".join(replace_unstorable(message.name).split())[:120],
        external_id=message.external_id[:255],
        key=message.key[:200],
        peer=message.peer[:254],
    )


def _is_flood(tenant_id: UUID, channel_id: UUID, message: Inbound) -> bool:
    """Count it for its sender and for the channel. Whether the sender sent more within an hour than a person writes;
    nothing is refused while nothing can be counted. Raises `SilasError("rate_limited")` for what may come later."""
    most = settings.CHANNEL_LIMITS
    whose = f"channel:{tenant_id}:{channel_id}:{sha256_hex(message.sender or message.peer)[:32]}"
    # More than any person writes is dropped for good; what is only too fast is refused and comes again.
    hour = Limit(f"{whose}:hour", most["sender_messages_a_minute"] * FLOOD_FACTOR, 60 * MINUTE)
    if isinstance(fixed_window.try_consume([hour], otherwise="channel_message_not_counted"), Limit):
        return True
    limits = [
        Limit(whose, most["sender_messages_a_minute"], MINUTE),
        Limit(f"channel:{tenant_id}:{channel_id}", most["messages_a_minute"], MINUTE),
    ]
    if isinstance(fixed_window.try_consume(limits, otherwise="channel_message_not_counted"), Limit):
        said = gettext("Too many requests. Please wait a moment.")
        raise SilasError(ErrorCode.RATE_LIMITED, said, extra={"retry_after": MINUTE})
    return False


def _known(channel_id: UUID, message: Inbound) -> Outcome | None:
    """What became of a message that was delivered before; None for a new one and for one that waits for its files."""
    rows = ChannelMessage.objects.filter(
        channel_id=channel_id, direction=Direction.IN, external_id=message.external_id
    ).exclude(state=MessageState.WAITING)
    row = rows.select_related("thread").first()
    if row is None:
        return None
    return Outcome(row.thread.session_id if row.thread else None, row.seq, row.problem, repeated=True)


def _row(channel_id: UUID, message: Inbound, state: MessageState) -> tuple[ChannelMessage, bool]:
    """The message's row, and whether it is new; of two deliveries at once the second waits for the first."""
    moment = now()
    defaults = {"state": state, "created_at": moment, "changed_at": moment}
    row, is_new = ChannelMessage.objects.get_or_create(
        channel_id=channel_id, direction=Direction.IN, external_id=message.external_id, defaults=defaults
    )
    return row, is_new


def ignore(channel_id: UUID, message: Inbound, problem: str, thread: ChannelThread | None = None) -> Outcome:
    """Note that a message goes into no conversation, and why. Inside the tenant's scope."""
    row, _ = _row(channel_id, message, MessageState.IGNORED)
    row.state, row.problem, row.thread, row.held = MessageState.IGNORED, problem, thread, None
    row.changed_at = now()
    row.save(update_fields=["state", "problem", "thread", "held", "changed_at"])
    return Outcome(problem=problem)


def _place(channel_id: UUID, message: Inbound) -> tuple[Outcome | None, ChannelThread | None]:
    """The message's thread with its conversation, or what became of a message that goes into none."""
    channel = Channel.objects.select_related("deployment").get(pk=channel_id)
    if known := _known(channel_id, message):
        return known, None
    if not (channel.enabled and channel.deployment.enabled):
        return ignore(channel_id, message, "channel_off"), None
    adapter = ports.adapter_of(channel.kind)
    thread = _thread(channel, message)
    if message.continues and following.is_waiting(channel, message.continues):
        enqueue_notice(thread, Notice.CONTINUE, secret=message.continues)
        return ignore(channel_id, message, "asked_to_continue", thread), None
    if message.choice.startswith(following.CONTINUE_CHOICE):
        moved = following.claim(channel, thread, message.choice.removeprefix(following.CONTINUE_CHOICE))
        enqueue_notice(thread, Notice.CONTINUED if moved else Notice.CHOICE_OVER)
        return ignore(channel_id, message, "continued" if moved else "choice_over", thread), None
    thread.last_received_at = now()
    thread.save(update_fields=["last_received_at"])
    if (word := message.text.strip().casefold()) in adapter.opt_out_words:
        thread.opted_out_at = now()
        thread.save(update_fields=["opted_out_at"])
        record(AuditEvent.CHANNEL_OPTED_OUT, actor="visitor", subject=f"channel:{channel.pk}")
        return ignore(channel_id, message, "opted_out", thread), None
    if word in adapter.opt_in_words:
        thread.opted_out_at = None
        thread.save(update_fields=["opted_out_at"])
        if adapter.greets:
            enqueue_notice(thread, Notice.GREETING)
        return ignore(channel_id, message, "opted_in", thread), None
    if not (message.text or message.choice or message.files):
        return ignore(channel_id, message, "empty", thread), None
    if is_code(message.text):
        linked = link(channel, message)
        enqueue_notice(thread, Notice.ACCOUNT_LINKED if linked else Notice.CODE_REFUSED)
        return ignore(channel_id, message, "account_linked" if linked else "code_refused", thread), None
    if (score := score_of(thread, message)) is not None:
        return ignore(channel_id, message, _rate(thread, score), thread), None
    if (problem := _begin(channel, thread, message)) is not None:
        return ignore(channel_id, message, problem, thread), None
    if not message.is_peer and thread.session is not None:
        # A person who writes from an address that is merely claimed must not act with what its owner has verified.
        levels.end(lock_session(thread.session.pk))
    _describe(channel, thread, message, adapter)
    return None, thread


def _rate(thread: ChannelThread, score: int) -> str:
    """Keep the score. Returns what is noted of the message."""
    try:
        with transaction.atomic():
            if thread.session_id is None:
                raise NotFound()
            rate(thread.session_id, score=score)
    except SilasError:
        enqueue_notice(thread, Notice.CHOICE_OVER)
        return "choice_over"
    thread.reference.pop(ASKED_AT, None)
    thread.save(update_fields=["reference"])
    enqueue_notice(thread, Notice.RATED)
    return "rated"


def _thread(channel: Channel, message: Inbound) -> ChannelThread:
    """The thread of the message, locked. One that belongs to another address is not continued: a new one begins."""
    thread = _locked(channel, message.key)
    # The key of a thread may be known to others, such as everyone whom a mail was sent to.
    if thread is not None and thread.peer.casefold() != message.peer.casefold():
        thread = _locked(channel, f"{message.key[:180]}-{sha256_hex(message.peer.casefold())[:16]}")
        message = replace(message, key=f"{message.key[:180]}-{sha256_hex(message.peer.casefold())[:16]}")
    if thread is None:
        fields = {"peer": message.peer, "peer_name": message.name, "created_at": now()}
        ChannelThread.objects.get_or_create(channel=channel, key=message.key, defaults=fields)
        thread = _locked(channel, message.key)
    assert thread is not None
    return thread


def _locked(channel: Channel, key: str) -> ChannelThread | None:
    rows = ChannelThread.objects.select_for_update(of=("self",), no_key=True).select_related("session")
    thread: ChannelThread | None = rows.filter(channel=channel, key=key, confirm_hash="").first()
    return thread


def _begin(channel: Channel, thread: ChannelThread, message: Inbound) -> str | None:
    """See that the thread has a conversation with room, and the consent that the chatbot asks for. Returns why the
    message goes no further: it is kept nowhere before the consent, and an agreement is no message."""
    offers, session = offers_of(channel.deployment_id), thread.session
    wanted = offers.consent_version
    missing = bool(wanted) and not (session and consent.has_given(session.pk, wanted))
    if missing and not _agrees(message):
        enqueue_notice(thread, Notice.CONSENT)
        return "consent_asked"
    if session is None or session.seq >= settings.MAX_CHRONICLE:
        thread.session = session = _start(channel.deployment, channel.kind, message.language)
        thread.save(update_fields=["session"])
    consent.give(session.pk, offers, given=wanted)
    if not missing:
        return None
    enqueue_notice(thread, Notice.AGREED)
    return "consent_given"


def _agrees(message: Inbound) -> bool:
    return message.choice == CONSENT_CHOICE or message.text.strip(" .!\n").casefold() in AGREE


def _start(deployment: Deployment, kind: str, locale: str) -> ChatSession:
    started = start_session(deployment, locale=locale)
    session: ChatSession = ChatSession.objects.get(pk=started.session_id)
    session.channel = kind
    session.save(update_fields=["channel"])
    return session


def _describe(channel: Channel, thread: ChannelThread, message: Inbound, adapter: ports.Adapter) -> None:
    thread.peer_name = message.name or thread.peer_name
    thread.reference = {**thread.reference, **message.reference}
    if adapter.proof and message.sender:
        thread.proved_by = adapter.proof
        identify(adapter.identity or adapter.kind, message.sender, proved_by=adapter.proof, name=message.name)
    thread.save(update_fields=["peer_name", "reference", "proved_by"])


def _keep_files(tenant_id: UUID, session_id: UUID, message: Inbound) -> list[str]:
    """Keep the files as if the widget had sent them; the names of those that were refused."""
    refused = []
    for number, file in enumerate(message.files):
        try:
            files.keep(
                tenant_id,
                session_id,
                name=file.name,
                chunks=[file.content],
                client_id=f"ch-{sha256_hex(f'{message.external_id}:{number}')[:40]}",
            )
        except SilasError as refusal:
            if refusal.status == 503:
                raise
            refused.append(" ".join(replace_unstorable(file.name).split())[:60])
    return refused


def _store(channel_id: UUID, thread_id: UUID, message: Inbound, *, refused: list[str]) -> Outcome:
    row, is_new = _row(channel_id, message, MessageState.RECEIVED)
    if not is_new and (known := _known(channel_id, message)):
        return known  # another delivery of the same message was faster
    thread = ChannelThread.objects.select_for_update(of=("self",), no_key=True).get(pk=thread_id)
    assert thread.session_id is not None
    seq, problem = None, "files_refused" if refused else ""
    if refused:
        enqueue_notice(thread, Notice.FILES_REFUSED, names=refused)
    if (answered := _answer(thread, message)) is not None:
        seq = answered
    elif message.choice:
        problem = "choice_over"
        enqueue_notice(thread, Notice.CHOICE_OVER)
    elif message.text:
        accepted = accept_message(
            thread.session_id,
            text=message.text,
            client_id=f"ch-{sha256_hex(message.external_id)[:40]}",
            bounds=bounds(),
        )
        if isinstance(accepted, Busy):
            extra = {"retry_after": accepted.retry_after}
            raise SilasError(ErrorCode.RATE_LIMITED, accepted.said, extra=extra)
        seq = accepted.seq
    row.thread, row.state, row.seq, row.problem, row.held = thread, MessageState.RECEIVED, seq, problem, None
    row.changed_at = now()
    row.save(update_fields=["thread", "state", "seq", "problem", "held", "changed_at"])
    return Outcome(thread.session_id, seq, problem)


def _answer(thread: ChannelThread, message: Inbound) -> int | None:
    """Record a pressed or typed answer to an open question; None for what is a message of its own."""
    assert thread.session_id is not None
    deployment = Deployment.objects.get(pk=thread.channel.deployment_id)
    visitor = tokens.Visitor(deployment.public_key, deployment.tenant_id, thread.session_id)
    waiting = VisitorCard.objects.filter(session_id=thread.session_id, status=AskStatus.OPEN, expires_at__gt=now())
    try:
        with transaction.atomic():
            if pressed := _CHOICE.fullmatch(message.choice):
                card = waiting.filter(pk=UUID(pressed[1]), kind=AskKind.DECISION).first()
                value = _option(card, int(pressed[2])) if card else ""
                return prompts.answer(visitor, UUID(pressed[1]), value=value).seq if value else None
            open_cards = list(waiting.exclude(kind=AskKind.SECURE_INPUT)[:2])
            if message.choice or len(open_cards) != 1:
                return None
            (card,) = open_cards
            if card.kind == AskKind.FORM:
                return prompts.fill(visitor, card.pk, _filled(card, message.text)).seq
            value = _typed(card, message.text)
            return prompts.answer(visitor, card.pk, value=value).seq if value else None
    except SilasError:
        return None


def _option(card: VisitorCard, number: int) -> str:
    options = card.payload["options"]
    return str(options[number]["value"]) if number < len(options) else ""


def _typed(card: VisitorCard, text: str) -> str:
    """The value of the option whose number or label was typed."""
    if numbered := _NUMBER.fullmatch(text):
        return _option(card, int(numbered[1]) - 1) if int(numbered[1]) > 0 else ""
    labels = {str(option["label"]).casefold(): str(option["value"]) for option in card.payload["options"]}
    return labels.get(text.strip().casefold(), "")


def _filled(card: VisitorCard, text: str) -> dict[str, str]:
    """The answers of a form from lines of `label: value`, or the whole text for a form with one field."""
    fields = fields_of(card.payload)
    if len(fields) == 1 and ":" not in text:
        return {fields[0].name: text}
    names = {field.label.casefold(): field.name for field in fields}
    pairs = (line.partition(":") for line in text.splitlines())
    return {names[key]: value.strip() for label, _, value in pairs if (key := label.strip().casefold()) in names}
