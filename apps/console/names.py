"""What are the ids in a page of audit entries called, and where do they lead? One query a kind, in the tenant's scope.

Names come from the tenant's own rows; the log itself holds none.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any
from uuid import UUID

from django.urls import reverse

from apps.approvals.models import ApprovalToken, Card
from apps.audit.models import AuditEntry
from apps.console.narrative import Names
from apps.gates.models import Gate
from apps.guard.enums import Intent
from apps.guard.models import GuardedRun, ToolCall
from apps.memory.models import Collection, Document
from apps.sessions.models import ChatSession
from apps.skills.models import SkillVersion
from apps.tenants.models import ApiKey, Deployment, User
from apps.work.models import WorkItem

_Called = dict[UUID, str]


def names_of(entries: Iterable[AuditEntry]) -> Names:
    """Look up every `kind:id` that is an actor or a subject on this page."""
    ids: dict[str, set[UUID]] = defaultdict(set)
    for entry in entries:
        for word in (entry.actor, entry.subject):
            kind, given = parted(word)
            if given:
                ids[kind].add(given)
    known = {f"{kind}:{key}": name for kind, wanted in ids.items() for key, name in _called(kind, wanted).items()}
    return Names({**known, **_tools(ids["run"])})


def address_of(subject: str) -> str:
    """The page about a subject, or nothing."""
    kind, given = parted(subject)
    page = {"card": "console-card", "session": "console-conversation"}.get(kind)
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


def _cards(wanted: set[UUID]) -> _Called:
    return dict(Card.objects.filter(pk__in=wanted).values_list("pk", "intent"))


def _sessions(wanted: set[UUID]) -> _Called:
    return {session.pk: session.visitor_name for session in ChatSession.objects.filter(pk__in=wanted)}


def _works(wanted: set[UUID]) -> _Called:
    return dict(WorkItem.objects.filter(pk__in=wanted).values_list("pk", "title"))


def _tokens(wanted: set[UUID]) -> _Called:
    return dict(ApprovalToken.objects.filter(pk__in=wanted).values_list("pk", "decision__card__intent"))


def _gates(wanted: set[UUID]) -> _Called:
    return dict(Gate.objects.filter(pk__in=wanted).values_list("pk", "name"))


def _deployments(wanted: set[UUID]) -> _Called:
    return dict(Deployment.objects.filter(pk__in=wanted).values_list("pk", "title"))


def _api_keys(wanted: set[UUID]) -> _Called:
    return dict(ApiKey.objects.filter(pk__in=wanted).values_list("pk", "name"))


def _runs(wanted: set[UUID]) -> _Called:
    """A run is called after whatever it was opened for."""
    owners = dict(GuardedRun.objects.filter(pk__in=wanted).values_list("pk", "owner_ref"))
    called = {**_sessions(set(owners.values())), **_works(set(owners.values()))}
    return {run: called[owner] for run, owner in owners.items() if owner in called}


def _tools(runs: set[UUID]) -> dict[str, str]:
    rows = ToolCall.objects.filter(run_id__in=runs).values_list("run_id", "seq", "intent", "tool") if runs else ()
    return {f"tool:run:{run}:{seq}": _tool(intent, tool) for run, seq, intent, tool in rows}


def _tool(intent: str, tool: str) -> str:
    return f"the model as {tool}" if intent == Intent.CONVERSE else tool


def _skills(wanted: set[UUID]) -> _Called:
    return dict(SkillVersion.objects.filter(pk__in=wanted).values_list("pk", "name"))


def _documents(wanted: set[UUID]) -> _Called:
    return dict(Document.objects.filter(pk__in=wanted).values_list("pk", "title"))


def _collections(wanted: set[UUID]) -> _Called:
    return dict(Collection.objects.filter(pk__in=wanted).values_list("pk", "title"))


_FINDERS: dict[str, Callable[[set[UUID]], _Called]] = {
    "user": _users,
    "card": _cards,
    "session": _sessions,
    "work": _works,
    "token": _tokens,
    "gate": _gates,
    "run": _runs,
    "skill": _skills,
    "document": _documents,
    "collection": _collections,
}
