"""How does a letter about somebody's account get to them? Written down in one step, sent by a web process afterwards.

Whoever asks for one gets the same answer in the same time whether there is such an account or not: who it is for is
looked up when it leaves. A letter that cannot be sent is tried again for most of a day, with growing waits; given up,
it stays in the administration's list of letters and in the log. No worker knows people's addresses (ADR 51).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.core.mail import EmailMultiAlternatives
from django.db import transaction
from django.db.models import F
from django.template.loader import render_to_string

from apps.audit.enums import AuditEvent
from apps.tenants import invitations, resets
from apps.tenants.enums import LetterKind, LetterState
from apps.tenants.models import Letter, Tenant, User
from apps.tenants.persons import record_everywhere
from kernel.clock import now
from kernel.tenancy import tenant_scope

_log = logging.getLogger(__name__)
MOST_ATTEMPTS = 12
_FIRST_WAIT, _LEASE = timedelta(seconds=30), timedelta(minutes=2)
_KEPT = timedelta(days=30)
_SMTP = "django.core.mail.backends.smtp.EmailBackend"


@dataclass(frozen=True)
class Written:
    """What is in a letter: `told` fills the templates `tenants/letters/<kind>.{txt,html}`."""

    subject: str
    told: Mapping[str, Any]


def can_send() -> bool:
    """Is there a mail server? Without one, links are shown to whoever made them."""
    return settings.EMAIL_BACKEND != _SMTP or bool(settings.EMAIL_HOST)


def write(
    kind: LetterKind, address: str, *, origin: str, company_id: UUID | None = None, invitation_id: UUID | None = None
) -> Letter:
    """It leaves after this transaction has committed, and not without it."""
    moment = now()
    return Letter.objects.create(
        kind=kind,
        address=address[:254],
        origin=origin,
        company_id=company_id,
        invitation_id=invitation_id,
        created_at=moment,
        due_at=moment,
    )


def send_due() -> int:
    """Everything that is due; returns how many were sent. In a web process, outside of any scope."""
    sent = 0
    while (letter := _claim()) is not None:
        sent += _send(letter)
    return sent


def state_of(invitation_ids: list[UUID]) -> dict[UUID, Letter]:
    """The newest letter of each of these invitations."""
    rows = Letter.objects.filter(invitation_id__in=invitation_ids).order_by("created_at")
    return {row.invitation_id: row for row in rows if row.invitation_id}


def clear_old() -> bool:
    """Delete letters that ended a month ago; False, because nothing is left to delete."""
    Letter.objects.filter(ended_at__lt=now() - _KEPT).delete()
    return False


def _claim() -> Letter | None:
    """One that is due, in this process's hands for a while: should it die, the letter comes back by itself."""
    with transaction.atomic():
        due = Letter.objects.select_for_update(skip_locked=True, no_key=True).filter(
            state=LetterState.WAITING, due_at__lte=now()
        )
        letter = due.order_by("due_at").first()
        if letter is not None:
            letter.attempts += 1
            Letter.objects.filter(pk=letter.pk).update(due_at=now() + _LEASE, attempts=F("attempts") + 1)
        return letter


def _send(letter: Letter) -> bool:
    try:
        written = _COMPOSE[LetterKind(letter.kind)](letter)
        if written is None:
            return _ended(letter, LetterState.DROPPED)
        if not can_send():
            return _ended(letter, LetterState.FAILED, "no_mail_server")
        _post(letter, written)
    except Exception as error:  # noqa: BLE001 (one letter's fault must not keep the others)
        return _failed(letter, type(error).__name__)
    return _ended(letter, LetterState.SENT)


def _post(letter: Letter, written: Written) -> None:
    told = {**written.told, "subject": written.subject, "origin": letter.origin, "address": letter.address}
    text, html = (render_to_string(f"tenants/letters/{letter.kind}.{form}", told) for form in ("txt", "html"))
    message = EmailMultiAlternatives(" ".join(written.subject.split()), text, None, [letter.address])
    message.attach_alternative(html, "text/html")
    message.send()


def _failed(letter: Letter, code: str) -> bool:
    _log.warning("letter_not_sent", extra={"letter": str(letter.pk), "code": code, "attempt": letter.attempts})
    if letter.attempts >= MOST_ATTEMPTS:
        return _ended(letter, LetterState.FAILED, code)
    due_at = now() + _FIRST_WAIT * 2 ** (letter.attempts - 1)
    Letter.objects.filter(pk=letter.pk).update(due_at=due_at, error_code=code[:60])
    return False


def _ended(letter: Letter, state: LetterState, code: str = "") -> bool:
    if state == LetterState.FAILED:
        _log.error("letter_given_up", extra={"letter": str(letter.pk), "kind": letter.kind, "code": code})
    Letter.objects.filter(pk=letter.pk).update(state=state, error_code=code[:60], ended_at=now())
    return state == LetterState.SENT


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
        with transaction.atomic():
            record_everywhere(user, AuditEvent.LOGIN_LOCKED)
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


_COMPOSE: Mapping[LetterKind, Callable[[Letter], Written | None]] = {
    LetterKind.RESET: _reset,
    LetterKind.LOCKED: _locked,
    LetterKind.INVITATION: _invitation,
}
