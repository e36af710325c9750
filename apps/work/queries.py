"""What is promised and how far is it? Read inside a tenant scope."""

from __future__ import annotations

from uuid import UUID

from django.db.models import QuerySet

from apps.tenants.models import Deployment
from apps.work.enums import WorkItemStatus, WorkItemType
from apps.work.models import WorkItem
from apps.work.schemas import WorkItemSpec
from kernel.errors import NotFound

_OPEN = (WorkItemStatus.PENDING, WorkItemStatus.RUNNING, WorkItemStatus.PAUSED)


def work_items(*, deployment_id: UUID | None = None, session_id: UUID | None = None) -> QuerySet[WorkItem]:
    """Newest first; of one deployment or conversation when given."""
    items: QuerySet[WorkItem] = WorkItem.objects.select_related("deployment").order_by("-created_at")
    items = items.filter(deployment_id=deployment_id) if deployment_id else items
    return items.filter(session_id=session_id) if session_id else items


def work_item(item_id: UUID) -> WorkItem:
    """One item with its deployment. Raises `NotFound` for an unknown or foreign id."""
    found: WorkItem | None = WorkItem.objects.select_related("deployment").filter(pk=item_id).first()
    if found is None:
        raise NotFound("work item")
    return found


def open_work_titles(session_id: UUID) -> list[str]:
    """What a conversation still waits for, oldest first."""
    waiting = work_items(session_id=session_id).filter(status__in=_OPEN).exclude(type=WorkItemType.GOAL)
    return list(waiting.order_by("created_at").values_list("title", flat=True))


def active_goal(deployment: Deployment) -> WorkItem | None:
    """The goal that governs a deployment's conversations (levels, escalations, template), if it has one."""
    if deployment.active_goal_id is None:
        return None
    goals = WorkItem.objects.select_related("approval_token").filter(type=WorkItemType.GOAL)
    goal: WorkItem | None = goals.filter(pk=deployment.active_goal_id).first()
    return goal


def active_goal_spec(deployment: Deployment) -> WorkItemSpec | None:
    goal = active_goal(deployment)
    return goal.spec if goal else None
