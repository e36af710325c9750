"""Read work items, batches, goals and thresholds. Inside a tenant scope."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import OuterRef, Q, QuerySet, Subquery
from django.db.models.fields.json import KeyTextTransform

from apps.approvals.enums import ApprovalVerdict
from apps.approvals.models import Decision
from apps.gates.queries import blocking_gates
from apps.tenants import policy_seals
from apps.tenants.enums import PolicyKind
from apps.tenants.models import Deployment
from apps.work.confidence import Thresholds, stricter_of
from apps.work.enums import WorkItemStatus, WorkItemType, WorkReason
from apps.work.models import (
    VISITOR,
    Artifact,
    Attempt,
    Batch,
    BatchItem,
    Course,
    GoalCycle,
    ReviewPolicy,
    ThresholdChange,
    WorkItem,
)
from apps.work.schemas import WorkItemSpec
from kernel.canonical import sha256_hex
from kernel.clock import now
from kernel.errors import NotFound
from kernel.pagination import read_page
from kernel.tenancy import Read, built_once, current_tenant_id
from kernel.tenancy.reads import Rows

# How long a visitor who asks is told again why a request was declined.
TOLD_AGAIN = timedelta(days=7)
OPEN = (WorkItemStatus.PENDING, WorkItemStatus.RUNNING, WorkItemStatus.PAUSED)
_RELATED = ("deployment", "parent", "follow_up_of")
# First the seal over all active goals, then the goal that the deployment's row names.
_GOAL_PLAN = """
    SELECT version, signature, items FROM tenants_policyseal WHERE tenant_id = %s AND kind = 'goals'
    UNION ALL
    SELECT 0, id::text, plan FROM work_workitem WHERE id = %s AND tenant_id = %s AND type = 'goal'
"""


def work_items(*, session_id: UUID | None = None) -> QuerySet[WorkItem]:
    """Work items, newest first; optionally of one conversation."""
    items: QuerySet[WorkItem] = WorkItem.objects.select_related("deployment", "parent").order_by("-created_at")
    return items.filter(session_id=session_id) if session_id else items


def work_item(item_id: UUID) -> WorkItem:
    """Return an item with its deployment, parent and what it follows. Raises `NotFound` also for a foreign id."""
    item: WorkItem | None = WorkItem.objects.select_related(*_RELATED).filter(pk=item_id).first()
    if item is None:
        raise NotFound()
    return item


def open_items_of(*, subject: str, session_id: UUID | None) -> list[WorkItem]:
    """Open items of a customer in any conversation; for an unknown customer, those of this conversation."""
    whose = {"subject": subject} if subject else {"subject": "", "session_id": session_id}
    open_ones = WorkItem.objects.filter(status__in=OPEN, **whose).exclude(type=WorkItemType.GOAL)
    return list(open_ones.select_related("parent"))


def open_requests_of(*, subject: str, session_id: UUID | None) -> list[WorkItem]:
    """Open items that a visitor asked for, excluding those the company offered or found; a project counts as one."""
    items = open_items_of(subject=subject, session_id=session_id)
    return [item for item in items if item.requested_by == VISITOR and not item.is_part]


def finished_item_of(item_id: UUID, *, subject: str, session_id: UUID | None) -> WorkItem | None:
    """A finished item that can be followed up: the customer's own, or for an unknown customer the conversation's."""
    whose = {"subject": subject} if subject else {"subject": "", "session_id": session_id}
    done = WorkItem.objects.filter(pk=item_id, status=WorkItemStatus.DONE, **whose).exclude(type=WorkItemType.GOAL)
    item: WorkItem | None = done.first()
    return item


def course_of(item: WorkItem) -> Course:
    """The item's runtime state, to read only: writers must lock it (`locks.lock_course`)."""
    course: Course | None = Course.objects.filter(work_item=item).select_related("replaces").first()
    return course or Course(work_item=item)


def children_of(item: WorkItem) -> list[WorkItem]:
    """The tasks of a project in its own order; the items that a goal has started, newest first."""
    places = {name: place for place, name in enumerate(item.spec.tasks)}
    rows = item.children.select_related("deployment").order_by("-created_at")
    return sorted(rows, key=lambda child: places.get(str(child.pk), 0))


def thresholds_of(deployment_id: UUID | None) -> Thresholds:
    """A deployment's review thresholds: from its own policy, otherwise from the settings."""
    policy = ReviewPolicy.objects.filter(deployment_id=deployment_id).first() if deployment_id else None
    usual = settings.BATCH_REVIEW
    own = {name: getattr(policy, name, None) for name in ("high_min", "medium_min", "default_size")}
    values = {name: usual[name] if value is None else value for name, value in own.items()}
    return Thresholds(values["high_min"], values["medium_min"], int(values["default_size"]))


def change_of(deployment_id: UUID | None, family: str) -> ThresholdChange | None:
    """The newest threshold change of a family of actions, unless the deployment's own numbers have changed since."""
    if deployment_id is None:
        return None
    newest: ThresholdChange | None = (
        ThresholdChange.objects.filter(deployment_id=deployment_id, family=family).order_by("-number").first()
    )
    usual = thresholds_of(deployment_id)
    return newest if newest is not None and newest.is_of(usual) else None


