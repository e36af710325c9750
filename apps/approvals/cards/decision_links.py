"""Create links with which one member decides one card, once, and take the answer. Inside the tenant's scope.

A link proves nothing about who holds it. The member's passkey opens the card, and signs the answer together with what
the card shows; both checks happen regardless of the policy about passkeys. Everything else is as in the console: role,
policy, quorum and the token (ADR 124).
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.db.models.functions import Now
from django.urls import reverse

from apps.approvals import queries
from apps.approvals.cards.kinds import Choice
from apps.approvals.cards.lifecycle import (
    eligible_approvers,
    record_card_event,
    record_look,
    require_approver,
    require_open,
)
from apps.approvals.cards.schemas import AnswerDetails, AnswerRefused, LinkSignature
from apps.approvals.cards.services import answer_card, answer_words
from apps.approvals.enums import ApprovalVerdict
from apps.approvals.models import Card, Decision, DecisionLink
from apps.approvals.models.decision_links import LONGEST
from apps.approvals.passkeys import services as passkeys
from apps.approvals.passkeys.services import PasskeySubject
from apps.audit.enums import AuditEvent
from apps.tenants.models import User
from kernel.canonical import sha256_hex
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import gettext
from kernel.tenancy import lookup_scope

# So long an ended link says what became of the card; then it is unknown. The audit log keeps that it existed.
KEPT = timedelta(days=7)
_BATCH = 1000


@dataclass(frozen=True)
class NewLink:
    """`path` contains the secret; it is not stored, so it is only available here."""

    row: DecisionLink
    path: str


def create_decision_link(
    card: Card, member: User, *, expires_in: timedelta = LONGEST, actor: str = "system"
) -> NewLink:
    """Create a link for the member to decide the card. It ends with the card, and after an hour at most.

    Raises `SilasError`: `approver_required` 403 for a member who may not decide; `passkey_missing` 409 for one without
    a passkey; `card_decided`, `card_expired`, `card_withdrawn` 409.
    """
    require_approver(member)
    require_open(card)
    if not queries.has_passkey(member):
        message = gettext("This member has no passkey. Without one they can decide only in the console.")
        raise SilasError(ErrorCode.PASSKEY_MISSING, message, status=409)
    # Only the hash is stored: a reader of the database, or of a backup of it, holds no link.
    secret, moment = secrets.token_urlsafe(32), now()
    row: DecisionLink = DecisionLink.objects.create(
        card=card,
        user=member,
        face_hash=queries.face_hash(card),
        hashed=sha256_hex(secret),
        created_at=moment,
        expires_at=min(moment + min(expires_in, LONGEST), card.expires_at),
    )
    record_card_event(AuditEvent.DECISION_LINK_CREATED, card, actor=actor, link=str(row.pk), member=str(member.pk))
    return NewLink(row, reverse("decision-link", args=[secret]))


def delete_old() -> bool:
    """A step of retention: delete links that ended more than `KEPT` ago, at most `_BATCH`."""
    old = DecisionLink.objects.filter(expires_at__lt=Now() - KEPT).order_by("expires_at")
    ids = list(old.values_list("pk", flat=True)[:_BATCH])
    DecisionLink.objects.filter(pk__in=ids).delete()
    return len(ids) == _BATCH


def find_link(secret: str) -> DecisionLink | None:
    """Return the link with this secret, ended or not, with its tenant and member; None if there is none. Outside any
    scope."""
    hashed = sha256_hex(secret)
    with lookup_scope(hashed):
        link: DecisionLink | None = DecisionLink.objects.select_related("tenant", "user").filter(hashed=hashed).first()
        return link


def require_usable(link: DecisionLink) -> Card:
    """Return the card of a link that can still decide it.

    Raises `SilasError`: `decision_link_spent`, `decision_link_expired` 409; `approver_required` 403 for someone who is
    no longer a member or may no longer decide; `card_changed`, `card_decided`, `card_expired`, `card_withdrawn` 409.
    """
    if link.spent_at is not None:
        raise SilasError(ErrorCode.DECISION_LINK_SPENT)
    card = queries.get_card(link.card_id)
    if card.is_open and link.expires_at <= now():
        raise SilasError(ErrorCode.DECISION_LINK_EXPIRED)
    if not link.user.is_active:
        raise SilasError(ErrorCode.APPROVER_REQUIRED)
    require_approver(link.user)
    if queries.successor_of(card) is not None:
        message = gettext(
            "This request was changed after the link was sent. Nothing was decided. Open it in the console."
        )
        raise SilasError(ErrorCode.CARD_CHANGED, message)
    require_open(card)
    queries.require_unchanged(card, link.face_hash)
    return card


def choices_of(card: Card) -> Sequence[Choice]:
    """Return the answers that a link offers: approvals and rejections. Edits need the console, and so does approving a
    batch of which some lines have to be ticked first."""
    choices = card.of_kind.choices_on(card)
    answers = {ApprovalVerdict.DECLINED}
    if choices[0].verdict != ApprovalVerdict.EDIT_REQUESTED:
        answers.add(ApprovalVerdict.APPROVED)
    return [choice for choice in choices if choice.verdict in answers]


def may_approve(card: Card, user: User) -> bool:
    """True if policy accepts this person's approval of the card. Everyone who may decide can decline it."""
    return not card.of_kind.binds or user in eligible_approvers(card)


