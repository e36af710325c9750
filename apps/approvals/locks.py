"""Which rows does this room lock? Card, then token, each by its key; the audit head comes last of all."""

from __future__ import annotations

from uuid import UUID

from apps.approvals.models import ApprovalToken, Card
from kernel.errors import NotFound


def lock_card(card_id: UUID) -> Card:
    """The card, locked until the scope ends. Raises `NotFound` for an unknown or foreign id."""
    card: Card | None = Card.objects.select_for_update(no_key=True).filter(pk=card_id).first()
    if card is None:
        raise NotFound("card")
    return card


def lock_token(nonce: str) -> bool:
    """Queue up behind every other use of the token with this signed nonce; False when none was ever stored."""
    return (
        ApprovalToken.objects.select_for_update(no_key=True).filter(nonce=nonce).values_list("pk").first() is not None
    )