def earned_thresholds(deployment_id: UUID | None, family: str, *, earns: bool) -> Thresholds:
    """The thresholds of one family of actions. Without `earns` the stricter of earned and usual numbers apply."""
    usual, change = thresholds_of(deployment_id), change_of(deployment_id, family)
    if change is None:
        return usual
    earned = change.thresholds(usual)
    return earned if earns else stricter_of(earned, usual)


def lines_of(batch: Batch) -> QuerySet[BatchItem]:
    """The lines of a batch in order, each with its work item."""
    lines: QuerySet[BatchItem] = BatchItem.objects.filter(batch=batch).select_related("work_item").order_by("position")
    return lines


def items_of(batch: Batch) -> list[WorkItem]:
    """The items that run with the batch, in order, without those that left it for a card of their own."""
    return [line.work_item for line in lines_of(batch) if line.work_item.batch_id == batch.pk]


def count_left_out(batch_id: UUID) -> int:
    """Number of items that left the batch for a card of their own."""
    return int(BatchItem.objects.filter(batch=batch_id).exclude(work_item__batch=batch_id).count())


def standing_items_of(goal: WorkItem, *, subject: str, since: datetime) -> list[WorkItem]:
    """Items that ran, or may still run, for this customer under the goal's standing approval since that time."""
    ended_without_effect = (WorkItemStatus.BLOCKED, WorkItemStatus.FAILED)
    children = WorkItem.objects.filter(parent=goal, subject=subject, created_at__gte=since)
    return list(children.filter(approval_token__scope="standing").exclude(status__in=ended_without_effect))


def pending_of(requested_by: str) -> list[WorkItem]:
    """Items of this requester that still wait for approval."""
    return list(WorkItem.objects.filter(requested_by=requested_by, status=WorkItemStatus.PENDING))


def open_work(session_id: UUID, *, subject: str) -> Read[Rows]:
    """Open items of this customer, or of an unknown one, in a conversation, each as (customer, title); oldest first."""
    return _open_work.columns(session_id, subject)


@built_once
def _open_work(session_id: UUID, subject: str) -> QuerySet[WorkItem, Any]:
    items = WorkItem.objects.filter(session_id=session_id, subject__in=("", subject), status__in=OPEN)
    return items.exclude(type=WorkItemType.GOAL).order_by("created_at").values_list("subject", "title")


def declined_work(session_id: UUID, *, subject: str) -> Read[Rows]:
    """What was declined in a conversation within the last week for this customer, or an unknown one, each as
    (customer, title, reason that the visitor was told); oldest first."""
    return _declined_work.columns(session_id, subject, now() - TOLD_AGAIN)


@built_once
def _declined_work(session_id: UUID, subject: str, since: datetime) -> QuerySet[WorkItem, Any]:
    declined = Decision.objects.filter(
        Q(card__subject_id=OuterRef("pk")) | Q(card__subject_id=OuterRef("batch_id")), verdict=ApprovalVerdict.DECLINED
    )
    items = WorkItem.objects.filter(
        session_id=session_id,
        subject__in=("", subject),
        status=WorkItemStatus.BLOCKED,
        reason=WorkReason.DECLINED,
        updated_at__gte=since,
    )
    why = Subquery(declined.values(why=KeyTextTransform("reason", "said"))[:1])
    return items.annotate(why=why).order_by("updated_at").values_list("subject", "title", "why")


def active_goal(deployment: Deployment) -> WorkItem | None:
    """The goal that governs a deployment's conversations (levels, escalations, template), if it has one."""
    if deployment.active_goal_id is None:
        return None
    goals = WorkItem.objects.select_related("approval_token").filter(type=WorkItemType.GOAL)
    goal: WorkItem | None = goals.filter(pk=deployment.active_goal_id).first()
    return goal


def deployments_with_goals() -> list[tuple[Deployment, WorkItem]]:
    """Each deployment whose conversations a goal governs, with that goal; two statements."""
    places = list(Deployment.objects.exclude(active_goal_id=None).order_by("title"))
    goals = WorkItem.objects.filter(type=WorkItemType.GOAL).in_bulk([place.active_goal_id for place in places])
    return [(place, goals[place.active_goal_id]) for place in places if place.active_goal_id in goals]


def active_goal_spec(deployment: Deployment) -> Read[WorkItemSpec | None]:
    """The certified goal of a deployment, as a turn reads it. A goal that was set by SQL, or is gone, is replaced by
    one that blocks everything and has no tools.

    One statement, so that seal and goal are of one moment; each plan text is parsed once.
    """
    tenant_id = current_tenant_id()
    values = [tenant_id, deployment.active_goal_id, tenant_id]
    return Read(_GOAL_PLAN, values, partial(_goal_spec, deployment, tenant_id))


