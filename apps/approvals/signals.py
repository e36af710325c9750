"""Signals about cards and tokens. Receivers run inside the transaction that made the change.

What becomes of a card is registered in `registry` by the room that asks; its handler runs before these are sent.
"""

from __future__ import annotations

from uuid import UUID

from apps.approvals.models import ApprovalToken, Card, Decision, TokenRevocation
from kernel.events import Event

# A card was decided. The token is there only for an approval of a card that binds.
card_decided: Event[[Card, Decision, ApprovalToken | None]] = Event("card_decided")
# The status of a card changed, opening included. Sent last.
card_changed: Event[[Card]] = Event("card_changed")
# A card was replaced by another about the same subject, with a changed payload: the old one, the new one.
card_edited: Event[[Card, Card]] = Event("card_edited")
# (card id): the customer was asked about the card, or has answered.
question_changed: Event[[UUID]] = Event("question_changed")
# (card id, entry of the conversation): the customer has answered, the card is back in the queue.
card_returned: Event[[UUID, int]] = Event("card_returned")
# (user id): a member chose what they hear and see of news in an open console.
notice_choice_changed: Event[[UUID]] = Event("notice_choice_changed")
# An approval was revoked. What it was spent for must not start again.
token_revoked: Event[[ApprovalToken, TokenRevocation]] = Event("token_revoked")
