"""Require and record a visitor's consent before anything is stored: the version agreed to and when, as a row."""

from __future__ import annotations

from uuid import UUID

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.sessions.services import resumable
from apps.tenants.models import Deployment
from apps.visitors.models import Consent, VisitorOffers
from apps.visitors.offers import offers_of
from kernel.canonical import sha256_hex
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import gettext


def require(deployment: Deployment, *, given: str, resume_token: str) -> VisitorOffers:
    """What the deployment offers. Raises 403 `consent_required`, with nothing stored, where it asks for a consent and
    neither is the present version `given` now nor was it in the conversation that is resumed."""
    offers = offers_of(deployment.pk)
    wanted = offers.consent_version
    if wanted and given != wanted and not _gave(deployment, resume_token, wanted):
        said = gettext("Please read and accept the consent notice to start the chat.")
        raise SilasError(ErrorCode.CONSENT_REQUIRED, said, extra={"version": wanted})
    return offers


def _gave(deployment: Deployment, resume_token: str, version: str) -> bool:
    session = resumable(deployment, resume_token)
    return session is not None and has_given(session.pk, version)


def has_given(session_id: UUID, version: str) -> bool:
    return bool(Consent.objects.filter(session_id=session_id, version=version).exists())


def give(session_id: UUID, offers: VisitorOffers, *, given: str) -> None:
    """Write down that the present version was agreed to, once."""
    if not offers.consent_version or given != offers.consent_version:
        return
    words = {"digest": sha256_hex(f"{offers.consent_text}\n{offers.consent_link}"), "given_at": now()}
    _, is_new = Consent.objects.get_or_create(session_id=session_id, version=given, defaults=words)
    if is_new:
        data = {"version": given}
        record(AuditEvent.CONSENT_GIVEN, actor="visitor", subject=f"session:{session_id}", data=data)


def consents_of(session_id: UUID) -> list[Consent]:
    """Newest first."""
    return list(Consent.objects.filter(session_id=session_id).order_by("-given_at"))
