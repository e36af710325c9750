"""What calibration may change, one class per kind: batches of a family of actions, and a goal's standing approval.

A target says which decisions count, what the next step is, and how an approved step is applied. A family is the name of
a tool for batches, `goal:<id>` for the uses and days of a standing approval, and `scope:<id>:<argument>` for an
argument that it does not leave open yet (spec 5.1.6, 5.9). In web processes and trusted workers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar
from uuid import UUID

from django.db.models import QuerySet

from apps.approvals.enums import ApprovalScope, CardKind, Risk
from apps.approvals.models import ApprovalToken
from apps.suggestions.calibration_policy import DecidedAction
from apps.suggestions.enums import FreedomState, OutcomeKind
from apps.suggestions.models import FreedomProposal, Outcome
from apps.tenants.models import Deployment, User
from apps.work.enums import Direction, WorkItemStatus, WorkItemType
from apps.work.models import ThresholdChange, WorkItem
from apps.work.services import standing_terms, thresholds
from apps.work.services.standing_terms import StandingTerms
from kernel.canonical import canonical_json
from kernel.stored_texts import stored_text
from llm.calls import PlannedCall

_MOST_DECISIONS = 500
_MAX_ARGUMENT = 36
_BATCH_NOTE = stored_text("{count:d} of {decisions} were corrected. Each action still needs approval.")
_STANDING_NOTE = stored_text("{count:d} of {decisions} were corrected. The permission itself is given on its own card.")


@dataclass(frozen=True)
class ProposedChange:
    """The exact changes as an approval binds them, and the words of their card. `goal_id`: see `autonomy_payload`."""

    changes: list[dict[str, str]]
    goal_id: str
    action: str
    note: str
    approve: str
    decline: str


class Target(ABC):
    """A kind of approvals that decisions may reduce or increase."""

    prefix: ClassVar[str]

    @abstractmethod
    def families(self, deployment: Deployment, since: datetime) -> list[str]:
        """The families about which something was decided since then."""

    @abstractmethod
    def decisions(self, deployment: Deployment, family: str, since: datetime) -> list[DecidedAction]:
        """The actions of the family that were decided, or done without a correction, since then."""

    @abstractmethod
    def last_change(self, deployment: Deployment, family: str) -> tuple[Direction, datetime] | None:
        """Which way approvals of the family were changed last, and when."""

    @abstractmethod
    def change(self, deployment: Deployment, family: str, direction: Direction) -> ProposedChange | None:
        """The next step in that direction; None if there is none."""

    @abstractmethod
    def apply(self, payload: Mapping[str, object], token: ApprovalToken, user: User) -> bool:
        """Spend the approval for exactly these changes; False where they no longer fit."""

    @abstractmethod
    def tighten(self, deployment_id: UUID, family: str, user: User) -> bool:
        """Require approval more often, at once; False if nothing was left to tighten."""


class BatchReview(Target):
    """How many items a batch of a family holds, and from which confidence."""

    prefix = ""

    def families(self, deployment: Deployment, since: datetime) -> list[str]:
        rows = self._outcomes(deployment).filter(decided_at__gte=since)
        return list(rows.order_by("family").values_list("family", flat=True).distinct())

    def decisions(self, deployment: Deployment, family: str, since: datetime) -> list[DecidedAction]:
        return _decided(self._outcomes(deployment).filter(family=family, decided_at__gte=since))

    def last_change(self, deployment: Deployment, family: str) -> tuple[Direction, datetime] | None:
        last = ThresholdChange.objects.filter(deployment=deployment, family=family).order_by("-number").first()
        return (Direction(last.direction), last.changed_at) if last else None

    def change(self, deployment: Deployment, family: str, direction: Direction) -> ProposedChange | None:
        before = thresholds.current(deployment.pk, family)
        after = thresholds.step(deployment.pk, family, direction)
        changes = thresholds.changes(before, after)
        if not changes:
            return None
        return ProposedChange(
            changes,
            goal_id=thresholds.payload_scope(deployment.pk, family)["goal_id"],
            action=family,
            note=_BATCH_NOTE,
            approve=stored_text("Batches of {count:d}, from {percent:d}% sure").format(
                count=after.size, percent=round(after.high_min * 100)
            ),
            decline=stored_text("Keep batches of {count:d}, from {percent:d}% sure").format(
                count=before.size, percent=round(before.high_min * 100)
            ),
        )

    def apply(self, payload: Mapping[str, object], token: ApprovalToken, user: User) -> bool:
        return thresholds.apply(payload, token, user=user) is not None

    def tighten(self, deployment_id: UUID, family: str, user: User) -> bool:
        return thresholds.tighten(deployment_id, family, user=user) is not None

    def _outcomes(self, deployment: Deployment) -> QuerySet[Outcome]:
        """Decisions about batches, drafts and their undo. A plan on a card of its own says nothing about batches."""
        rows: QuerySet[Outcome] = Outcome.objects.filter(deployment=deployment, goal=None)
        return rows.exclude(kind=OutcomeKind.DISMISSED).exclude(card_kind=CardKind.PLAN)


class StandingTarget(Target):
    """Terms of a goal's standing approval."""

    def last_change(self, deployment: Deployment, family: str) -> tuple[Direction, datetime] | None:
        rows = FreedomProposal.objects.filter(deployment=deployment, family=family).exclude(settled_at=None)
        last = rows.filter(state__in=[FreedomState.APPLIED, FreedomState.TIGHTENED]).order_by("-settled_at").first()
        if last is None or last.settled_at is None:
            return None
        tightened = last.state == FreedomState.TIGHTENED
        return Direction.TIGHTEN if tightened else Direction(last.direction), last.settled_at

    def apply(self, payload: Mapping[str, object], token: ApprovalToken, user: User) -> bool:
        return standing_terms.apply(payload, token, user=user) is not None

    def tighten(self, deployment_id: UUID, family: str, user: User) -> bool:
        return standing_terms.end(_goal_id(family), user=user)

    def _goals(self, deployment: Deployment) -> QuerySet[WorkItem]:
        """The deployment's goals that have had a standing approval and are not over."""
        rows: QuerySet[WorkItem] = WorkItem.objects.filter(
            deployment=deployment, type=WorkItemType.GOAL, approval_token__isnull=False
        )
        return rows.exclude(status=WorkItemStatus.BLOCKED).select_related("approval_token").order_by("created_at")


