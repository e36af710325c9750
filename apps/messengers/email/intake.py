"""Take a mail in: kept as it came, read in the sandbox by a worker without the signing key, applied by the trusted
worker."""

from __future__ import annotations

import base64
from uuid import UUID

from django.utils.crypto import salted_hmac
from pydantic import ValidationError

from apps.bus.deliveries import Delivery
from apps.bus.enums import Kind
from apps.bus.models import QueueMessage
from apps.bus.services import enqueue
from apps.messengers import inbound
from apps.messengers.email.schemas import Mail
from apps.messengers.enums import Direction, MessageState
from apps.messengers.models import Channel, ChannelMessage, ChannelThread, InboundMail, ReadMail
from apps.messengers.ports import Inbound, InboundFile, Receipt
from kernel.clock import now
from kernel.errors import SilasError
from kernel.tenancy import in_scope, in_thread, tenant_scope
from sandbox.readers import Reader, ReaderFailed, run_reader

MOST_FILE_BYTES = 25_000_000
_READER = Reader(
    "apps.messengers.email.reading",
    "read",
    ("apps.messengers.email.reading", "apps.knowledge.parsing", "kernel.stored_texts"),
    seconds=30,
    memory_mb=512,
    most_bytes=45_000_000,
)


def base64_of(data: bytes) -> str:
    return base64.b64encode(data).decode()


async def store(tenant_id: UUID, channel_id: UUID, content: bytes | None, *, uid: int) -> None:
    """Keep a fetched mail and enqueue its reading; one that was too large is noted in the channel's list."""
    if content is None:
        await in_scope(tenant_id, _note_too_large, channel_id, uid)
    else:
        await in_scope(tenant_id, keep, channel_id, content)


def keep(channel_id: UUID, content: bytes) -> None:
    """Inside the tenant's scope."""
    row = InboundMail.objects.create(channel_id=channel_id, content=content, created_at=now())
    enqueue(Kind.MAIL_READ, scope_id=row.pk)


def _note_too_large(channel_id: UUID, uid: int) -> None:
    moment = now()
    ChannelMessage.objects.get_or_create(
        channel_id=channel_id,
        direction=Direction.IN,
        external_id=f"uid:{uid}",
        defaults={
            "state": MessageState.IGNORED,
            "problem": "too_large",
            "created_at": moment,
            "changed_at": moment,
        },
    )


# -- the worker that reads ---------------------------------------------------------------------------------------------


async def read_mail(job: Delivery) -> None:
    """Handler of `mail_read`, on a worker without the signing key."""
    mail_id = UUID(job.message.subject)
    content = await in_scope(job.tenant_id, _content, mail_id)
    if content is None:
        return
    try:
        result = await in_thread(run_reader, _READER, content)
        found, files = Mail.model_validate(result.answer).model_dump_json(), result.blob
    except (ReaderFailed, ValidationError):
        found, files = "", b""
    await job.commit(_hand_over, mail_id, found, files)


def _content(mail_id: UUID) -> bytes | None:
    row = InboundMail.objects.only("content").filter(pk=mail_id).first()
    return bytes(row.content) if row else None


def _hand_over(mail_id: UUID, found: str, files: bytes) -> None:
    # A second delivery of the job inserts nothing.
    ReadMail.objects.bulk_create([ReadMail(mail_id=mail_id, found=found, files=files)], ignore_conflicts=True)
    enqueue(Kind.CHANNEL_INBOUND, scope_id=mail_id, payload={"mail": True})


def unread(message: QueueMessage) -> bool:
    """Have the trusted worker end a mail that could not be read; the owners are told."""
    if _content(UUID(message.subject)) is not None:
        _hand_over(UUID(message.subject), "", b"")
    return False


# -- the trusted worker ------------------------------------------------------------------------------------------------


async def apply(job: Delivery) -> None:
    """Put a mail that was read into its conversation, or say in the channel's list why not."""
    mail_id = UUID(job.message.subject)
    read = await in_scope(job.tenant_id, _read, mail_id)
    if read is None:
        return
    channel_id, found, files = read
    try:
        await in_thread(_apply, job.tenant_id, channel_id, mail_id, found, files)
    except SilasError as refusal:
        await in_scope(job.tenant_id, job.defer, float(refusal.extra.get("retry_after", 5)), refusal.code)
        return
    await job.commit(_delete, mail_id)


def give_up(mail_id: UUID) -> bool:
    """Note a mail that could not be applied, and delete it. Returns False: the owners are told."""
    row = InboundMail.objects.only("channel_id").filter(pk=mail_id).first()
    if row is not None:
        inbound.ignore(row.channel_id, Inbound(f"mail:{mail_id}", "", ""), "not_taken_in")
        _delete(mail_id)
    return False