def _goal_spec(deployment: Deployment, tenant_id: UUID, rows: Rows) -> WorkItemSpec | None:
    sealed = policy_seals.verified_items(tenant_id, PolicyKind.GOALS, [row for row in rows if row[0]])
    expected = None if sealed is None else sealed.get(str(deployment.pk), "")
    goal_rows = [(goal_id, plan) for version, goal_id, plan in rows if not version]
    # Without a goal both sides are empty and agree.
    if expected == "".join(_sealed_goal(*goal) for goal in goal_rows):
        return _spec(goal_rows[0][1]) if goal_rows else None
    policy_seals.report_untrusted(PolicyKind.GOALS, str(deployment.pk), "forged" if goal_rows else "missing")
    return _blocking_goal()


@functools.lru_cache(maxsize=256)
def _sealed_goal(goal_id: str, plan: str) -> str:
    return policy_seals.digest(_goal_value(goal_id, plan))


def _goal_value(goal_id: str, plan: str) -> dict[str, str]:
    return {"goal": goal_id, "plan": sha256_hex(plan)}


@functools.cache
def _blocking_goal() -> WorkItemSpec:
    gates = list(blocking_gates("goal"))
    return WorkItemSpec(id="none", type=WorkItemType.GOAL, title="Not certified", body="", gates=gates)


def sealed_goal(deployment: Deployment) -> dict[str, str] | None:
    """The value that is sealed for the deployment's goal when it is saved; None without a goal."""
    if deployment.active_goal_id is None:
        return None
    plans = WorkItem.objects.filter(pk=deployment.active_goal_id, type=WorkItemType.GOAL).values_list("plan", flat=True)
    return next((_goal_value(str(deployment.active_goal_id), plan) for plan in plans), None)


def sealed_goals() -> dict[str, dict[str, str]]:
    """The values of all goals in this tenant, for `manage.py certify`."""
    sealed = {str(place.pk): sealed_goal(place) for place in Deployment.objects.exclude(active_goal_id=None)}
    return {name: value for name, value in sealed.items() if value is not None}


@functools.lru_cache(maxsize=256)
def _spec(plan: str) -> WorkItemSpec:
    return WorkItemSpec.model_validate_json(plan)


def tasks_and_projects(limit: int) -> QuerySet[WorkItem]:
    """Top-level tasks and projects, newest first: no task of a project, no undo that was only offered."""
    items: QuerySet[WorkItem] = WorkItem.objects.filter(_is_task_or_project()).select_related("deployment", "parent")
    return items.order_by("-created_at")[:limit]


def goals() -> QuerySet[WorkItem]:
    """Goals that govern a deployment or are checked on a schedule."""
    items: QuerySet[WorkItem] = WorkItem.objects.filter(_is_goal_in_use()).select_related("deployment")
    return items.order_by("-created_at")


def _is_task_or_project() -> Q:
    offered_undo = Q(batch__undo_of__isnull=False, approval_token=None)
    return ~Q(type=WorkItemType.GOAL) & ~Q(parent__type=WorkItemType.PROJECT) & ~offered_undo


def _is_goal_in_use() -> Q:
    governing = Deployment.objects.exclude(active_goal_id=None).values("active_goal_id")
    return Q(type=WorkItemType.GOAL) & (Q(pk__in=governing) | Q(due_at__isnull=False))


@dataclass(frozen=True)
class WorkFilter:
    """Which items to list; None means any. Without `parent` only what stands on its own: no task of a project, no undo
    that was only offered, no goal that is not in use."""

    status: WorkItemStatus | None = None
    reason: WorkReason | None = None
    type: WorkItemType | None = None
    deployment: UUID | None = None
    session: UUID | None = None
    parent: UUID | None = None

    def condition(self) -> Q:
        chosen = {
            "status": self.status,
            "reason": self.reason,
            "type": self.type,
            "deployment_id": self.deployment,
            "session_id": self.session,
            "parent_id": self.parent,
        }
        condition = Q(**{name: value for name, value in chosen.items() if value is not None})
        return condition if self.parent else condition & (_is_task_or_project() | _is_goal_in_use())


def list_items(chosen: WorkFilter, *, before: str, limit: int) -> tuple[list[WorkItem], str]:
    """The items that match, newest first, and the cursor of the next page."""
    rows = WorkItem.objects.filter(chosen.condition()).select_related("deployment")
    return read_page(rows, before=before, limit=limit)


def attempts_of(item: WorkItem) -> list[Attempt]:
    """The item's attempts in order, each with its verification and the calls that it made."""
    attempts = Attempt.objects.filter(work_item=item).select_related("verification").prefetch_related("ledger")
    return list(attempts.order_by("number"))


def cycles_of(goal: WorkItem, limit: int) -> QuerySet[GoalCycle]:
    """The newest cycles of a goal, each with the repair that it started."""
    cycles: QuerySet[GoalCycle] = (
        GoalCycle.objects.filter(goal=goal).select_related("spawned__parent").order_by("-due_at")
    )
    return cycles[:limit]


def files_left_by(item: WorkItem) -> list[str]:
    """Names of the files that the item's calls left."""
    names = Artifact.objects.filter(attempt__work_item=item).order_by("name").values_list("name", flat=True)
    return list(names.distinct())
