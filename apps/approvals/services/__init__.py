"""Services of approvals: `cards` opens, answers, decides and edits cards, `answers` stores and counts single answers,
`lifecycle` assigns, withdraws and expires cards, `tokens` issues, verifies, checks and revokes approvals,
`key_rotation` replaces keys, `passkeys` verifies who is present, `pauses` holds content back at gates, `alerts`
notifies members."""

from apps.approvals.services.cards import AnswerDetails, answer_card, decide_card, edit_card, open_card
from apps.approvals.services.key_rotation import Resealed, certify_keys, reseal_keys, revoke_key, rotate_key
from apps.approvals.services.lifecycle import (
    assign_card,
    eligible_approvers,
    expire_card,
    record_look,
    unassign_card,
    withdraw_card,
    withdraw_cards_about,
    withdraw_session_cards,
)
from apps.approvals.services.tokens import check_token, issue_token, revoke_token, verify_token

__all__ = [
    "AnswerDetails",
    "Resealed",
    "answer_card",
    "assign_card",
    "certify_keys",
    "check_token",
    "decide_card",
    "edit_card",
    "eligible_approvers",
    "expire_card",
    "issue_token",
    "open_card",
    "record_look",
    "reseal_keys",
    "revoke_key",
    "revoke_token",
    "rotate_key",
    "unassign_card",
    "verify_token",
    "withdraw_card",
    "withdraw_cards_about",
    "withdraw_session_cards",
]
