"""Memories as members look through them, in all scopes of the company. Reads only, inside the tenant's scope; a turn
reads through `recall`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any
from uuid import UUID

from django.db.models import Q, Value
from django.db.models.functions import Left, Substr
from django.db.models.lookups import Exact

from apps.memory.enums import ScopeKind, Tier, Trust
from apps.memory.models import MemoryConsolidation, MemoryItem
from kernel.errors import NotFound
from kernel.pagination import read_page
from llm.enums import MemoryType

MAX_SEARCH_WORDS, EXCERPT = 6, 400
_CONFIRMED = (Trust.VERIFIED, Trust.CONSTITUTIONAL)


@dataclass(frozen=True)
class MemoryFilter:
    """Which memories to list; None and "" mean any.

    `search`: words that the text contains, in any order. `raw`: those that are kept word for word, instead of those
    that are recalled. `archived`: those that are not recalled any more, instead of the others. `customer`: of this
    customer, in their own scope or said to them in a conversation; `customers`: of any of these.
    """

    search: str = ""
    scope: ScopeKind | None = None
    customer: str = ""
    customers: tuple[str, ...] = ()
    memory_type: MemoryType | None = None
    confirmed: bool | None = None
    pinned: bool | None = None
    marked: bool | None = None
    raw: bool = False
    archived: bool = False

    def condition(self) -> Q:
        chosen = Q(tier=Tier.LOW_REINGESTION if self.raw else Tier.ACTIVE, archived_at__isnull=not self.archived)
        for word in self.search.replace("\0", "").split()[:MAX_SEARCH_WORDS]:
            chosen &= Q(content__icontains=word)
        if self.scope:
            chosen &= Q(scope__startswith=f"{self.scope.value}:")
        if self.customer:
            chosen &= of_customer(self.customer)
        if self.customers:
            chosen &= reduce(or_, map(of_customer, self.customers))
        if self.memory_type:
            chosen &= Q(memory_type=self.memory_type.value)
        if self.confirmed is not None:
            confirmed = Q(trust__in=_CONFIRMED)
            chosen &= confirmed if self.confirmed else ~confirmed
        if self.pinned is not None:
            chosen &= Q(pinned=self.pinned)
        if self.marked is not None:
            chosen &= Q(marked=self.marked)
        return chosen


def of_customer(customer: str) -> Q:
    """A customer's own memories, and what was said to them in conversations."""
    customer, conversation = customer.replace("\0", ""), f"{ScopeKind.CONVERSATION.value}:"
    # Behind the conversation's id, which has 36 characters. A customer's id may contain a slash.
    named = Exact(Substr("scope", len(conversation) + 37), Value(f"/{customer}"))
    return Q(scope=f"{ScopeKind.CUSTOMER.value}:{customer}") | Q(named, scope__startswith=conversation)


def list_memories(chosen: MemoryFilter, *, before: str = "", limit: int) -> tuple[list[Any], str]:
    """The memories that match, newest first, and where the next page begins (`before` of the next call); "" at the end.

    Each has `excerpt`, the beginning of its text; the text itself is not loaded. A `before` that no page returned is
    ignored.
    """
    rows = MemoryItem.objects.filter(chosen.condition())
    rows = rows.annotate(excerpt=Left("content", EXCERPT)).defer("content", "embedding", "words", "revisions")
    return read_page(rows, before=before, limit=limit)


def memory(memory_id: UUID) -> MemoryItem:
    """Raises `NotFound` for an unknown or foreign id."""
    row: MemoryItem | None = MemoryItem.objects.defer("embedding", "words").filter(pk=memory_id).first()
    if row is None:
        raise NotFound()
    return row


def merged_into(memory_id: UUID, *, limit: int) -> list[MemoryConsolidation]:
    """The newest log rows of memories that were merged into this one."""
    return list(MemoryConsolidation.objects.filter(kept_id=memory_id)[:limit])


def customer_of(scope: str) -> str:
    """The customer that a memory of this scope is about; "" if none is known."""
    kind, _, name = scope.partition(":")
    if kind == ScopeKind.CUSTOMER:
        return name
    return name.partition("/")[2] if kind == ScopeKind.CONVERSATION else ""
