"""Mail about accounts: written down in one step, sent afterwards by a worker that holds the signing key (ADR 51).

Whoever asks for a letter gets the same answer in the same time whether there is such an account or not: who it is for
is looked up when it leaves. A letter that cannot be sent is tried again for most of a day, with growing waits; given
up, it stays in the administration's list of letters and in the log.
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

from apps.audit.enums import AuditEvent
from apps.tenants import invitations, resets
from apps.tenants.enums import EmailKind, EmailState
from apps.tenants.members import record_in_all_tenants
from apps.tenants.models import Letter, Tenant, User
from apps.tenants.signals import email_enqueued
from kernel.clock import now
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
class Written:
    """What is in a letter: `told` fills the templates `tenants/emails/<kind>.{txt,html}`."""

    subject: str
    told: Mapping[str, Any]


def can_send() -> bool:
    """Is there a mail server? Without one, links are shown to whoever made them."""
    return settings.EMAIL_BACKEND != _SMTP or bool(settings.EMAIL_HOST)


def enqueue(
    kind: EmailKind, address: str, *, origin: str, company_id: UUID | None = None, invitation_id: UUID | None = None
) -> Letter:
    """It leaves after this transaction has committed, and not without it."""
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


async def send(delivery: Delivery) -> None:
    """Carry out one `ACCOUNT_MAIL`. The letter's scope on the bus is its own, so no letter waits for another."""
    begun = await in_thread(_begin, UUID(delivery.message.subject))
    if begun is None:
        return
    letter, written = begun
    state, code = EmailState.SENT, ""
    if written is None:
        state = EmailState.DROPPED
    elif not can_send():
        state, code = EmailState.FAILED, "no_mail_server"
    else:
        try:
            await asyncio.to_thread(_post, letter, written)
        except Exception as error:  # noqa: BLE001 (a mail server refuses in many ways)
            code = type(error).__name__
            state = EmailState.FAILED if letter.attempts >= MOST_ATTEMPTS else EmailState.WAITING
    await in_scope(delivery.tenant_id, _settle, delivery, letter, state, code)


def mark_failed(message: QueueMessage) -> bool:
    """The letter's deliveries failed for good. Nobody is told by this."""
    _end(UUID(message.subject), EmailState.FAILED, message.reason)
    return False


def latest_by_invitation(invitation_ids: list[UUID]) -> dict[UUID, Letter]:
    """The newest letter of each of these invitations."""
    rows = Letter.objects.filter(invitation_id__in=invitation_ids).order_by("created_at")
    return {row.invitation_id: row for row in rows if row.invitation_id}


def delete_old() -> bool:
    """Delete letters that ended a month ago; False, because nothing is left to delete."""
    Letter.objects.filter(ended_at__lt=now() - _KEPT).delete()
    return False


def _begin(letter_id: UUID) -> tuple[Letter, Written | None] | None:
    """Count the try and write the letter, None where its person is gone. Outside of any scope, because a letter may
    concern several companies."""
    with transaction.atomic():
        letter = Letter.objects.select_for_update(no_key=True).filter(pk=letter_id, state=EmailState.WAITING).first()
        if letter is None:
            return None
        letter.attempts += 1
        letter.save(update_fields=["attempts"])
        return letter, _COMPOSE[EmailKind(letter.kind)](letter)


def _post(letter: Letter, written: Written) -> None:
    told = {**written.told, "subject": written.subject, "origin": letter.origin, "address": letter.address}
    text, html = (render_to_string(f"tenants/emails/{letter.kind}.{form}", told) for form in ("txt", "html"))
    message = EmailMultiAlternatives(" ".join(written.subject.split()), text, None, [letter.address])
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
        _log.error("letter_given_up", extra={"letter": str(letter_id), "code": code})
    waiting = Letter.objects.filter(pk=letter_id, state=EmailState.WAITING)
    waiting.update(state=state, error_code=code[:60], ended_at=now())


def _reset(letter: Letter) -> Written | None:
    user = _person(letter.address)
    if user is None or not user.has_usable_password() or now() - letter.created_at > resets.GOOD_FOR:
        return None
    return Written("Set a new password", {"link": letter.origin + resets.path_of(user)})


def _locked(letter: Letter) -> Written | None:
    """Written down for the person's companies here, and not where the failures are answered."""
    user = _person(letter.address)
    if user is None:
        return None
    if letter.attempts == 1:
        record_in_all_tenants(user, AuditEvent.LOGIN_LOCKED)
    return Written("Somebody failed to log in as you", {})


def _invitation(letter: Letter) -> Written | None:
    assert letter.company_id and letter.invitation_id
    company = Tenant.objects.get(pk=letter.company_id)
    with tenant_scope(company):
        made = invitations.new_link(letter.invitation_id)
    if made is None:
        return None
    told = {"company": company.name, "link": letter.origin + made.path, "role": made.invitation.get_role_display()}
    return Written(f"Join {company.name}", told)


def _person(address: str) -> User | None:
    return User.objects.filter(email__iexact=address, is_active=True).first()


_COMPOSE: Mapping[EmailKind, Callable[[Letter], Written | None]] = {
    EmailKind.RESET: _reset,
    EmailKind.LOCKED: _locked,
    EmailKind.INVITATION: _invitation,
}
