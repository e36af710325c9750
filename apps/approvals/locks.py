"""Lock rows of this room. The order is card, pause, key, token, each by its primary key; the audit head comes last."""

from __future__ import annotations

from uuid import UUID, uuid4

from django.db import connection

from apps.approvals.enums import Reason
from apps.approvals.models import OPEN_STATUSES, ApprovalToken, ApproverKey, Card, GatePause
from apps.approvals.tokens.schemas import SignedToken
from kernel.clock import now
from kernel.errors import NotFound


def lock_card(card_id: UUID) -> Card:
    """Return the card, locked until the scope ends. Raises `NotFound` for an unknown or foreign id."""
    card: Card | None = Card.objects.select_for_update(no_key=True).filter(pk=card_id).first()
    if card is None:
        raise NotFound()
    return card


def lock_pause(pause_id: UUID) -> GatePause:
    """Return the pause, locked until the scope ends. Raises `NotFound` for an unknown or foreign id."""
    # `of`: the token is locked after the pause, when it is spent; the join must not lock it here.
    rows = GatePause.objects.select_for_update(of=("self",), no_key=True).select_related("token")
    pause: GatePause | None = rows.filter(pk=pause_id).first()
    if pause is None:
        raise NotFound()
    return pause


def lock_open_cards(**filters: object) -> list[Card]:
    """Return the open cards that match, locked in order of their id until the scope ends."""
    return list(Card.objects.select_for_update(no_key=True).filter(status__in=OPEN_STATUSES, **filters).order_by("pk"))


def lock_token(nonce: str) -> ApprovalToken | None:
    """Return the stored token with this signed nonce, locked; None if there is none."""
    token: ApprovalToken | None = ApprovalToken.objects.select_for_update(no_key=True).filter(nonce=nonce).first()
    return token


def lock_key(key_id: str) -> ApproverKey:
    """Return an approver's key, locked until the scope ends. Raises `NotFound` for an unknown or foreign id."""
    key: ApproverKey | None = ApproverKey.objects.select_for_update(no_key=True).filter(key_id=key_id).first()
    if key is None:
        raise NotFound()
    return key


def spend_use(token: SignedToken, *, bound_hash: str, subject_id: str) -> int | Reason:
    """Enter one use of the token in the ledger, under the token's lock. Returns its ordinal, or why it is refused. The
    caller has checked the signature."""
    use = uuid4()
    # Decided in the database under the token's lock: two spends at once could both read that a use is left.
    binding = f"{token.token_id}:{bound_hash}:{use.hex}"
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT ordinal, refusal FROM approvals_spend(%s, %s, %s, %s, %s, %s, %s)",
            [token.nonce, token.issued_at, use, bound_hash, subject_id, binding, now()],
        )
        ordinal, refusal = cursor.fetchone()
    return Reason(refusal) if refusal else int(ordinal)
