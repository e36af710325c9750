"""The verbs of approvals: `cards` asks and takes answers, `answers` weighs them, `editing` asks for something else,
`course` is what else happens to cards, `tokens` mints, spends, checks and takes back a yes, `rotation` replaces keys,
`passkeys` asks who pressed."""

from apps.approvals.services.answering import Words, answer_card
from apps.approvals.services.cards import decide_card, open_card
from apps.approvals.services.course import (
    assign_card,
    deciders_of,
    expire_card,
    see_card,
    unassign_card,
    withdraw_about,
    withdraw_card,
    withdraw_of_session,
)
from apps.approvals.services.editing import edit_card
from apps.approvals.services.rotation import Resealed, certify_keys, reseal_keys, revoke_key, rotate_key
from apps.approvals.services.tokens import check, issue_token, revoke_token, verify

__all__ = [
    "Resealed",
    "Words",
    "answer_card",
    "assign_card",
    "certify_keys",
    "check",
    "decide_card",
    "deciders_of",
    "edit_card",
    "expire_card",
    "issue_token",
    "open_card",
    "reseal_keys",
    "revoke_key",
    "revoke_token",
    "rotate_key",
    "see_card",
    "unassign_card",
    "verify",
    "withdraw_about",
    "withdraw_card",
    "withdraw_of_session",
]
