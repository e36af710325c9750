"""Handlers of cards and pauses. Rooms register theirs in `receivers.py`, for what they ask about.

    on_card(CardKind.BUDGET, SUBJECT, decided=limit_increases.apply_decision)
    on_pause_end(TURN, turn_pauses.enqueue_turn)

A handler runs inside the transaction that changes the card. A card that no room has registered is never opened, so that
no decision is without effect.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.core.exceptions import ImproperlyConfigured

from apps.approvals.enums import CardKind

if TYPE_CHECKING:
    from apps.approvals.cards.schemas import AnswerRefused
    from apps.approvals.models import ApprovalToken, Card, Decision, GatePause

# The token is there only for an approval of a card that binds.
Decided = Callable[["Card", "Decision", "ApprovalToken | None"], object]
# The old card and the one with the changed payload that replaced it.
Edited = Callable[["Card", "Card"], None]
Ended = Callable[["Card"], None]
# Returns what replaced a card whose records have changed since it was shown, or why nothing can.
BeforeApproval = Callable[["Card"], "Card | AnswerRefused | None"]
PauseEnded = Callable[["GatePause"], None]


@dataclass(frozen=True)
class CardHandlers:
    """What happens when a card is decided, edited, or ends without a decision (expired or withdrawn)."""

    decided: Decided
    edited: Edited
    ended: Ended
    before_approval: BeforeApproval


_cards: dict[tuple[str, str], CardHandlers] = {}
_pauses: dict[str, PauseEnded] = {}


def on_card(
    kind: CardKind,
    subject_kind: str,
    *,
    decided: Decided,
    edited: Edited = lambda old, new: None,
    ended: Ended = lambda card: None,
    before_approval: BeforeApproval = lambda card: None,
) -> None:
    """Register what becomes of cards of `kind` about `subject_kind`. Raises `ImproperlyConfigured` for a second one."""
    if (kind, subject_kind) in _cards:
        raise ImproperlyConfigured(f"E_CARD_HANDLER: cards {kind} about {subject_kind} have handlers already")
    _cards[kind, subject_kind] = CardHandlers(decided, edited, ended, before_approval)


def handlers_of(kind: str, subject_kind: str) -> CardHandlers:
    try:
        return _cards[kind, subject_kind]
    except KeyError:
        raise ImproperlyConfigured(f"E_CARD_HANDLER: no room handles cards {kind} about {subject_kind}") from None


def kinds_without_handlers() -> list[CardKind]:
    """Return the kinds of cards that no room opens."""
    return [kind for kind in CardKind if not any(kind == handled for handled, _ in _cards)]


def on_pause_end(subject_kind: str, handler: PauseEnded) -> None:
    """Register what happens when a pause of `subject_kind` was approved, declined, expired or withdrawn."""
    if _pauses.setdefault(subject_kind, handler) is not handler:
        raise ImproperlyConfigured(f"E_CARD_HANDLER: pauses of {subject_kind} have a handler already")


def pause_handler_of(subject_kind: str) -> PauseEnded:
    try:
        return _pauses[subject_kind]
    except KeyError:
        raise ImproperlyConfigured(f"E_CARD_HANDLER: no room handles pauses of {subject_kind}") from None
