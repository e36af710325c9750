"""Row locks of this room, taken in this order: a card (`approvals.locks`), the trigger, the session, its guarded run
(a room below), a proposal, precedent or rule before what it becomes, and admission last.

Locked until the scope ends. Every function raises `NotFound` for an unknown, foreign or deleted row.
"""

from __future__ import annotations

from typing import TypeVar
from uuid import UUID

from django.db import connection
from django.db.models import Model, QuerySet

from apps.autonomy.models import AutonomousSession, ContextProposal, MemoryProposal, Precedent, Task, Trigger
from kernel.errors import NotFound
from kernel.tenancy import current_tenant_id

M = TypeVar("M", bound=Model)


def _lock_one(model: type[M], what: str, *related: str, **which: object) -> M:
    rows = model._default_manager.select_for_update(of=("self",), no_key=True).filter(**which)
    row: M | None = (rows.select_related(*related) if related else rows).first()
    if row is None:
        raise NotFound()
    return row


def lock_session(session_id: UUID) -> AutonomousSession:
    """With its task, as committed now."""
    return _lock_one(AutonomousSession, "session", "task__deployment", pk=session_id)


def lock_task(task_id: UUID) -> Task:
    return _lock_one(Task, "task", pk=task_id, deleted_at=None)


def lock_trigger(trigger_id: UUID) -> Trigger:
    """With its task, which was not deleted either."""
    return _lock_one(Trigger, "trigger", "task", pk=trigger_id, deleted_at=None, task__deleted_at=None)


def lock_proposal(proposal_id: UUID) -> MemoryProposal:
    return _lock_one(MemoryProposal, "proposal", "task__deployment", pk=proposal_id, deleted_at=None)


def lock_proposals(proposals: QuerySet[MemoryProposal]) -> list[MemoryProposal]:
    """Deleted ones too, ordered by key so that rivals do not deadlock."""
    return list(proposals.select_for_update(of=("self",), no_key=True).order_by("pk"))


def lock_precedent(precedent_id: UUID) -> Precedent:
    return _lock_one(Precedent, "precedent", "task", pk=precedent_id)


def lock_context(context_id: UUID) -> ContextProposal:
    return _lock_one(ContextProposal, "rule", "precedent", pk=context_id)


def lock_admission() -> None:
    """Serialize admission of the tenant's sessions until the scope ends."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"admission:{current_tenant_id()}"])
