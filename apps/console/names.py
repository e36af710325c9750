"""What are the ids in a page of audit entries called, and where do they lead? One query a kind, in the tenant's scope.

Names come from the tenant's own rows; the log itself holds none.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any
from uuid import UUID

from django.db.models import Model
from django.urls import reverse

from apps.approvals.models import ApprovalToken, Card
from apps.audit.models import AuditEntry
from apps.autonomy.models import AutonomousSession, MemoryProposal, Task, Trigger
from apps.connections.models import Connection
from apps.console.narrative import Names
from apps.gates.models import Gate
from apps.guard.enums import Intent
from apps.guard.models import GuardedRun, ToolCall
from apps.memory.models import Collection, Document
from apps.sessions.models import ChatSession
from apps.skills.models import SkillDraft, SkillPackage, SkillVersion
from apps.tenants.models import ApiKey, Deployment, User
from apps.toolservers.models import OutsideTool, ToolServer
from apps.work.models import WorkItem

_Called = dict[UUID, str]


def names_of(entries: Iterable[AuditEntry]) -> Names:
    """Look up every `kind:id` that is an actor or a subject on this page."""
    return names_for(word for entry in entries for word in (entry.actor, entry.subject))


def names_for(words: Iterable[str]) -> Names:
    """Look up every `kind:id` among these words."""
    ids: dict[str, set[UUID]] = defaultdict(set)
    for word in words:
        kind, given = parted(word)
        if given:
            ids[kind].add(given)
    known = {f"{kind}:{key}": name for kind, wanted in ids.items() for key, name in _called(kind, wanted).items()}
    return Names({**known, **_tools(ids["run"])})


def address_of(subject: str, *, owner: bool) -> str:
    """The page about a subject, or nothing; gates have theirs for owners."""
    kind, given = parted(subject)
    pages = {
        "card": "console-card",
        "session": "console-conversation",
        "work": "console-work-item",
        "autonomous": "console-run",
    }
    page = pages.get(kind) or ("console-gate" if owner and kind == "gate" else None)
    return reverse(page, args=[given]) if page and given else ""


def parted(word: str) -> tuple[str, UUID | None]:
    kind, _, given = word.partition(":")
    try:
        return kind, UUID(given)
    except ValueError:
        return kind, None


def data_of(entry: AuditEntry) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(entry.data)
    return data


def _called(kind: str, wanted: set[UUID]) -> _Called:
    finder = _FINDERS.get(kind)
    return finder(wanted) if finder else {}


def _users(wanted: set[UUID]) -> _Called:
    return {user.pk: user.display_name for user in User.objects.filter(pk__in=wanted)}


def _batches(wanted: set[UUID]) -> _Called:
    """A batch is called after what its newest card asks."""
    cards = Card.objects.filter(subject_kind="batch", subject_id__in=wanted).order_by("created_at")
    return dict(cards.values_list("subject_id", "intent"))


def _sessions(wanted: set[UUID]) -> _Called:
    return {session.pk: session.visitor_name for session in ChatSession.objects.filter(pk__in=wanted)}


def _by(model: type[Model], column: str) -> Callable[[set[UUID]], _Called]:
    """Called after what stands in one column."""

    def find(wanted: set[UUID]) -> _Called:
        return dict(model._default_manager.filter(pk__in=wanted).values_list("pk", column))

    return find


_works = _by(WorkItem, "title")
_connections = _by(Connection, "name")
# What runs unattended, and when, is called after its task.
_unattended = _by(AutonomousSession, "task__name")


def _runs(wanted: set[UUID]) -> _Called:
    """A run is called after whatever it was opened for."""
    owners = dict(GuardedRun.objects.filter(pk__in=wanted).values_list("pk", "owner_ref"))
    wanted = set(owners.values())
    called = {**_sessions(wanted), **_works(wanted), **_unattended(wanted), **_connections(wanted)}
    return {run: called[owner] for run, owner in owners.items() if owner in called}


def _tools(runs: set[UUID]) -> dict[str, str]:
    rows = ToolCall.objects.filter(run_id__in=runs).values_list("run_id", "seq", "intent", "tool") if runs else ()
    return {f"tool:run:{run}:{seq}": _tool(intent, tool) for run, seq, intent, tool in rows}


def _tool(intent: str, tool: str) -> str:
    return f"the model as {tool}" if intent == Intent.CONVERSE else tool


_FINDERS: dict[str, Callable[[set[UUID]], _Called]] = {
    "user": _users,
    "card": _by(Card, "intent"),
    "batch": _batches,
    "session": _sessions,
    "connection": _connections,
    "work": _works,
    "token": _by(ApprovalToken, "decision__card__intent"),
    "gate": _by(Gate, "name"),
    "run": _runs,
    "skill": _by(SkillVersion, "name"),
    "skill_package": _by(SkillPackage, "name"),
    "skill_draft": _by(SkillDraft, "name"),
    "tool_server": _by(ToolServer, "name"),
    "outside_tool": _by(OutsideTool, "alias"),
    "document": _by(Document, "title"),
    "collection": _by(Collection, "title"),
    "deployment": _by(Deployment, "title"),
    "api_key": _by(ApiKey, "name"),
    "task": _by(Task, "name"),
    "trigger": _by(Trigger, "task__name"),
    "autonomous": _unattended,
    "proposal": _by(MemoryProposal, "title"),
}
