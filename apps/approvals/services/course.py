"""What happens to a card beside its answer: who has seen it, who sees to it, that it is taken back or its time is up.

Always holds: nothing here approves, delays or blocks anything; a settled card stays settled (the database keeps it so),
and every end but a yes means that nothing runs (spec 0.5.4, 8.1). Each runs inside the caller's tenant scope, under the
card's lock.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any
from uuid import UUID

from apps.approvals import locks, queries, rules, signals
from apps.approvals.enums import CardKind, CardStatus, Withdrawal
from apps.approvals.kinds import AWAITED
from apps.approvals.models import CARD_TRANSITIONS, WAITING, Card, Look
from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.tenants.queries import role_of
from kernel.clock import now
from kernel.errors import SilasError


def deciders_of(card: Card) -> list[Any]:
    """The people whose yes to this card policy would take, in the order they joined."""
    policy = queries.policy_for(card)
    rows = queries.able_to_approve(policy.who, tenant_id=card.tenant_id).select_related("user")
    own = "" if policy.own_requests else card.requested_by
    return [one.user for one in rows if f"user:{one.user_id}" != own]


def require_approver(user: Any) -> None:
    if role_of(user) not in rules.APPROVING_ROLES:
        raise SilasError("approver_required", "Only an owner or an approver can decide this.", status=403)


def require_waiting(card: Card) -> None:
    """Raises `SilasError` 409 `card_expired`, `card_decided` or `card_withdrawn`."""
    if card.is_open:
        return
    if card.status in WAITING:
        raise SilasError("card_expired", "The time to decide this has run out. Nothing was changed.", status=409)
    raise SilasError(f"card_{card.status}", "This was already settled. Nothing more was changed.", status=409)


def see_card(card: Card, user: Any) -> None:
    """Write down that somebody who may decide has an open card before them, the first time only."""
    if card.is_open:
        Look.objects.bulk_create([Look(card=card, user=user, first_at=now())], ignore_conflicts=True)


def assign_card(card_id: UUID, *, to: Any, by: Any) -> Card:
    """Say who sees to a card. Any other who may decide it still can: this tells, it does not lock.

    Raises `SilasError`: `approver_required` 403 for whoever assigns, `assignee_unfit` 409 for whom, `not_found` 404.
    """
    require_approver(by)
    card = locks.lock_card(card_id)
    require_waiting(card)
    if to not in deciders_of(card):
        raise SilasError("assignee_unfit", "That person could not decide this.", status=409)
    if card.assignee_id == to.pk:
        return card
    return _hand(card, CardStatus.ASSIGNED, to, by=by)


def unassign_card(card_id: UUID, *, by: Any) -> Card:
    """Give a card back to everybody."""
    require_approver(by)
    card = locks.lock_card(card_id)
    require_waiting(card)
    return _hand(card, CardStatus.OPEN, None, by=by) if card.status == CardStatus.ASSIGNED else card


def _hand(card: Card, status: CardStatus, to: Any, *, by: Any) -> Card:
    card.assignee = to
    card.assigned_at = now() if to else None
    move(card, status, "assignee", "assigned_at")
    who = str(to.pk) if to else ""
    note(AuditEvent.CARD_ASSIGNED, card, actor=f"user:{by.pk}", to=who)
    signals.card_changed(card)
    return card


def withdraw_card(card_id: UUID, *, reason: Withdrawal, actor: str = "system") -> Card:
    """Take a card back that nobody has answered; what it asked for does not run.

    Raises `SilasError` 409 when it is settled, `not_found` 404.
    """
    card = locks.lock_card(card_id)
    require_waiting(card)
    return _withdraw(card, reason, actor)


def withdraw_about(subject_kind: str, subject_id: UUID, *, reason: Withdrawal, actor: str = "system") -> int:
    """Take back whatever still asks about this subject (a stopped work item). Returns how many, none is fine."""
    return _withdraw_all({"subject_kind": subject_kind, "subject_id": subject_id}, reason, actor)


def withdraw_of_session(
    session_id: UUID, *, reason: Withdrawal, actor: str = "system", kinds: Collection[CardKind] = AWAITED
) -> int:
    """Take back whatever of these kinds a conversation still asks for; what only offers stays. Returns how many."""
    return _withdraw_all({"session_id": session_id, "kind__in": kinds}, reason, actor)


def _withdraw_all(about: dict[str, Any], reason: Withdrawal, actor: str) -> int:
    cards = locks.lock_waiting(**about)
    for card in cards:
        _withdraw(card, reason, actor)
    return len(cards)


def _withdraw(card: Card, reason: Withdrawal, actor: str) -> Card:
    card.withdrawal = reason
    settle(card, CardStatus.WITHDRAWN, "withdrawal")
    note(AuditEvent.CARD_WITHDRAWN, card, actor=actor, reason=reason.value)
    signals.card_changed(card)
    return card


def expire_card(card_id: UUID) -> datetime | None:
    """Close a card whose time has run out: the safe answer to silence is no (spec 8.1). Returns when it will have run
    out, or None for a settled card."""
    card = locks.lock_card(card_id)
    if card.status not in WAITING:
        return None
    if card.expires_at > now():
        return card.expires_at
    settle(card, CardStatus.EXPIRED)
    note(AuditEvent.CARD_EXPIRED, card)
    signals.card_changed(card)
    return None


def settle(card: Card, status: CardStatus, *fields: str) -> None:
    """Move a locked card to one of its ends."""
    card.settled_at = now()
    move(card, status, "settled_at", *fields)


def move(card: Card, status: CardStatus, *fields: str) -> None:
    """Move a locked card on; raises `SilasError` 409 for a way that there is not (models.CARD_TRANSITIONS)."""
    if status not in CARD_TRANSITIONS[CardStatus(card.status)]:
        raise SilasError("card_settled", "A settled card stays settled.", status=409)
    card.status = status
    card.save(update_fields=["status", *fields])


def note(event: AuditEvent, card: Card, *, actor: str = "system", **data: str | int | bool) -> None:
    subject = f"{card.subject_kind}:{card.subject_id}"
    record(event, actor=actor, subject=f"card:{card.pk}", data={"about": subject, **data})
