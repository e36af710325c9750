"""Signals about cards, pauses and tokens. Receivers run inside the transaction that made the change."""

from __future__ import annotations

from dataclasses import dataclass

from apps.approvals.cards.schemas import AnswerRefused
from apps.approvals.models import ApprovalToken, Card, Decision, GatePause, TokenRevocation
from kernel.events import Event

# A card was opened.
card_opened: Event[[Card]] = Event("card_opened")
# A card was decided. The token is there only for an approval of a card that binds.
card_decided: Event[[Card, Decision, ApprovalToken | None]] = Event("card_decided")
# The status of a card changed, opening included. Sent last.
card_changed: Event[[Card]] = Event("card_changed")
# A card was replaced by another about the same subject, with a changed payload: the old one, the new one.
card_edited: Event[[Card, Card]] = Event("card_edited")


@dataclass
class CardReplacement:
    """Filled in by a receiver: the card that replaced one whose records have changed, or why none can replace it."""

    card: Card | None = None
    refused: AnswerRefused | None = None


# A card that shows the state of records is about to be approved. The receiver that knows the records replaces the card
# if they have changed.
before_card_approval: Event[[Card, CardReplacement]] = Event("card_relied_on")
# A pause for a gate has ended: approved, declined, expired or withdrawn.
pause_ended: Event[[GatePause]] = Event("pause_ended")
# An approval was revoked. What it was spent for must not start again.
token_revoked: Event[[ApprovalToken, TokenRevocation]] = Event("token_revoked")