class StandingUses(StandingTarget):
    """How often, and for how long, a goal may act without asking again."""

    prefix = "goal:"

    def families(self, deployment: Deployment, since: datetime) -> list[str]:
        return [f"{self.prefix}{goal.pk}" for goal in self._goals(deployment)]

    def decisions(self, deployment: Deployment, family: str, since: datetime) -> list[DecidedAction]:
        """Decisions about actions of the goal, and those that it did without asking and that were not corrected."""
        goal_id = _goal_id(family)
        rows = Outcome.objects.filter(goal=goal_id, decided_at__gte=since).exclude(kind=OutcomeKind.DISMISSED)
        judged = set(rows.values_list("subject_id", flat=True))
        done = WorkItem.objects.filter(
            parent=goal_id,
            status=WorkItemStatus.DONE,
            approval_token__scope=ApprovalScope.STANDING,
            updated_at__gte=since,
        )
        quiet = done.exclude(pk__in=judged).order_by("-updated_at").values_list("updated_at", flat=True)
        return [
            *_decided(rows),
            *(DecidedAction(OutcomeKind.APPROVED, Risk.LOW, at) for at in quiet[:_MOST_DECISIONS]),
        ]

    def change(self, deployment: Deployment, family: str, direction: Direction) -> ProposedChange | None:
        goal = self._goals(deployment).filter(pk=_goal_id(family)).first()
        state = standing_terms.standing_state(goal) if goal else None
        if goal is None or state is None:
            return None
        if direction is Direction.WIDEN:
            after = standing_terms.wider_terms(state) if standing_terms.may_earn(goal) else state.terms
        else:
            after = state.terms if state.used_up or state.expired else standing_terms.tighter_terms(state)
        return _standing_change(goal, state.terms, after)


