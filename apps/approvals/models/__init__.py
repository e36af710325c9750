"""Who said yes, to exactly what: cards, answers and decisions; keys and passkeys; tokens and their uses; policies."""

from apps.approvals.models.alerts import AlertChoice, PushSubscription
from apps.approvals.models.cards import CARD_TRANSITIONS, WAITING, Answer, Card, Decision
from apps.approvals.models.course import CardTiming, Look
from apps.approvals.models.keys import ApproverKey, Passkey, PasskeyChallenge
from apps.approvals.models.pauses import GatePause
from apps.approvals.models.policy import ApprovalPolicy
from apps.approvals.models.tokens import ApprovalToken, TokenRevocation, TokenUse

__all__ = [
    "CARD_TRANSITIONS",
    "WAITING",
    "AlertChoice",
    "Answer",
    "ApprovalPolicy",
    "ApprovalToken",
    "ApproverKey",
    "Card",
    "CardTiming",
    "Decision",
    "GatePause",
    "Look",
    "Passkey",
    "PasskeyChallenge",
    "PushSubscription",
    "TokenRevocation",
    "TokenUse",
]
