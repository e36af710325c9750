"""Account e-mails: written as rows in the caller's transaction, sent later by a worker with the signing key.

The caller gets the same answer in the same time whether or not the account exists: the recipient is looked up when the
e-mail is sent. Failed deliveries are retried for most of a day with growing delays; after that the row stays in the
administration's list and in the log.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.conf import settings
from django.core.mail import EmailMultiAlternatives
from django.db import transaction
from django.template.loader import render_to_string
from django.utils.functional import Promise
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from apps.audit.enums import AuditEvent
from apps.tenants import invitations, resets
from apps.tenants.enums import EmailKind, EmailState, Role
from apps.tenants.members import record_in_all_tenants
from apps.tenants.models import Invitation, Letter, Tenant, User
from apps.tenants.signals import email_enqueued
from kernel.clock import now
from kernel.language import in_language
from kernel.tenancy import in_scope, in_thread, tenant_scope

if TYPE_CHECKING:
    from apps.bus.deliveries import Delivery
    from apps.bus.models import QueueMessage

_log = logging.getLogger(__name__)
MOST_ATTEMPTS = 12
_FIRST_WAIT_SECONDS = 30
_KEPT = timedelta(days=30)
_SMTP = "django.core.mail.backends.smtp.EmailBackend"


@dataclass(frozen=True)
class EmailContent:
    """Subject of an e-mail, the context of its templates `tenants/emails/<kind>.{txt,html}`, and the language of its
    reader."""

    subject: str | Promise
    context: Mapping[str, Any]
    language: str


def can_send() -> bool:
    """Whether a mail server is configured. Without one, links are shown to the member who created them."""
    return settings.EMAIL_BACKEND != _SMTP or bool(settings.EMAIL_HOST)


def enqueue(
    kind: EmailKind, address: str, *, origin: str, company_id: UUID | None = None, invitation_id: UUID | None = None
) -> Letter:
    """Queue an e-mail, to be sent once the transaction has committed."""
    with transaction.atomic():
        letter = Letter.objects.create(
            kind=kind,
            address=address[:254],
            origin=origin,
            company_id=company_id,
            invitation_id=invitation_id,
            created_at=now(),
        )
        email_enqueued(letter)
    return letter


def send_invitation(invitation: Invitation, *, origin: str) -> str:
    """Email the invitation. Without a mail server the link is returned instead, which is known only here."""
    if not can_send():
        link = invitations.new_link(invitation.pk)
        return origin + link.path if link else ""
    tenant_id = invitation.tenant_id
    enqueue(EmailKind.INVITATION, invitation.email, origin=origin, company_id=tenant_id, invitation_id=invitation.pk)
    return ""


async def send(delivery: Delivery) -> None:
    """Handle one `ACCOUNT_MAIL`. Each e-mail has its own scope on the bus, so none waits for another."""
    started = await in_thread(_start_attempt, UUID(delivery.message.subject))
    if started is None:
        return
    letter, content = started
    state, code = EmailState.SENT, ""
    if content is None:
        state = EmailState.DROPPED
    elif not can_send():
        state, code = EmailState.FAILED, "no_mail_server"
    else:
        try:
            await asyncio.to_thread(_deliver, letter, content)
        except Exception as error:  # noqa: BLE001 (a mail server refuses in many ways)
            code = type(error).__name__
            state = EmailState.FAILED if letter.attempts >= MOST_ATTEMPTS else EmailState.WAITING
    await in_scope(delivery.tenant_id, _settle, delivery, letter, state, code)


def mark_failed(message: QueueMessage) -> bool:
    """Record that the bus gave up on an e-mail; returns False because no alert is raised."""
    _end(UUID(message.subject), EmailState.FAILED, message.reason)
    return False


def latest_by_invitation(invitation_ids: list[UUID]) -> dict[UUID, Letter]:
    """The newest e-mail for each of these invitations."""
    rows = Letter.objects.filter(invitation_id__in=invitation_ids).order_by("created_at")
    return {row.invitation_id: row for row in rows if row.invitation_id}


def delete_old() -> bool:
    """Delete e-mails that ended a month ago; returns False because nothing is left to delete."""
    Letter.objects.filter(ended_at__lt=now() - _KEPT).delete()
    return False


def _start_attempt(letter_id: UUID) -> tuple[Letter, EmailContent | None] | None:
    """Count the attempt and compose the e-mail; the content is None if there is no recipient any more. Outside any
    scope, because an e-mail may concern several companies."""
    with transaction.atomic():
        # The attempt is counted before the server is asked: a process that dies in between must not send for ever.
        letter = Letter.objects.select_for_update(no_key=True).filter(pk=letter_id, state=EmailState.WAITING).first()
        if letter is None:
            return None
        letter.attempts += 1
        letter.save(update_fields=["attempts"])
        return letter, _COMPOSE[EmailKind(letter.kind)](letter)


def _deliver(letter: Letter, content: EmailContent) -> None:
    with in_language(content.language):
        # A line break in a subject would begin another header (header injection).
        subject = " ".join(str(content.subject).split())
        context = {**content.context, "subject": subject, "origin": letter.origin, "address": letter.address}
        text, html = (render_to_string(f"tenants/emails/{letter.kind}.{form}", context) for form in ("txt", "html"))
    message = EmailMultiAlternatives(subject, text, None, [letter.address])
    message.attach_alternative(html, "text/html")
    message.send()


def _settle(delivery: Delivery, letter: Letter, state: EmailState, code: str) -> None:
    if state != EmailState.WAITING:
        _end(letter.pk, state, code)
        delivery.finish()
        return
    _log.warning("letter_not_sent", extra={"letter": str(letter.pk), "code": code, "attempt": letter.attempts})
    Letter.objects.filter(pk=letter.pk).update(error_code=code[:60])
    delivery.defer(_FIRST_WAIT_SECONDS * 2 ** (letter.attempts - 1), code)


def _end(letter_id: UUID, state: EmailState, code: str) -> None:
    if state == EmailState.FAILED:
        # The id alone: an address is personal data and has no place in a log.
        _log.error("letter_given_up", extra={"letter": str(letter_id), "code": code})
    waiting = Letter.objects.filter(pk=letter_id, state=EmailState.WAITING)
    waiting.update(state=state, error_code=code[:60], ended_at=now())


def _reset(letter: Letter) -> EmailContent | None:
    user = _person(letter.address)
    if user is None or not user.has_usable_password() or now() - letter.created_at > resets.GOOD_FOR:
        return None
    return EmailContent(_("Reset your password"), {"link": letter.origin + resets.path_of(user)}, user.language)


def _locked(letter: Letter) -> EmailContent | None:
    """Audit the lock-out for the user's companies here: the login view answers alike for unknown addresses."""
    user = _person(letter.address)
    if user is None:
        return None
    # Once a letter, however often its sending is tried.
    if letter.attempts == 1:
        record_in_all_tenants(user, AuditEvent.LOGIN_LOCKED)
    return EmailContent(_("Failed attempts to log in to your account"), {}, user.language)


def _invitation(letter: Letter) -> EmailContent | None:
    assert letter.company_id and letter.invitation_id
    company = Tenant.objects.get(pk=letter.company_id)
    with tenant_scope(company):
        link = invitations.new_link(letter.invitation_id)
    if link is None:
        return None
    invitation, user = link.invitation, _person(letter.address)
    context = {"company": company.name, "link": letter.origin + link.path, "role": Role(invitation.role).label}
    # Who has no account here yet most likely speaks the language of the person who invites them.
    reader = user or invitation.invited_by
    return EmailContent(
        format_lazy(_("Join {company}"), company=company.name), context, reader.language if reader else ""
    )


def _person(address: str) -> User | None:
    return User.objects.filter(email__iexact=address, is_active=True).first()


_COMPOSE: Mapping[EmailKind, Callable[[Letter], EmailContent | None]] = {
    EmailKind.RESET: _reset,
    EmailKind.LOCKED: _locked,
    EmailKind.INVITATION: _invitation,
}
