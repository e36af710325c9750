"""What do the ready ways of work look at? Reads for `run_playbook`, inside a scope; each answer is plain JSON.

They read what a worker may: questions that were kept open, documents, and how a goal stands. No conversation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any
from uuid import UUID

from django.db.models import F, Q

from apps.autonomy import contradictions
from apps.autonomy.models import OpenQuestion
from apps.memory.models import DocumentVersion
from apps.work.models import GoalCycle

MOST_QUESTIONS, MOST_DOCUMENTS, MOST_STATEMENTS = 8, 5, 8
_NEWEST = 3

DataSource = Callable[[Mapping[str, Any], Mapping[str, Any]], dict[str, Any]]


def open_questions(args: Mapping[str, Any], context: Mapping[str, Any]) -> dict[str, Any]:
    """The questions asked most since somebody last looked."""
    fresh = Q(reviewed_at=None) | Q(reviewed_at__lt=F("last_at"))
    rows = OpenQuestion.objects.filter(fresh, deployment_id=context["deployment"]).order_by("-count", "-last_at")
    found = [{"id": str(row.pk), "text": row.text, "count": row.count} for row in rows[:MOST_QUESTIONS]]
    return {"questions": found, "left": max(rows.count() - len(found), 0)}


def new_documents(args: Mapping[str, Any], context: Mapping[str, Any]) -> dict[str, Any]:
    """What the named documents (without names: the newest) say with figures; of one that was changed, what is new."""
    named = [wanted for each in args.get("documents", ()) if (wanted := _uuid(each))]
    newest = DocumentVersion.objects.select_related("document").order_by("document_id", "-number")
    newest = newest.distinct("document_id")
    if named:
        rows: Sequence[DocumentVersion] = list(newest.filter(document_id__in=named)[:MOST_DOCUMENTS])
    else:
        rows = sorted(newest.defer("text"), key=lambda row: row.created_at, reverse=True)[:_NEWEST]
    return {"documents": [_statements(row) for row in rows]}


def _statements(version: DocumentVersion) -> dict[str, Any]:
    before = DocumentVersion.objects.filter(document_id=version.document_id, number=version.number - 1).first()
    fresh = contradictions.statements_with_figures(version.text, but=before.text if before else "")
    return {
        "document_id": str(version.document_id),
        "version_id": str(version.pk),
        "title": version.document.title,
        "statements": fresh[:MOST_STATEMENTS],
        "left": max(len(fresh) - MOST_STATEMENTS, 0),
    }


def goal_state(args: Mapping[str, Any], context: Mapping[str, Any]) -> dict[str, Any]:
    """The goal's last look: what the work room found, and what it did about it."""
    goal = _uuid(args.get("goal"))
    cycle = GoalCycle.objects.select_related("spawned").filter(goal_id=goal).order_by("-due_at").first()
    if cycle is None:
        return {"outcome": "never", "checks": [], "spawned": None}
    checks = [{"name": str(each.get("name")), "passed": bool(each.get("passed"))} for each in cycle.results]
    spawned = None if cycle.spawned is None else {"id": str(cycle.spawned_id), "status": cycle.spawned.status}
    return {"outcome": cycle.outcome, "checks": checks, "spawned": spawned, "ran_at": cycle.ran_at.isoformat()}


def _uuid(value: Any) -> UUID | None:
    try:
        return UUID(str(value))
    except ValueError:
        return None


DATA_SOURCES: Mapping[str, DataSource] = MappingProxyType(
    {"open_questions": open_questions, "new_documents": new_documents, "goal_state": goal_state}
)