def begin_opening(link: DecisionLink, *, rp_id: str, origin: str) -> dict[str, object]:
    """Return the passkey options for seeing the card. Raises as `require_usable`, and `passkey_elsewhere` 409."""
    subject = PasskeySubject.for_opening(require_usable(link))
    return passkeys.begin_proof(subject, user=link.user, rp_id=rp_id, origin=origin)


def open_link(link: DecisionLink, *, assertion: str) -> Card | AnswerRefused:
    """Return the card to the holder of the member's passkey. The caller should commit a refusal, which is recorded.

    Raises `SilasError`: `step_up_required` 403, and as `require_usable`.
    """
    card = require_usable(link)
    subject = PasskeySubject.for_opening(card)
    try:
        passkeys.verify_proof(subject, user=link.user, assertion=assertion)
    except passkeys.PasskeyRejected as rejection:
        return passkeys.record_refusal(rejection, user=link.user, subject=subject)
    record_look(card, link.user)
    return card


def begin_answer(
    link: DecisionLink, *, choice: str, freetext: str, face: str, rp_id: str, origin: str
) -> dict[str, object]:
    """Return the passkey options for giving exactly this answer. Raises as `require_usable`, and `choice_unknown`,
    `card_changed`, `passkey_elsewhere` 409."""
    card = require_usable(link)
    queries.require_unchanged(card, face)
    chosen = _choice(card, choice)
    subject = PasskeySubject.for_answer(card, chosen.verdict, answer_words(card, chosen, freetext))
    return passkeys.begin_proof(subject, user=link.user, rp_id=rp_id, origin=origin)


def answer_link(
    link: DecisionLink, *, choice: str, freetext: str, face: str, assertion: str
) -> Decision | Card | AnswerRefused | None:
    """Answer the card with the member's passkey and spend the link; returns what `answer_card` returns. A refused
    answer leaves the link as it was.

    Raises as `require_usable`, and what `answer_card` raises.
    """
    card = require_usable(link)
    # Again, because the request that began the answer is not the one that gives it.
    _choice(card, choice)
    outcome = answer_card(
        card.pk,
        user=link.user,
        choice=choice,
        face=face,
        details=AnswerDetails(freetext=freetext),
        signature=LinkSignature(assertion),
    )
    if isinstance(outcome, AnswerRefused):
        return outcome
    # Spent by a conditional update: of two answers at once the second gets no row and is rolled back.
    if not DecisionLink.objects.filter(pk=link.pk, spent_at=None).update(spent_at=now()):
        raise SilasError(ErrorCode.DECISION_LINK_SPENT)
    record_card_event(AuditEvent.DECISION_LINK_USED, card, actor=f"user:{link.user_id}", link=str(link.pk))
    return outcome


def _choice(card: Card, value: str) -> Choice:
    chosen = next((choice for choice in choices_of(card) if choice.value == value), None)
    if chosen is None:
        raise SilasError(ErrorCode.CHOICE_UNKNOWN)
    return chosen
