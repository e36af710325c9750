"""The kinds of cards, one class each, registered here. A kind without a class stops the start (spec 8.2, 0.5.3)."""

from __future__ import annotations

from collections.abc import Mapping

from django.core.exceptions import ImproperlyConfigured
from django.utils.functional import Promise

from apps.approvals.cards.kinds.autonomy_threshold import AutonomyThreshold
from apps.approvals.cards.kinds.base import APPROVE, DECLINE, Choice, Kind
from apps.approvals.cards.kinds.batch_review import BatchReview
from apps.approvals.cards.kinds.budget import Budget
from apps.approvals.cards.kinds.connection import Connection
from apps.approvals.cards.kinds.connection_failure import ConnectionFailure
from apps.approvals.cards.kinds.decision import Decision
from apps.approvals.cards.kinds.draft_review import DraftReview
from apps.approvals.cards.kinds.gate import Gate
from apps.approvals.cards.kinds.permission_escalation import PermissionEscalation
from apps.approvals.cards.kinds.plan import Plan
from apps.approvals.cards.kinds.post_execution import PostExecution
from apps.approvals.cards.kinds.skill_install import SkillInstall
from apps.approvals.cards.kinds.standing import Standing
from apps.approvals.cards.kinds.suggestion import Suggestion
from apps.approvals.enums import CardKind, Pace
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError

__all__ = [
    "APPROVE",
    "AWAITED_KINDS",
    "DECLINE",
    "KINDS",
    "OFFERED_KINDS",
    "Choice",
    "Kind",
    "get_choice",
    "get_kind",
    "kind_labels",
]

KINDS: dict[CardKind, Kind] = {
    kind.kind: kind
    for kind in (
        Plan(),
        Standing(),
        Gate(),
        BatchReview(),
        DraftReview(),
        Decision(),
        Suggestion(),
        AutonomyThreshold(),
        PostExecution(),
        SkillInstall(),
        Budget(),
        Connection(),
        PermissionEscalation(),
        ConnectionFailure(),
    )
}
if missing := set(CardKind) - set(KINDS):
    raise ImproperlyConfigured(f"E_CARD_KIND: no class for {', '.join(sorted(missing))} in apps.approvals.cards.kinds")

# Kinds whose requester waits for the answer: a visitor, a turn, or a work item.
AWAITED_KINDS = frozenset(name for name, kind in KINDS.items() if kind.pace in (Pace.PLAN, Pace.GATE))
# Kinds that tell what was done and offer to undo it. Nothing waits for an answer to them.
OFFERED_KINDS = frozenset(name for name, kind in KINDS.items() if kind.is_offered)


def kind_labels() -> list[tuple[str, str | Promise]]:
    """The choices of `Card.kind`. A function, so that a new kind needs no migration."""
    return [(name.value, kind.label) for name, kind in KINDS.items()]


def get_kind(name: str) -> Kind:
    """Raises `SilasError` `card_kind_unknown`."""
    try:
        return KINDS[CardKind(name)]
    except ValueError:
        raise SilasError(ErrorCode.CARD_KIND_UNKNOWN) from None


def get_choice(name: str, payload: Mapping[str, object], value: str) -> Choice:
    """Return the choice with this value. Raises `SilasError` `choice_unknown`."""
    for choice in get_kind(name).all_choices(payload):
        if choice.value == value:
            return choice
    raise SilasError(ErrorCode.CHOICE_UNKNOWN, status=400)
