"""Row locks of this room, in this order: a card first (`approvals.locks`); the trigger, the session, its guarded
run (below); a proposal, precedent or rule before what it becomes; admission last.

Locked until the scope ends. Raises `NotFound` for an unknown, foreign or deleted row.
"""

from __future__ import annotations

from typing import Any, TypeVar
from uuid import UUID

from django.db import connection
from django.db.models import Model, QuerySet

from apps.autonomy.models import (
    AutonomousSession,
    ContextProposal,
    MemoryProposal,
    Precedent,
    Preference,
    Task,
    Trigger,
)
from kernel.errors import NotFound
from kernel.tenancy import current_tenant_id

M = TypeVar("M", bound=Model)


def _only(model: type[M], what: str, *related: str, **which: Any) -> M:
    rows = model._default_manager.select_for_update(of=("self",), no_key=True).filter(**which)
    found: M | None = (rows.select_related(*related) if related else rows).first()
    if found is None:
        raise NotFound(what)
    return found


def lock_session(session_id: UUID) -> AutonomousSession:
    """As it is now, with its task."""
    return _only(AutonomousSession, "session", "task__deployment", pk=session_id)


def lock_task(task_id: UUID) -> Task:
    return _only(Task, "task", pk=task_id, deleted_at=None)


def lock_trigger(trigger_id: UUID) -> Trigger:
    """With its task, which was not deleted either."""
    return _only(Trigger, "trigger", "task", pk=trigger_id, deleted_at=None, task__deleted_at=None)


def lock_proposal(proposal_id: UUID) -> MemoryProposal:
    return _only(MemoryProposal, "proposal", "task__deployment", pk=proposal_id, deleted_at=None)


def lock_proposals(proposals: QuerySet[MemoryProposal]) -> list[MemoryProposal]:
    """These, deleted ones too, in one order for everybody."""
    return list(proposals.select_for_update(of=("self",), no_key=True).order_by("pk"))


def lock_precedent(precedent_id: UUID) -> Precedent:
    return _only(Precedent, "precedent", "task", pk=precedent_id)


def lock_context(context_id: UUID) -> ContextProposal:
    return _only(ContextProposal, "rule", "precedent", pk=context_id)


def lock_preference(preference_id: UUID) -> Preference:
    return _only(Preference, "preference", pk=preference_id)


def lock_admission() -> None:
    """Whoever lets the tenant's sessions in passes here one by one, until the scope ends."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"admission:{current_tenant_id()}"])
