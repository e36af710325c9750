"""Ask for something else instead: an edited payload is a new payload, with a new hash, a new card and a new yes.

Always holds: the card that was edited is settled as `edit_requested` and can never be approved; its successor stands in
its place, about the same subject, at no lower a risk. Whoever rewrites something grave has asked for it themselves,
and cannot be the one who approves it unless policy says so. Runs inside the caller's tenant scope.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from apps.approvals import locks, payloads, risk, signals
from apps.approvals.asks import About, Binding, CardText
from apps.approvals.enums import ApprovalScope, ApprovalVerdict, CardKind, CardStatus, Risk
from apps.approvals.models import Card, Decision
from apps.approvals.schemas import Fact
from apps.approvals.services import answers
from apps.approvals.services.cards import open_card, require_whole
from apps.approvals.services.course import note, require_approver, require_waiting, settle
from apps.audit.enums import AuditEvent
from kernel.errors import SilasError


def edit_card(
    card_id: UUID,
    *,
    user: Any,
    payload: Mapping[str, Any],
    text: CardText | None = None,
    body: Mapping[str, Any] | None = None,
    declared_risk: Risk = Risk.LOW,
    reads: Sequence[Mapping[str, Any]] | None = None,
) -> Card:
    """Void the card and open the one that asks for `payload`. What is left out is said as on the old card.

    Tells `card_edited` (not `card_decided`) in the same transaction. Raises `SilasError`: `edit_changes_nothing`,
    `edit_changes_subject`; 409 when the old card is settled; and what `open_card` raises.
    """
    require_approver(user)
    old = locks.lock_card(card_id)
    require_waiting(old)
    require_whole(old)
    _require_edit(old, payload)
    _void(old, user)
    new = open_card(
        CardKind(old.kind),
        about=_about(old, user),
        binding=_binding(old, payload, declared_risk, old.reads if reads is None else reads),
        text=text or text_of(old),
        body=old.body if body is None else body,
        supersedes=old,
    )
    note(AuditEvent.CARD_EDITED, old, actor=f"user:{user.pk}", successor=str(new.pk))
    signals.card_edited(old, new)
    signals.card_changed(old)
    return new


def text_of(card: Card) -> CardText:
    """What a card says, for whoever says some of it otherwise."""
    facts = [Fact(**fact) for fact in card.facts]
    return CardText(card.intent, card.rationale, card.consequence, card.affected, facts, card.details)


def _binding(old: Card, payload: Mapping[str, Any], declared: Risk, reads: Sequence[Mapping[str, Any]]) -> Binding:
    return Binding(
        ApprovalScope(old.scope),
        payload,
        reversible=True,  # the old card's rung has counted it already
        declared_risk=risk.highest(Risk(old.risk), declared),
        max_executions=old.max_executions,
        token_seconds=old.token_seconds,
        reads=reads,
    )


def _about(old: Card, user: Any) -> About:
    asked_by = f"user:{user.pk}" if risk.is_at_least(Risk(old.risk), Risk.HIGH) else old.requested_by
    return About(old.subject_kind, old.subject_id, old.deployment_id, old.session_id, asked_by)


def _require_edit(old: Card, payload: Mapping[str, Any]) -> None:
    asked, before = payloads.approvable(ApprovalScope(old.scope), payload), old.payload_hash
    if asked.plan_hash == before:
        raise SilasError("edit_changes_nothing", "This is what the card asks for already.")
    if asked.id != payloads.approvable(ApprovalScope(old.scope), old.payload).id:
        raise SilasError("edit_changes_subject", "An edit stays about the same thing.")


def _void(old: Card, user: Any) -> None:
    answer = answers.take_answer(
        old, user=user, verdict=ApprovalVerdict.EDIT_REQUESTED, conditions={}, said={}, step_up=""
    )
    Decision.objects.create(card=old, user=user, verdict=answer.verdict, decided_at=answer.answered_at)
    settle(old, CardStatus.DECIDED)
