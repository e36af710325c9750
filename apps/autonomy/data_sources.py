"""What sessions read: open questions, documents, the state of a goal, the company's memory, as plain JSON.

Reads for `run_playbook`, inside a scope. They read only what a worker may. What is read of conversations and books is
in `operations_sources`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from django.db.models import F, Q

from apps.autonomy import operations_sources
from apps.autonomy.enums import TriggerKind
from apps.autonomy.models import AutonomousSession, Finding, OpenQuestion
from apps.knowledge.models import DocumentVersion
from apps.memory.enums import Purpose
from apps.memory.recall import recall_company, taint_of
from apps.work.models import GoalCycle
from kernel.ids import parse_id
from llm.embedding import embed
from llm.offline import contradictions

# A task that escalates is a heartbeat; every other trigger is a step of a workflow.
_PURPOSES = {
    TriggerKind.CRON: Purpose.SCHEDULED,
    TriggerKind.INTERVAL: Purpose.SCHEDULED,
    TriggerKind.EVENT: Purpose.EVENT,
    TriggerKind.WATCH: Purpose.EVENT,
}
MOST_QUESTIONS, MOST_DOCUMENTS, MOST_STATEMENTS = 8, 5, 8
MOST_KNOWN = 1000
_NEWEST = 3

DataSource = Callable[[Mapping[str, object], Mapping[str, object]], dict[str, object]]


def open_questions(args: Mapping[str, Any], context: Mapping[str, Any]) -> dict[str, object]:
    """The questions asked most often that were not reviewed since they were last asked."""
    unreviewed = Q(reviewed_at=None) | Q(reviewed_at__lt=F("last_at"))
    rows = OpenQuestion.objects.filter(unreviewed, deployment_id=context["deployment"]).order_by("-count", "-last_at")
    questions = [{"id": str(row.pk), "text": row.text, "count": row.count} for row in rows[:MOST_QUESTIONS]]
    return {"questions": questions, "left": max(rows.count() - len(questions), 0)}


def new_documents(args: Mapping[str, Any], context: Mapping[str, object]) -> dict[str, Any]:
    """The statements with figures in the named documents, or in the newest; of a changed document only new ones.

    `known` are the keys of what earlier runs of the task found.
    """
    named = [document_id for value in args.get("documents", ()) if (document_id := parse_id(value))]
    newest = DocumentVersion.objects.select_related("document").order_by("document_id", "-number")
    newest = newest.distinct("document_id")
    if named:
        rows: Sequence[DocumentVersion] = list(newest.filter(document_id__in=named)[:MOST_DOCUMENTS])
    else:
        rows = sorted(newest.defer("text"), key=lambda row: row.created_at, reverse=True)[:_NEWEST]
    return {"documents": [_statements(row) for row in rows], "known": _known_keys(context)}


def _known_keys(context: Mapping[str, Any]) -> list[str]:
    """Keys of the newest findings of the task's earlier runs. Attempts of this occasion are not earlier runs."""
    session = AutonomousSession.objects.get(pk=context["session"])
    rows = Finding.objects.filter(task_id=session.task_id, quarantined_at=None, gone_at=None).exclude(key="")
    keys = rows.exclude(root_id=session.origin).order_by("-created_at").values_list("key", flat=True)
    return list(keys[:MOST_KNOWN])


def _statements(version: DocumentVersion) -> dict[str, object]:
    before = DocumentVersion.objects.filter(document_id=version.document_id, number=version.number - 1).first()
    statements = contradictions.statements_with_figures(version.text, but=before.text if before else "")
    return {
        "document_id": str(version.document_id),
        "version_id": str(version.pk),
        "title": version.document.title,
        "statements": statements[:MOST_STATEMENTS],
        "left": max(len(statements) - MOST_STATEMENTS, 0),
    }


def goal_state(args: Mapping[str, object], context: Mapping[str, object]) -> dict[str, object]:
    """The result of the goal's last check, and the work that it started."""
    goal_id = parse_id(args.get("goal"))
    cycle = GoalCycle.objects.select_related("spawned").filter(goal_id=goal_id).order_by("-due_at").first()
    if cycle is None:
        return {"outcome": "never", "checks": [], "spawned": None}
    checks = [{"name": str(check.get("name")), "passed": bool(check.get("passed"))} for check in cycle.results]
    spawned = None if cycle.spawned is None else {"id": str(cycle.spawned_id), "status": cycle.spawned.status}
    return {"outcome": cycle.outcome, "checks": checks, "spawned": spawned, "ran_at": cycle.ran_at.isoformat()}


def company_memories(args: Mapping[str, Any], context: Mapping[str, Any]) -> dict[str, object]:
    """What the company remembers about the task's prompt, within the budget of what the task is."""
    session = AutonomousSession.objects.select_related("task").get(pk=context["session"])
    escalates = session.task.escalates_to_id is not None
    purpose = Purpose.HEARTBEAT if escalates else _PURPOSES.get(TriggerKind(session.trigger_kind), Purpose.WORKFLOW)
    found = recall_company(purpose, session.task.prompt, vector=embed(session.task.prompt))
    memories = [{"text": each.text, "said_at": each.said_at, "taint": each.taint.value} for each in found]
    return {"memories": memories, "taint": taint_of(found).value}


def _with_known(source: DataSource) -> DataSource:
    """The source, with `known`: the keys of what earlier runs of the task found."""

    def read(args: Mapping[str, Any], context: Mapping[str, object]) -> dict[str, Any]:
        return {**source(args, context), "known": _known_keys(context)}

    return read


DATA_SOURCES: Mapping[str, DataSource] = MappingProxyType(
    {
        "open_questions": open_questions,
        "new_documents": new_documents,
        "goal_state": goal_state,
        **{name: _with_known(source) for name, source in operations_sources.SOURCES.items()},
        "company_memories": company_memories,
    }
)
