"""Read the settings of this room, preferences, and what outcomes are about. Inside a tenant scope."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from django.db.models import Q, QuerySet

from apps.approvals.enums import CardKind
from apps.approvals.models import Card
from apps.autonomy.enums import ProposalState
from apps.suggestions.models import InitiativeSettings, Preference
from apps.suggestions.preference_policy import DRAFTS
from apps.work.enums import WorkItemType
from apps.work.models import Batch, WorkItem
from kernel.clock import now
from kernel.errors import NotFound


def initiative_settings() -> InitiativeSettings:
    """The company's settings, or unsaved defaults."""
    row: InitiativeSettings | None = InitiativeSettings.objects.first()
    return row or InitiativeSettings()


def goal_of(item: WorkItem) -> WorkItem | None:
    """The goal whose template the item is a use of, or None."""
    parent = item.parent
    return parent if parent is not None and parent.type == WorkItemType.GOAL else None


def preferences_of(deployment_id: UUID) -> list[Preference]:
    """The deployment's preferences that count now or wait for a decision, newest first."""
    rows = Preference.objects.filter(deployment_id=deployment_id).select_related("decided_by")
    shown = rows.filter(Q(state=ProposalState.PROPOSED) | _in_effect(now()))
    return list(shown.order_by("-created_at"))


def preference_of(deployment_id: UUID, preference_id: UUID) -> Preference:
    """Raises `NotFound`, also for a preference of another deployment."""
    row: Preference | None = Preference.objects.filter(pk=preference_id, deployment_id=deployment_id).first()
    if row is None:
        raise NotFound()
    return row


def preferences_behind(card: Card) -> QuerySet[Preference]:
    """The preferences about this kind of action that were in effect when the card was opened.

    Only the bot's own proposals are prepared with them; other cards have none.
    """
    if card.deployment_id is None:
        return Preference.objects.none()
    families = _FAMILIES[card.kind](card) if card.kind in _FAMILIES else []
    rows: QuerySet[Preference] = Preference.objects.filter(
        _in_effect(card.created_at), deployment_id=card.deployment_id, family__in=families
    )
    return rows.order_by("created_at")


def _in_effect(moment: datetime) -> Q:
    return Q(state=ProposalState.KEPT, decided_at__lte=moment, expires_at__gt=moment)


def _plan_families(card: Card) -> list[str]:
    item: WorkItem | None = WorkItem.objects.filter(pk=card.subject_id).first()
    return [call.tool for call in item.spec.calls] if item is not None else []


def _draft_families(card: Card) -> list[str]:
    return [DRAFTS, *_plan_families(card)]


def _batch_families(card: Card) -> list[str]:
    return list(Batch.objects.filter(pk=card.subject_id).values_list("action", flat=True))


_FAMILIES = {
    CardKind.PLAN.value: _plan_families,
    CardKind.DRAFT_REVIEW.value: _draft_families,
    CardKind.BATCH_REVIEW.value: _batch_families,
}