def _delete(mail_id: UUID) -> None:
    InboundMail.objects.filter(pk=mail_id).delete()


def _read(mail_id: UUID) -> tuple[UUID, str, bytes] | None:
    row = ReadMail.objects.select_related("mail").filter(mail_id=mail_id).first()
    return (row.mail.channel_id, row.found, bytes(row.files)) if row else None


def _apply(tenant_id: UUID, channel_id: UUID, mail_id: UUID, found: str, blob: bytes) -> None:
    try:
        mail = Mail.model_validate_json(found)
    except ValidationError:
        with tenant_scope(tenant_id):
            inbound.ignore(channel_id, Inbound(f"mail:{mail_id}", "", ""), "unreadable")
        return
    if mail.failed:
        receipts = [Receipt(each, MessageState.FAILED, "bounced") for each in mail.failed]
        inbound.note_receipts(tenant_id, channel_id, receipts)
    with tenant_scope(tenant_id):
        channel = Channel.objects.get(pk=channel_id)
        message = _message(channel, mail, mail_id, blob)
        if problem := _problem(channel, mail):
            inbound.ignore(channel_id, message, problem)
            return
    inbound.receive(tenant_id, channel_id, message)


def _problem(channel: Channel, mail: Mail) -> str:
    """Why a mail begins or continues no conversation."""
    address = str(channel.settings["address"]).lower()
    own = {address, *([str(channel.settings["imap_user"]).lower()] if channel.settings["imap_user"] else [])}
    if not mail.sender:
        return "no_sender"
    if mail.loop or mail.sender in own or mail.sender.startswith(f"{address.partition('@')[0]}+"):
        return "own_mail"
    if mail.failed:
        return "bounce"
    if mail.automatic:
        return "automatic"
    trusted = str(channel.settings.get("trusted_server", "")).lower()
    if trusted and mail.results and mail.results[0].server == trusted and mail.results[0].dmarc == "fail":
        return "forged_sender"
    return ""


def _message(channel: Channel, mail: Mail, mail_id: UUID, blob: bytes) -> Inbound:
    message_id = mail.message_id or f"mail:{mail_id}"
    files, start = [], 0
    for file in mail.files:
        content, start = blob[start : start + file.size], start + file.size
        if len(content) <= MOST_FILE_BYTES:
            files.append(InboundFile(file.name, content))
    last = "" if mail.message_id.startswith("sha256:") else mail.message_id
    reference: dict[str, object] = {"last": last, "subject": _subject(mail.subject)}
    results = mail.results[0] if mail.results else None
    checked = results is not None and results.server == str(channel.settings.get("trusted_server", "")).lower()
    if results is not None and checked:
        reference["results"] = results.model_dump(exclude={"server"})
    token = _token(channel, mail)
    return Inbound(
        external_id=message_id,
        key=token or _referred(channel, mail) or new_key(channel, message_id),
        peer=mail.sender,
        name=mail.name,
        text=mail.text or ("" if mail.files else mail.subject),
        files=files,
        reference=reference,
        # A sender with the token got a mail of this thread; one whose domain vouches for it is not forged.
        is_peer=bool(token) or (results is not None and checked and results.dmarc == "pass"),
    )


def new_key(channel: Channel, about: str) -> str:
    """The token of a new thread: it cannot be guessed, and the same mail delivered again has the same."""
    return salted_hmac("apps.messengers.email.thread", f"{channel.pk}:{about}", algorithm="sha256").hexdigest()[:24]


def _token(channel: Channel, mail: Mail) -> str:
    """The token of the thread in one of our addresses to which the mail was sent, or ""."""
    local, _, domain = str(channel.settings["address"]).lower().rpartition("@")
    tokens = [
        name.removeprefix(f"{local}+")
        for name, _, host in (address.rpartition("@") for address in mail.recipients)
        if host == domain and name.startswith(f"{local}+")
    ]
    # The token alone is not enough: anyone to whom the mail was forwarded knows it.
    rows = ChannelThread.objects.filter(channel=channel, key__in=tokens, peer__iexact=mail.sender, confirm_hash="")
    return rows.values_list("key", flat=True).first() or ""


def _referred(channel: Channel, mail: Mail) -> str:
    """The thread of a mail that this one refers to, or ""."""
    known = (
        ChannelMessage.objects.filter(channel=channel, external_id__in=mail.references)
        .exclude(thread=None)
        .filter(thread__confirm_hash="")
    )
    row = known.select_related("thread").first()
    return row.thread.key if row and row.thread else ""


def _subject(subject: str) -> str:
    """Without the marks of answers and forwards."""
    while (rest := subject.partition(":"))[1] and rest[0].strip().casefold() in (
        "re",
        "aw",
        "fw",
        "fwd",
        "wg",
        "sv",
        "tr",
    ):
        subject = rest[2].strip()
    return subject
