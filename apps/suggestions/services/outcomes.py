"""Record how people decide about what the bot proposes: the evidence of calibration and preferences (spec 5.1.6, 6.6).

An outcome is recorded with the decision, in its transaction. An action has one outcome, the most negative decision
about it; a decision that is repeated changes nothing. In web processes and trusted workers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from uuid import UUID

from apps.approvals.enums import ApprovalScope, ApprovalVerdict, CardKind, Risk
from apps.approvals.models import ApprovalToken, Card, Decision
from apps.suggestions.calibration_policy import RANK
from apps.suggestions.enums import OutcomeKind
from apps.suggestions.models import Outcome, Suggestion
from apps.suggestions.queries import goal_of
from apps.suggestions.services.suggestion_schedule import schedule_suggestions
from apps.tenants.models import User
from apps.work.models import Batch, BatchItem, WorkItem
from apps.work.services.undo import ACTION as UNDO_ACTION

SUGGESTION_FAMILY = "suggestion:"
# A draft that lost a third of its text was too long.
_SHORTENED = 2 / 3


@dataclass(frozen=True)
class JudgedAction:
    """What a card decides about: an action of a family, started by a goal or not."""

    subject_id: UUID
    family: str
    goal: WorkItem | None = None


@dataclass(frozen=True)
class JudgedCards:
    """How cards of one kind are read: the outcome of each verdict (others record nothing), and the actions."""

    outcomes: Mapping[str, OutcomeKind]
    actions: Callable[[Card], list[JudgedAction]]


def record_decision(card: Card, decision: Decision, token: ApprovalToken | None) -> None:
    """Record a decision about a plan, a batch, a draft or an undo."""
    judged = _JUDGED.get(card.kind)
    kind = judged.outcomes.get(decision.verdict) if judged else None
    if judged is None or kind is None:
        return
    for action in judged.actions(card):
        _record(card, action, kind, user=decision.user)


def record_edit(old: Card, new: Card) -> None:
    """Record that a person removed items from a batch, or edited a plan or a draft."""
    judged = _JUDGED.get(old.kind)
    if judged is None or OutcomeKind.EDIT_SELECTION not in judged.outcomes.values():
        return
    shortened = len(str(new.body.get("draft", ""))) < _SHORTENED * len(str(old.body.get("draft", "")))
    for action in judged.actions(old):
        _record(old, action, OutcomeKind.EDIT_SELECTION, shortened=shortened)


def record_dismissal(suggestion: Suggestion, *, user: User) -> None:
    """Record a dismissed suggestion: a signal for preferences (spec 6.6), not a correction of an action."""
    Outcome.objects.create(
        deployment_id=suggestion.deployment_id,
        family=f"{SUGGESTION_FAMILY}{suggestion.action}",
        subject_id=suggestion.pk,
        kind=OutcomeKind.DISMISSED,
        risk=Risk.LOW,
        card_kind=CardKind.SUGGESTION,
        decided_by=user,
    )
    schedule_suggestions()


def _of_item(card: Card) -> list[JudgedAction]:
    """The first call of a plan or draft; nothing for a plan without calls."""
    item = WorkItem.objects.select_related("parent").filter(pk=card.subject_id).first()
    if item is None or not item.spec.calls:
        return []
    goal = goal_of(item) if card.kind == CardKind.PLAN else None
    return [JudgedAction(item.pk, item.spec.calls[0].tool, goal)]


def _of_batch(card: Card) -> list[JudgedAction]:
    action = Batch.objects.filter(pk=card.subject_id).values_list("action", flat=True).first()
    return [JudgedAction(card.subject_id, action)] if action and action != UNDO_ACTION else []


def _undone(card: Card) -> list[JudgedAction]:
    """What an undo reverts: the batch that was decided, or the one item."""
    undo = Batch.objects.filter(pk=card.subject_id).first()
    if undo is None or undo.undo_of is None:
        return []
    recorded = Outcome.objects.filter(subject_id=undo.undo_of).first()
    if recorded is not None:
        return [JudgedAction(recorded.subject_id, recorded.family, recorded.goal)]
    items = BatchItem.objects.filter(batch=undo).select_related(
        "work_item__follow_up_of__parent", "work_item__follow_up_of__approval_token"
    )
    original = next((item.work_item.follow_up_of for item in items if item.work_item.follow_up_of), None)
    if original is None or not original.spec.calls:
        return []
    token = original.approval_token
    goal = goal_of(original) if token is not None and token.scope == ApprovalScope.STANDING else None
    return [JudgedAction(undo.undo_of, original.spec.calls[0].tool, goal)]


_DECIDED: Mapping[str, OutcomeKind] = {
    ApprovalVerdict.APPROVED: OutcomeKind.APPROVED,
    ApprovalVerdict.DECLINED: OutcomeKind.DECLINED,
    ApprovalVerdict.CONDITIONAL: OutcomeKind.EDIT_SELECTION,
    ApprovalVerdict.EDIT_REQUESTED: OutcomeKind.EDIT_SELECTION,
}
_JUDGED: Mapping[str, JudgedCards] = {
    CardKind.PLAN: JudgedCards(_DECIDED, _of_item),
    CardKind.DRAFT_REVIEW: JudgedCards(_DECIDED, _of_item),
    CardKind.BATCH_REVIEW: JudgedCards(_DECIDED, _of_batch),
    CardKind.POST_EXECUTION: JudgedCards({ApprovalVerdict.APPROVED: OutcomeKind.UNDO}, _undone),
}


def _record(
    card: Card, action: JudgedAction, kind: OutcomeKind, *, user: User | None = None, shortened: bool = False
) -> None:
    """Keep the most negative decision about an action; repeating one changes nothing."""
    if card.deployment_id is None:
        return
    row, created = Outcome.objects.get_or_create(
        subject_id=action.subject_id,
        defaults={
            "kind": kind,
            "family": action.family[:80],
            "deployment_id": card.deployment_id,
            "risk": card.risk,
            "card_kind": card.kind,
            "goal": action.goal,
            "decided_by": user,
            "shortened": shortened,
        },
    )
    if created:
        schedule_suggestions()
        return
    outranked = RANK[: RANK.index(kind)] if kind in RANK else ()
    Outcome.objects.filter(pk=row.pk, kind__in=outranked).update(kind=kind)
    if row.decided_by_id is None and user is not None:
        Outcome.objects.filter(pk=row.pk).update(decided_by=user)
    if shortened:
        Outcome.objects.filter(pk=row.pk).update(shortened=True)
