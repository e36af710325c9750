"""What is promised and how far is it? Read inside a tenant scope."""

from __future__ import annotations

import functools
from datetime import datetime
from uuid import UUID

from django.db import connection
from django.db.models import QuerySet

from apps.tenants.models import Deployment
from apps.work.enums import WorkItemStatus, WorkItemType
from apps.work.models import WorkItem
from apps.work.schemas import WorkItemSpec
from kernel.errors import NotFound
from kernel.tenancy import current_tenant_id

_OPEN = (WorkItemStatus.PENDING, WorkItemStatus.RUNNING, WorkItemStatus.PAUSED)
_OPEN_TITLES = """
    SELECT title FROM work_workitem
    WHERE tenant_id = %s AND session_id = %s AND subject IN ('', %s) AND status = ANY(%s) AND type <> 'goal'
    ORDER BY created_at
"""
_GOAL_PLAN = "SELECT plan FROM work_workitem WHERE id = %s AND tenant_id = %s AND type = 'goal'"


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


def open_items_of(*, subject: str, session_id: UUID | None) -> list[WorkItem]:
    """What is under way for a customer, in whatever conversation; for nobody's, what this conversation waits for."""
    whose = {"subject": subject} if subject else {"subject": "", "session_id": session_id}
    return list(WorkItem.objects.filter(status__in=_OPEN, **whose).exclude(type=WorkItemType.GOAL))


def standing_items_of(goal: WorkItem, *, subject: str, since: datetime) -> list[WorkItem]:
    """What the goal's standing approval has let run for this customer since then, or may still."""
    ended_without_effect = (WorkItemStatus.BLOCKED, WorkItemStatus.FAILED)
    children = WorkItem.objects.filter(parent=goal, subject=subject, created_at__gte=since)
    return list(children.filter(approval_token__scope="standing").exclude(status__in=ended_without_effect))


def open_work_titles(session_id: UUID, *, subject: str) -> list[str]:
    """What this customer, or nobody in particular, still waits for in a conversation; oldest first."""
    with connection.cursor() as cursor:
        cursor.execute(_OPEN_TITLES, [current_tenant_id(), session_id, subject, [status.value for status in _OPEN]])
        return [title for (title,) in cursor.fetchall()]


def active_goal(deployment: Deployment) -> WorkItem | None:
    """The goal that governs a deployment's conversations (levels, escalations, template), if it has one."""
    if deployment.active_goal_id is None:
        return None
    goals = WorkItem.objects.select_related("approval_token").filter(type=WorkItemType.GOAL)
    goal: WorkItem | None = goals.filter(pk=deployment.active_goal_id).first()
    return goal


def active_goal_spec(deployment: Deployment) -> WorkItemSpec | None:
    """What a turn reads of the goal: its plan, which is parsed once for each text that it ever was."""
    if deployment.active_goal_id is None:
        return None
    with connection.cursor() as cursor:
        cursor.execute(_GOAL_PLAN, [deployment.active_goal_id, current_tenant_id()])
        row = cursor.fetchone()
    return _spec(row[0]) if row else None


@functools.lru_cache(maxsize=256)
def _spec(plan: str) -> WorkItemSpec:
    return WorkItemSpec.model_validate_json(plan)
