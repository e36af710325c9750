"""Move cards through their lifecycle beside being answered: look, assign, withdraw, expire.

Nothing here approves, delays or blocks anything. A settled card stays settled (the database enforces it), and every end
but an approval means that nothing runs (spec 0.5.4, 8.1). Runs inside the caller's tenant scope, under the card's lock.
"""

from __future__ import annotations

from datetime import datetime
from functools import partial
from uuid import UUID

from django.db import transaction

from apps.approvals import locks, queries, registry, rules, signals
from apps.approvals.cards.kinds import AWAITED_KINDS
from apps.approvals.enums import CardStatus, Withdrawal
from apps.approvals.models import CARD_TRANSITIONS, OPEN_STATUSES, Card, Look
from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.bus import queries as bus
from apps.bus.enums import Kind
from apps.tenants.models import User
from apps.tenants.queries import role_of
from kernel import tracing
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import gettext
from kernel.tracing import SpanName


def eligible_approvers(card: Card) -> list[User]:
    """Return the people whose approval of this card policy accepts, in the order in which they joined."""
    policy = queries.policy_for(card)
    rows = queries.eligible_memberships(policy.who, tenant_id=card.tenant_id).select_related("user")
    own = "" if policy.own_requests else card.requested_by
    return [membership.user for membership in rows if f"user:{membership.user_id}" != own]


def require_approver(user: User) -> None:
    if role_of(user) not in rules.APPROVING_ROLES:
        raise SilasError(ErrorCode.APPROVER_REQUIRED)


def require_open(card: Card) -> None:
    """Raises `SilasError` 409 `card_expired`, `card_decided` or `card_withdrawn`."""
    if card.is_open:
        return
    if card.status in OPEN_STATUSES:
        raise SilasError(ErrorCode.CARD_EXPIRED, gettext("This card has expired. Nothing was changed."))
    raise SilasError(ErrorCode(f"card_{card.status}"), gettext("This was already decided. Nothing else was changed."))


def record_look(card: Card, user: User) -> None:
    """Record when this person first saw an open card since it came into the queue, or while it waits outside."""
    if card.is_open:
        queued_at = Card.objects.annotate(at=queries.queued_at()).values_list("at", flat=True).get(pk=card.pk)
        look = Look(card=card, user=user, first_at=now())
        look.queued_at = queued_at if queued_at <= look.first_at else None
        Look.objects.bulk_create([look], ignore_conflicts=True)


def assign_card(card_id: UUID, *, to: User, by: User | None, actor: str = "") -> Card:
    """Assign a card to a person. Everybody else who may decide it still can. `by` None: the program `actor`.

    Raises `SilasError`: `approver_required` 403 for `by`, `assignee_unfit` 409 for `to`, `not_found` 404.
    """
    if by is not None:
        require_approver(by)
    card = locks.lock_card(card_id)
    require_open(card)
    if to not in eligible_approvers(card):
        raise SilasError(ErrorCode.ASSIGNEE_UNFIT, gettext("That person can't decide this."))
    if card.assignee_id == to.pk:
        return card
    return _set_assignee(card, to, actor=actor or (by.actor if by else ""))


def unassign_card(card_id: UUID, *, by: User | None, actor: str = "") -> Card:
    if by is not None:
        require_approver(by)
    card = locks.lock_card(card_id)
    require_open(card)
    if card.status != CardStatus.ASSIGNED:
        return card
    return _set_assignee(card, None, actor=actor or (by.actor if by else ""))


def _set_assignee(card: Card, to: User | None, *, actor: str) -> Card:
    card.assignee = to
    card.assigned_at = now() if to else None
    transition_card(card, CardStatus.ASSIGNED if to else CardStatus.OPEN, "assignee", "assigned_at")
    record_card_event(AuditEvent.CARD_ASSIGNED, card, actor=actor, to=str(to.pk) if to else "")
    signals.card_changed(card)
    return card


def withdraw_card(card_id: UUID, *, reason: Withdrawal, actor: str = "system") -> Card:
    """Withdraw an open card; what it asked for does not run. Raises `SilasError` 409 if settled, `not_found` 404."""
    card = locks.lock_card(card_id)
    require_open(card)
    return _withdraw(card, reason, actor)


def withdraw_cards_about(subject_kind: str, subject_id: UUID, *, reason: Withdrawal, actor: str = "system") -> int:
    """Withdraw the open cards about a subject, such as a stopped work item. Returns how many, which may be 0."""
    return _withdraw_open({"subject_kind": subject_kind, "subject_id": subject_id}, reason, actor)


def withdraw_session_cards(session_id: UUID, *, reason: Withdrawal, actor: str = "system") -> int:
    """Withdraw what a conversation waits for; suggestions stay. Returns how many cards."""
    return _withdraw_open({"session_id": session_id, "kind__in": AWAITED_KINDS}, reason, actor)


def _withdraw_open(filters: dict[str, object], reason: Withdrawal, actor: str) -> int:
    cards = locks.lock_open_cards(**filters)
    for card in cards:
        _withdraw(card, reason, actor)
    return len(cards)


def _withdraw(card: Card, reason: Withdrawal, actor: str) -> Card:
    card.withdrawal = reason
    settle_card(card, CardStatus.WITHDRAWN, "withdrawal")
    record_card_event(AuditEvent.CARD_WITHDRAWN, card, actor=actor, reason=reason.value)
    if reason != Withdrawal.REPLACED:  # its successor still asks
        registry.handlers_of(card.kind, card.subject_kind).ended(card)
    signals.card_changed(card)
    return card


def expire_card(card_id: UUID) -> datetime | None:
    """Expire an open card whose time is up, which counts as a rejection (spec 8.1). Returns when it will expire if that
    is later, None for a settled card."""
    card = locks.lock_card(card_id)
    if card.status not in OPEN_STATUSES:
        return None
    if card.expires_at > now():
        return card.expires_at
    settle_card(card, CardStatus.EXPIRED)
    record_card_event(AuditEvent.CARD_EXPIRED, card, kind=card.kind)
    registry.handlers_of(card.kind, card.subject_kind).ended(card)
    signals.card_changed(card)
    return None


def settle_card(card: Card, status: CardStatus, *fields: str) -> None:
    """Move a locked card to one of its final states."""
    card.settled_at = now()
    transition_card(card, status, "settled_at", *fields)
    if tracing.is_on():
        _record_wait(card, card.settled_at)


def _record_wait(card: Card, ended: datetime) -> None:
    """Record how long the card waited, in the trace in which it was opened."""
    wait = partial(
        tracing.record_span,
        SpanName.APPROVAL,
        parent=bus.trace_of(Kind.CARD_EXPIRY, card.pk),
        begun=card.created_at,
        ended=ended,
        tenant=card.tenant_id,
        card=card.pk,
        kind=card.kind,
        risk=card.risk,
        outcome=card.withdrawal or card.status,
    )
    # After the commit, so that no span tells of an end that was rolled back.
    transaction.on_commit(wait)


def transition_card(card: Card, status: CardStatus, *fields: str) -> None:
    """Change the status of a locked card. Raises `SilasError` 409 if `models.CARD_TRANSITIONS` does not allow it."""
    if status not in CARD_TRANSITIONS[CardStatus(card.status)]:
        raise SilasError(ErrorCode.CARD_SETTLED)
    card.status = status
    card.save(update_fields=["status", *fields])


def record_card_event(event: AuditEvent, card: Card, *, actor: str = "system", **data: str | int | bool) -> None:
    subject = f"{card.subject_kind}:{card.subject_id}"
    record(event, actor=actor, subject=f"card:{card.pk}", data={"about": subject, **data})
