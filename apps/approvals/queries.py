"""What waits for a decision, and how often was a token used? Read inside a tenant scope."""

from __future__ import annotations

from uuid import UUID

from django.db.models import Count, Q, QuerySet

from apps.approvals.enums import CardStatus
from apps.approvals.models import ApproverKey, Card, TokenUse
from kernel.clock import now
from kernel.errors import NotFound


def open_cards(*, deployment_id: UUID | None = None) -> QuerySet[Card]:
    """Cards that can still be decided, oldest first, with their deployment."""
    cards: QuerySet[Card] = Card.objects.filter(status=CardStatus.OPEN, expires_at__gt=now()).select_related(
        "deployment"
    )
    return cards.filter(deployment_id=deployment_id) if deployment_id else cards


def open_count() -> int:
    return open_cards().count()


def card(card_id: UUID) -> Card:
    """One card with its decision and who made it, if any. Raises `NotFound` for an unknown or foreign id."""
    found: Card | None = Card.objects.select_related("deployment", "decision__user").filter(pk=card_id).first()
    if found is None:
        raise NotFound("card")
    return found


def public_key(key_id: str) -> bytes | None:
    """The public half of a key of this tenant; another tenant's key does not exist here."""
    found = ApproverKey.objects.filter(key_id=key_id).values_list("public_key", flat=True).first()
    return bytes.fromhex(found) if found else None


def uses(nonce: str) -> int:
    return int(TokenUse.objects.filter(token_nonce=nonce).count())


def uses_of(nonce: str, *, bound_hash: str) -> tuple[int, bool]:
    """How often the token was used, and whether one use was for exactly this content."""
    found = TokenUse.objects.filter(token_nonce=nonce).aggregate(
        used=Count("pk"), bound=Count("pk", filter=Q(bound_hash=bound_hash))
    )
    return int(found["used"]), bool(found["bound"])


def use_of(nonce: str, *, bound_hash: str) -> TokenUse:
    """The use of a token that was spent for exactly this content; only after `check` said that there is one."""
    use: TokenUse = TokenUse.objects.get(token_nonce=nonce, bound_hash=bound_hash)
    return use
