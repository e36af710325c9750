"""Let a visitor of the widget go on elsewhere: by e-mail, once they confirmed their address, or by a link that opens a
messenger.

Nothing is sent to an address but the link before it was confirmed. A confirmed address proves itself and nothing else.
"""

from __future__ import annotations

import secrets
from uuid import UUID

from django.db.models import QuerySet
from django.utils.crypto import get_random_string

from apps.access.tokens import hash_resume_token
from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.contacts import rules as contact_rules
from apps.contacts.enums import IdentityKind, Proof
from apps.contacts.services import add_proved, identify
from apps.messengers.delivery import CONFIRM_FOR, Notice, enqueue_notice
from apps.messengers.enums import ChannelKind
from apps.messengers.models import Channel, ChannelThread
from apps.messengers.ports import adapter_of
from apps.sessions import levels
from apps.sessions.locks import lock_session
from apps.tenants.addresses import is_email
from kernel.canonical import sha256_hex
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import NotFound, SilasError
from kernel.language import gettext
from kernel.tenancy import lookup_scope, tenant_scope

CONTINUE_CHOICE = "c:"


def can_follow(deployment_id: UUID) -> bool:
    """Whether the deployment has a mailbox to answer from."""
    return _mailboxes(deployment_id).exists()


def offered(deployment_id: UUID) -> dict[str, object]:
    """What the widget is told of ways to go on elsewhere. Inside the tenant's scope."""
    names = {row.kind: str(ChannelKind(row.kind).label) for row in _linked(deployment_id)}
    places = [{"channel": kind, "name": name} for kind, name in names.items()]
    return {"email_answers": can_follow(deployment_id), "continue_in": places}


def ask_to_follow(session_id: UUID, *, address: str, origin: str) -> None:
    """Send a link that confirms the address; asked for again, the newest link counts. Inside the tenant's scope. Raises
    400 `invalid_email`; `NotFound` where the deployment has no mailbox."""
    address = address.strip().lower()
    if not is_email(address):
        raise SilasError(ErrorCode.INVALID_EMAIL, gettext("Please enter a valid email address."))
    session = lock_session(session_id)
    channel = _mailboxes(session.deployment_id).first()
    if channel is None:
        raise NotFound()
    known = ChannelThread.objects.filter(channel=channel, session=session, follows_widget=True)
    if known.filter(peer=address, confirm_hash="").exists():
        return
    # A link that was sent to another address before must not confirm that one now.
    known.exclude(confirm_hash="").delete()
    thread: ChannelThread = ChannelThread.objects.create(
        channel=channel,
        session=session,
        key=get_random_string(24, "abcdefghijklmnopqrstuvwxyz0123456789"),
        peer=address,
        follows_widget=True,
        # A hash of an unknown value, until the job that sends the link makes one.
        confirm_hash=sha256_hex(secrets.token_urlsafe(32)),
        reference={"origin": origin},
        created_at=now(),
    )
    enqueue_notice(thread, Notice.CONFIRM)


def continue_link(session_id: UUID, kind: str) -> str:
    """An address that continues this conversation in a channel. It is given to the visitor alone. Inside the
    tenant's scope. Raises `NotFound` where the deployment has no such channel."""
    session = lock_session(session_id)
    channel = next((each for each in _linked(session.deployment_id) if each.kind == kind), None)
    if channel is None:
        raise NotFound()
    secret = secrets.token_urlsafe(32)
    ChannelThread.objects.filter(channel=channel, session=session).exclude(confirm_hash="").delete()
    ChannelThread.objects.create(
        channel=channel,
        session=session,
        key=f"link:{sha256_hex(secret)}",
        peer="",
        follows_widget=True,
        confirm_hash=sha256_hex(secret),
        confirm_until=now() + CONFIRM_FOR,
        created_at=now(),
    )
    return adapter_of(channel.kind).link(channel.settings, secret)


def is_waiting(channel: Channel, secret: str) -> bool:
    """Whether this is the secret of a link that still works. Inside the tenant's scope."""
    return _waiting(channel, secret).exists()


def claim(channel: Channel, thread: ChannelThread, secret: str) -> bool:
    """Put the thread of a person who followed a link and agreed into the conversation of the link; False for an
    unknown, used or expired link. Inside the tenant's scope; `thread` is locked.

    The person who made the link may not be the one who followed it: a raised level ends, and the widget that made it
    cannot resume the conversation.
    """
    # Locked, so that a link which two people follow at once moves the conversation once.
    pending = _waiting(channel, secret).select_for_update(no_key=True).first()
    if pending is None or pending.session_id is None:
        return False
    session = lock_session(pending.session_id)
    pending.delete()
    levels.end(session)
    session.channel, session.resume_hash = channel.kind, hash_resume_token(secrets.token_urlsafe(32))
    session.save(update_fields=["channel", "resume_hash"])
    thread.session, thread.follows_widget, thread.opted_out_at = session, True, None
    thread.last_received_at = now()
    thread.save(update_fields=["session", "follows_widget", "opted_out_at", "last_received_at"])
    record(AuditEvent.CHANNEL_CONFIRMED, actor="visitor", subject=f"session:{session.pk}")
    return True


def _waiting(channel: Channel, secret: str) -> QuerySet[ChannelThread]:
    hashed = sha256_hex(secret)
    return ChannelThread.objects.filter(channel=channel, confirm_hash=hashed, confirm_until__gt=now())


def waiting_confirmation(secret: str) -> ChannelThread | None:
    """The thread whose address this link confirms; None for an unknown, used or expired one. Opens its own scopes."""
    with lookup_scope(sha256_hex(secret)):
        thread: ChannelThread | None = ChannelThread.objects.filter(
            confirm_hash=sha256_hex(secret), confirm_until__gt=now()
        ).first()
        return thread


def confirm(secret: str) -> bool:
    """Confirm the address; False for an unknown, used or expired link. Opens its own scopes."""
    found = waiting_confirmation(secret)
    if found is None or found.session_id is None:
        return False
    with tenant_scope(found.tenant_id):
        # By the hash that was looked up: of two presses at once only one confirms.
        claimed = ChannelThread.objects.filter(pk=found.pk, confirm_hash=sha256_hex(secret), confirm_until__gt=now())
        if not claimed.update(confirm_hash="", confirm_until=None, proved_by=Proof.LINK):
            return False
        session = lock_session(found.session_id)
        older = ChannelThread.objects.filter(session=session, follows_widget=True).exclude(pk=found.pk)
        older.update(opted_out_at=now())
        session.channel = ChannelKind.EMAIL
        session.save(update_fields=["channel"])
        enqueue_notice(found, Notice.CONFIRMED)
        if email := contact_rules.plain_email(found.peer):
            if session.customer:
                whose = identify(IdentityKind.CUSTOMER, session.customer, proved_by=Proof.GATE)
                add_proved(whose, IdentityKind.EMAIL, email, Proof.LINK)
            else:
                identify(IdentityKind.EMAIL, email, proved_by=Proof.LINK)
        record(AuditEvent.CHANNEL_CONFIRMED, actor="visitor", subject=f"session:{session.pk}")
    return True


def _linked(deployment_id: UUID) -> list[Channel]:
    rows = Channel.objects.filter(deployment_id=deployment_id, enabled=True).order_by("created_at")
    return [row for row in rows if adapter_of(row.kind).link(row.settings, "x")]


def _mailboxes(deployment_id: UUID) -> QuerySet[Channel]:
    rows = Channel.objects.filter(deployment_id=deployment_id, kind=ChannelKind.EMAIL, enabled=True)
    return rows.order_by("created_at")
