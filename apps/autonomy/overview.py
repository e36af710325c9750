"""Summaries of automations for the console and the API, each in a fixed number of queries. Inside a scope."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from uuid import UUID

from django.db.models import OuterRef, QuerySet, Subquery, Sum

from apps.autonomy import queries
from apps.autonomy.enums import FINAL
from apps.autonomy.models import AutonomousSession, Outbox, Task, Trigger, Webhook
from kernel.clock import now
from kernel.errors import NotFound

SPENT_DAYS = 30


@dataclass(frozen=True)
class TaskOverview:
    """A task with its triggers, its newest session, and what its sessions of the last 30 days cost in dollars."""

    task: Task
    triggers: tuple[Trigger, ...]
    last: AutonomousSession | None
    spent: Decimal

    @property
    def next_at(self) -> datetime | None:
        return min((trigger.next_at for trigger in self.triggers if trigger.enabled and trigger.next_at), default=None)


def task_overviews(tasks: list[Task] | None = None) -> list[TaskOverview]:
    """Overviews of these tasks, or of all that are not deleted."""
    chosen = queries.tasks() if tasks is None else tasks
    ids = [task.pk for task in chosen]
    triggers: dict[UUID, list[Trigger]] = defaultdict(list)
    for trigger in Trigger.objects.filter(task_id__in=ids, deleted_at=None).order_by("created_at"):
        triggers[trigger.task_id].append(trigger)
    newest, spent = _newest(ids), _spent(ids)
    return [
        TaskOverview(task, tuple(triggers[task.pk]), newest.get(task.pk), spent.get(task.pk, Decimal(0)))
        for task in chosen
    ]


def unfinished_sessions(limit: int) -> list[AutonomousSession]:
    """Sessions that run or wait, newest first."""
    return list(_sessions().exclude(status__in=FINAL).order_by("-queued_at", "pk")[:limit])


def finished_sessions(limit: int) -> list[AutonomousSession]:
    """Sessions that are over, newest first."""
    return list(_sessions().filter(status__in=FINAL).order_by("-queued_at", "pk")[:limit])


def trigger(trigger_id: UUID, *, task_id: UUID | None = None) -> Trigger:
    """Raises `NotFound` for a foreign or deleted trigger, and for one of another task than `task_id`."""
    rows = Trigger.objects.select_related("task").filter(deleted_at=None, task__deleted_at=None)
    row: Trigger | None = rows.filter(pk=trigger_id).first()
    if row is None or task_id not in (None, row.task_id):
        raise NotFound()
    return row


def deliveries(limit: int, *, offset: int = 0, webhook_id: UUID | None = None) -> list[Outbox]:
    """Deliveries to webhooks, newest first. Raises `NotFound` for a foreign webhook."""
    rows = Outbox.objects.filter(webhook__isnull=False).select_related("webhook")
    if webhook_id is not None:
        if not Webhook.objects.filter(pk=webhook_id).exists():
            raise NotFound()
        rows = rows.filter(webhook_id=webhook_id)
    return list(rows.order_by("-created_at", "pk")[offset : offset + limit])


def webhooks() -> list[Webhook]:
    return list(Webhook.objects.order_by("created_at", "pk"))


def _sessions() -> QuerySet[AutonomousSession]:
    rows: QuerySet[AutonomousSession] = AutonomousSession.objects.select_related("task", "run")
    return rows


def _newest(task_ids: list[UUID]) -> dict[UUID, AutonomousSession]:
    # Two queries by an index, instead of reading all sessions of all tasks.
    of_task = AutonomousSession.objects.filter(task=OuterRef("pk")).order_by("-queued_at")
    newest = Task.objects.filter(pk__in=task_ids).annotate(newest=Subquery(of_task.values("pk")[:1]))
    ids = [pk for pk in newest.values_list("newest", flat=True) if pk]
    return {session.task_id: session for session in _sessions().filter(pk__in=ids)}


def _spent(task_ids: list[UUID]) -> dict[UUID, Decimal]:
    since = now() - timedelta(days=SPENT_DAYS)
    rows = AutonomousSession.objects.filter(task_id__in=task_ids, queued_at__gte=since, run__isnull=False)
    totals = rows.order_by().values("task_id").annotate(total=Sum("run__cost_total"))
    return {row["task_id"]: row["total"] for row in totals}
