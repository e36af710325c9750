"""Models of approvals: cards, answers and decisions; keys and passkeys; tokens and their uses; policies; alerts."""

from apps.approvals.models.alerts import AlertChoice, PushSubscription
from apps.approvals.models.cards import CARD_TRANSITIONS, OPEN_STATUSES, Answer, Card, CardTiming, Decision, Look
from apps.approvals.models.client_keys import ClientKey
from apps.approvals.models.decision_links import DecisionLink
from apps.approvals.models.keys import ApproverKey, Passkey, PasskeyChallenge
from apps.approvals.models.pauses import GatePause
from apps.approvals.models.policies import ApprovalPolicy
from apps.approvals.models.questions import CardQuestion
from apps.approvals.models.tokens import ApprovalToken, TokenRevocation, TokenUse

__all__ = [
    "CARD_TRANSITIONS",
    "OPEN_STATUSES",
    "AlertChoice",
    "Answer",
    "ApprovalPolicy",
    "ApprovalToken",
    "ApproverKey",
    "Card",
    "CardQuestion",
    "CardTiming",
    "ClientKey",
    "Decision",
    "DecisionLink",
    "GatePause",
    "Look",
    "Passkey",
    "PasskeyChallenge",
    "PushSubscription",
    "TokenRevocation",
    "TokenUse",
]
