"""Memories in words: whom they are about, where they came from, how far they are trusted, and what happened to them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.audit.enums import AuditEvent
from apps.audit.queries import entries_about
from apps.autonomy.models import MemoryProposal
from apps.console.names import data_of, names_for
from apps.console.pages.memory.filters import TYPES
from apps.memory import queries
from apps.memory.enums import MergeReason, ScopeKind, SourceKind
from apps.memory.models import MemoryItem
from apps.sessions.models import ChatSession
from kernel.ids import parse_id
from kernel.taint import Taint
from llm.enums import MemoryType

MAX_EVENTS = 100
TAINTS: dict[str, str | Promise] = {
    Taint.OWNER: gettext_lazy("From your company, signed by a member"),
    Taint.AUTH: gettext_lazy("From a member of your team or a customer who verified their identity"),
    Taint.EXTERNAL: gettext_lazy("From outside: a visitor, a document or a tool said so. The bot takes it as a claim."),
}


@dataclass(frozen=True)
class Line:
    """A memory in the list."""

    row: Any
    about: str
    kind: str


@dataclass(frozen=True)
class Origin:
    """Where a memory came from; `address` is the page about it, if there is one."""

    text: str
    address: str = ""


@dataclass(frozen=True)
class Event:
    """What happened to a memory; `former` is the text that was replaced."""

    at: datetime
    text: str
    former: str = ""


def lines(rows: Iterable[Any]) -> list[Line]:
    rows = list(rows)
    return [Line(row, about(row.scope), kind_of(row.memory_type)) for row in rows]


def about(scope: str) -> str:
    """Whom a memory of this scope is about."""
    if scope.startswith(f"{ScopeKind.TENANT.value}:"):
        return _("Your company")
    customer = queries.customer_of(scope)
    return _("Customer {customer}").format(customer=customer) if customer else _("An unverified visitor")


def kind_of(memory_type: str) -> str:
    return str(TYPES[MemoryType(memory_type)])


def origin_of(row: MemoryItem) -> Origin:
    """The conversation or the run that the memory came from, as far as it still exists."""
    text = str(SourceKind(row.source_kind).label)
    if row.session_id and ChatSession.objects.filter(pk=row.session_id).exists():
        return Origin(text, reverse("console-conversation", args=[row.session_id]))
    kind, _separator, name = row.reference.partition(":")
    if kind == "proposal" and (pk := parse_id(name)):
        run = MemoryProposal.objects.filter(pk=pk).values_list("session_id", flat=True).first()
        return Origin(text, reverse("console-run", args=[run]) if run else "")
    return Origin(text)


def history_of(row: MemoryItem, tenant_id: UUID) -> list[Event]:
    """What happened to the memory, oldest first: corrections with the former text, merges, and what the audit log says
    of it."""
    entries = entries_about(tenant_id, [f"memory:{row.pk}"], limit=MAX_EVENTS)
    names = names_for([*(entry.actor for entry in entries), *(former["by"] for former in row.revisions)])
    events = [Event(row.created_at, _("Stored"))]
    for former in row.revisions:
        text = _("Corrected by {name}").format(name=names.of(former["by"]))
        events.append(Event(datetime.fromisoformat(former["at"]), text, former["text"]))
    for entry in entries:
        if text := _entry_in_words(entry.event, data_of(entry)):
            events.append(Event(entry.timestamp, text.format(name=names.of(entry.actor))))
    merges = queries.merged_into(row.pk, limit=MAX_EVENTS)
    events += [Event(merge.created_at, _took_place_of(merge.reason)) for merge in merges]
    return sorted(events, key=lambda event: event.at)


def _entry_in_words(event: str, data: dict[str, object]) -> str:
    if event == AuditEvent.MEMORY_CONFIRMED:
        return _("Confirmed by {name}")
    if event == AuditEvent.MEMORY_PINNED:
        return _("Pinned by {name}") if data.get("pinned") else _("Unpinned by {name}")
    if event == AuditEvent.MEMORY_RESTORED:
        return _("Restored by {name}")
    return ""


def _took_place_of(reason: str) -> str:
    if reason == MergeReason.PROMOTED:
        return _("Made from another memory that was said repeatedly")
    if reason == MergeReason.CONTRADICTED:
        return _("Chosen by a person over another memory")
    return _("Merged with another memory that said the same")
