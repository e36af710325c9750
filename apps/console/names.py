"""Names and addresses for the ids in audit entries: one query per kind, in the tenant's scope.

Names come from the tenant's own rows; the audit log contains only ids.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from uuid import UUID

from django.db.models import Model
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.approvals.models import ApprovalToken, Card
from apps.audit.models import AuditEntry
from apps.autonomy.models import AutonomousSession, MemoryProposal, Task, Trigger
from apps.connections.models import Connection
from apps.gates.models import Gate
from apps.guard.enums import Intent
from apps.guard.models import GuardedRun, ToolCall
from apps.inbox.models import InboxRule, SlaPolicy
from apps.knowledge.models import Collection, Document
from apps.messengers.models import Channel
from apps.sessions.models import ChatSession
from apps.skills.models import SkillDraft, SkillPackage, SkillVersion
from apps.tenants.models import ApiKey, Deployment, OAuthApp, OAuthGrant, User
from apps.toolservers.models import OutsideTool, ToolServer
from apps.work.models import WorkItem
from kernel.ids import parse_id

_NamesById = dict[UUID, str]

# What something is called whose own name is not known, by kind.
UNNAMED = {
    "": gettext_lazy("The platform"),
    "system": gettext_lazy("The platform"),
    "seed_demo": gettext_lazy("The demo setup"),
    "command": gettext_lazy("An administrator"),
    "user": gettext_lazy("A former member"),
    "visitor": gettext_lazy("A visitor"),
    "bot": gettext_lazy("The bot"),
    "card": gettext_lazy("a card"),
    "session": gettext_lazy("a conversation"),
    "connection": gettext_lazy("a connection"),
    "secret": gettext_lazy("a secret"),
    "work": gettext_lazy("a task"),
    "run": gettext_lazy("a run"),
    "gate": gettext_lazy("a gate"),
    "token": gettext_lazy("an approval"),
    "message": gettext_lazy("a message"),
    "deployment": gettext_lazy("a chatbot"),
    "safety_agent": gettext_lazy("an agent"),
    "safety_execution": gettext_lazy("an agent"),
    "safety_policy": gettext_lazy("the safety policy"),
    "tenant": gettext_lazy("the company"),
    "api_key": gettext_lazy("an API key"),
    "oauth_app": gettext_lazy("an app"),
    "oauth_grant": gettext_lazy("an app"),
    "identity_key": gettext_lazy("a website key"),
    "message_key": gettext_lazy("a member's key"),
    "document": gettext_lazy("a document"),
    "collection": gettext_lazy("a collection"),
    "skill": gettext_lazy("a skill"),
    "skill_package": gettext_lazy("a package"),
    "skill_draft": gettext_lazy("a draft"),
    "publisher": gettext_lazy("a publisher"),
    "tool_server": gettext_lazy("a tool server"),
    "channel": gettext_lazy("a channel"),
    "outside_tool": gettext_lazy("an external tool"),
    "batch": gettext_lazy("a batch"),
    "passkey": gettext_lazy("a passkey"),
    "label": gettext_lazy("a label"),
    "canned_reply": gettext_lazy("a canned reply"),
    "contact": gettext_lazy("a contact"),
    "macro": gettext_lazy("a macro"),
    "inbox_rule": gettext_lazy("An inbox rule"),
    "sla_policy": gettext_lazy("an SLA policy"),
    "team": gettext_lazy("a team"),
    "view": gettext_lazy("a saved view"),
    "import": gettext_lazy("an import"),
    "task": gettext_lazy("an automation"),
    "trigger": gettext_lazy("an automation"),
    "autonomous": gettext_lazy("an automation"),
    "webhook": gettext_lazy("an address"),
    "proposal": gettext_lazy("a proposal"),
    "finding": gettext_lazy("a finding"),
    "preference": gettext_lazy("a habit"),
    "precedent": gettext_lazy("a pattern"),
    "context": gettext_lazy("a pattern"),
}


@dataclass(frozen=True)
class Names:
    """The names of the ids on a page, by `kind:id`."""

    known: Mapping[str, str] = field(default_factory=dict)

    def of(self, word: str) -> str:
        """Return the name of `kind:id`, or a generic word for its kind."""
        kind, _separator, id_text = word.partition(":")
        if kind == "record":
            return id_text.replace("/", " ")
        return self.known.get(word) or str(UNNAMED.get(kind) or _("something"))


def names_of(entries: Iterable[AuditEntry]) -> Names:
    """Look up every actor and subject of these entries."""
    return names_for(word for entry in entries for word in (entry.actor, entry.subject))


def names_for(words: Iterable[str]) -> Names:
    """Look up every `kind:id` among these words."""
    ids: dict[str, set[UUID]] = defaultdict(set)
    for word in words:
        kind, id_text = parse_reference(word)
        if id_text:
            ids[kind].add(id_text)
    known = {f"{kind}:{key}": name for kind, wanted in ids.items() for key, name in _names_by_id(kind, wanted).items()}
    runs = ids["run"]
    rows = ToolCall.objects.filter(run_id__in=runs).values_list("run_id", "seq", "intent", "tool") if runs else ()
    tools = {f"tool:run:{run}:{seq}": _tool(intent, tool) for run, seq, intent, tool in rows}
    return Names({**known, **tools})


def address_of(subject: str, *, owner: bool) -> str:
    """Return the address of the page about a subject, or an empty string. Only owners have a page for gates."""
    kind, id_text = parse_reference(subject)
    pages = {
        "card": "console-card",
        "session": "console-conversation",
        "work": "console-work-item",
        "autonomous": "console-run",
    }
    page = pages.get(kind) or ("console-gate" if owner and kind == "gate" else None)
    return reverse(page, args=[id_text]) if page and id_text else ""


def parse_reference(word: str) -> tuple[str, UUID | None]:
    """Split `kind:id`; the id is None if it is no UUID."""
    kind, _, id_text = word.partition(":")
    return kind, parse_id(id_text)


def data_of(entry: AuditEntry) -> dict[str, object]:
    data: dict[str, object] = json.loads(entry.data)
    return data


def _names_by_id(kind: str, ids: set[UUID]) -> _NamesById:
    finder = _FINDERS.get(kind)
    return finder(ids) if finder else {}


def _users(ids: set[UUID]) -> _NamesById:
    return {user.pk: user.display_name for user in User.objects.filter(pk__in=ids)}


def _batches(ids: set[UUID]) -> _NamesById:
    """A batch has the name of its newest card."""
    cards = Card.objects.filter(subject_kind="batch", subject_id__in=ids).order_by("created_at")
    return dict(cards.values_list("subject_id", "intent"))


def _sessions(ids: set[UUID]) -> _NamesById:
    return {session.pk: session.visitor_name for session in ChatSession.objects.filter(pk__in=ids)}


def _by(model: type[Model], column: str) -> Callable[[set[UUID]], _NamesById]:
    """Return a finder that takes the names from one column."""

    def find(ids: set[UUID]) -> _NamesById:
        return dict(model._default_manager.filter(pk__in=ids).values_list("pk", column))

    return find


_works = _by(WorkItem, "title")
_connections = _by(Connection, "name")
# Runs of automations and their triggers have the name of the automation.
_unattended = _by(AutonomousSession, "task__name")


def _runs(ids: set[UUID]) -> _NamesById:
    """A guarded run has the name of the conversation, work item, automation or connection that it belongs to."""
    owners = dict(GuardedRun.objects.filter(pk__in=ids).values_list("pk", "owner_ref"))
    ids = set(owners.values())
    names = {**_sessions(ids), **_works(ids), **_unattended(ids), **_connections(ids)}
    return {run: names[owner] for run, owner in owners.items() if owner in names}


def _tool(intent: str, tool: str) -> str:
    return _("the model as %(name)s") % {"name": tool} if intent == Intent.CONVERSE else tool


def _grants(ids: set[UUID]) -> _NamesById:
    """An app that acts on a member's behalf is named with the member."""
    grants = OAuthGrant.objects.select_related("app", "user").filter(pk__in=ids)
    for_member = _("%(app)s for %(member)s")
    return {
        grant.pk: for_member % {"app": grant.app.name, "member": grant.user.display_name}
        if grant.user
        else grant.app.name
        for grant in grants
    }


def _inbox_rules(ids: set[UUID]) -> _NamesById:
    return {rule.pk: _("Rule “%(name)s”") % {"name": rule.name} for rule in InboxRule.objects.filter(pk__in=ids)}


_FINDERS: dict[str, Callable[[set[UUID]], _NamesById]] = {
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
    "inbox_rule": _inbox_rules,
    "sla_policy": _by(SlaPolicy, "name"),
    "tool_server": _by(ToolServer, "name"),
    "channel": _by(Channel, "name"),
    "outside_tool": _by(OutsideTool, "alias"),
    "document": _by(Document, "title"),
    "collection": _by(Collection, "title"),
    "deployment": _by(Deployment, "title"),
    "api_key": _by(ApiKey, "name"),
    "oauth_app": _by(OAuthApp, "name"),
    "oauth_grant": _grants,
    "task": _by(Task, "name"),
    "trigger": _by(Trigger, "task__name"),
    "autonomous": _unattended,
    "proposal": _by(MemoryProposal, "title"),
}