class StandingScope(StandingTarget):
    """Which arguments of a goal's template may have another value than the one that its author wrote."""

    prefix = "scope:"

    def families(self, deployment: Deployment, since: datetime) -> list[str]:
        return sorted(
            {
                f"{self.prefix}{goal.pk}:{argument}"
                for goal in self._goals(deployment)
                for _, argument in self._near_misses(deployment, goal, since)
                if len(argument) <= _MAX_ARGUMENT
            }
        )

    def decisions(self, deployment: Deployment, family: str, since: datetime) -> list[DecidedAction]:
        goal = self._goals(deployment).filter(pk=_goal_id(family)).first()
        if goal is None:
            return []
        named = family.rsplit(":", 1)[1]
        return [action for action, argument in self._near_misses(deployment, goal, since) if argument == named]

    def change(self, deployment: Deployment, family: str, direction: Direction) -> ProposedChange | None:
        goal = self._goals(deployment).filter(pk=_goal_id(family)).first()
        state = standing_terms.standing_state(goal) if goal else None
        if goal is None or state is None or direction is Direction.TIGHTEN or not standing_terms.may_earn(goal):
            return None
        return _standing_change(goal, state.terms, standing_terms.opened(state.terms, family.rsplit(":", 1)[1]))

    def _near_misses(self, deployment: Deployment, goal: WorkItem, since: datetime) -> list[tuple[DecidedAction, str]]:
        """Decided plans that differ from the goal's template in the value of one argument, each with that argument."""
        template = standing_terms.template_of(goal.spec)
        if template is None:
            return []
        rows = Outcome.objects.filter(
            deployment=deployment, family=template.tool, card_kind=CardKind.PLAN, goal=None, decided_at__gte=since
        ).order_by("-decided_at")[:_MOST_DECISIONS]
        items = WorkItem.objects.in_bulk([row.subject_id for row in rows])
        found = []
        for row in rows:
            calls = items[row.subject_id].spec.calls if row.subject_id in items else ()
            argument = _only_difference(template, calls[0]) if len(calls) == 1 else None
            if argument is not None:
                found.append((DecidedAction(OutcomeKind(row.kind), row.risk, row.decided_at), argument))
        return found


TARGETS: tuple[Target, ...] = (BatchReview(), StandingUses(), StandingScope())


def target_of(family: str) -> Target:
    return next((target for target in TARGETS if target.prefix and family.startswith(target.prefix)), TARGETS[0])


def _decided(rows: QuerySet[Outcome]) -> list[DecidedAction]:
    newest = rows.order_by("-decided_at")[:_MOST_DECISIONS]
    return [DecidedAction(OutcomeKind(row.kind), row.risk, row.decided_at) for row in newest]


def _goal_id(family: str) -> UUID:
    return UUID(family.split(":")[1])


def _only_difference(template: PlannedCall, call: PlannedCall) -> str | None:
    """The one argument in which the call differs from the template's constants; None for none, or for several."""
    if set(template.args) != set(call.args):
        return None
    other = [
        name
        for name, value in template.args.items()
        if value != f"${name}" and canonical_json(value) != canonical_json(call.args[name])
    ]
    return other[0] if len(other) == 1 else None


def _standing_change(goal: WorkItem, before: StandingTerms, after: StandingTerms) -> ProposedChange | None:
    changes = standing_terms.changes(before, after)
    if not changes:
        return None
    added = sorted(after.open_args - before.open_args)
    approve = (
        stored_text("Ask for a permission with any value of {argument}").format(argument=", ".join(added))
        if added
        else stored_text("Ask for a permission of {count:d} times in {days:d} days").format(
            count=after.uses, days=after.days
        )
    )
    return ProposedChange(
        changes,
        goal_id=str(goal.pk),
        action=goal.title,
        note=_STANDING_NOTE,
        approve=approve,
        decline=stored_text("Keep {count:d} times in {days:d} days").format(count=before.uses, days=before.days),
    )
