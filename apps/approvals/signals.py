"""News about cards for the rooms above. Receivers run inside the transaction that made the change."""

from __future__ import annotations

from dataclasses import dataclass

from apps.approvals.models import ApprovalToken, Card, Decision, GatePause, TokenRevocation
from apps.approvals.schemas import Refused
from kernel.events import Event

# A card was put into the queue.
card_opened: Event[[Card]] = Event("card_opened")
# A person decided; the token is there when, and only when, the verdict was approved.
card_decided: Event[[Card, Decision, ApprovalToken | None]] = Event("card_decided")
# The status of a card changed, opening included; told last.
card_changed: Event[[Card]] = Event("card_changed")
# A card was replaced by another about the same subject, with a changed payload: the old one, the new one.
card_edited: Event[[Card, Card]] = Event("card_edited")


@dataclass
class Fresh:
    """The card that took the place of one whose records have changed, if one did; or why none can."""

    card: Card | None = None
    refused: Refused | None = None


# Somebody is about to say yes to a card that shows the state of records: whoever knows these replaces it where they
# have changed, and says with which card.
card_relied_on: Event[[Card, Fresh]] = Event("card_relied_on")
# A pause for a gate has ended: approved, declined, expired or withdrawn.
pause_ended: Event[[GatePause]] = Event("pause_ended")
# An approval was taken back; whatever it was spent for must not begin again.
token_revoked: Event[[ApprovalToken, TokenRevocation]] = Event("token_revoked")
