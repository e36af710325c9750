"""Find the memories relevant to a question, in the given scopes only.

Every query names its scopes; without one nothing is found. Callers never pass a scope that a model named.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import Q, QuerySet

from apps.knowledge.queries import MAX_QUESTION_LENGTH
from apps.memory.enums import ScopeKind, Tier
from apps.memory.models import MemoryItem
from apps.memory.schemas import Scope, conversation_scope
from kernel.taint import Taint
from kernel.tenancy import current_tenant_id
from llm.briefing import RecalledMemory
from llm.embedding import Vector
from llm.enums import MemoryQueryStrategy as Strategy

# How far back in one scope and tier a question reaches.
REACH = 500
_BY = {
    Strategy.SEMANTIC: "semantic",
    Strategy.SESSION: "semantic",
    Strategy.KEYWORD: "keyword",
    Strategy.TEMPORAL: "newest",
}
_RECALL = "SELECT * FROM memory_recall(%s::uuid, %s::text[], %s::text[], %s, %s::vector, %s, %s, %s)"


def recall(
    scopes: Iterable[Scope],
    text: str,
    *,
    vector: Vector | None,
    k: int,
    tiers: Iterable[Tier] = (Tier.ACTIVE,),
    strategy: Strategy = Strategy.SEMANTIC,
) -> tuple[RecalledMemory, ...]:
    """The `k` best memories of these scopes, best first. The raw lane is asked only when `tiers` names it."""
    values: list[Any] = [
        current_tenant_id(),
        [str(scope) for scope in scopes],
        [tier.value for tier in tiers],
        text[:MAX_QUESTION_LENGTH].replace("\0", " "),
        None if vector is None else str(vector),
        _BY[strategy],
        k,
        REACH,
    ]
    with connection.cursor() as cursor:
        cursor.execute(_RECALL, values)
        rows = cursor.fetchall()
    return tuple(
        RecalledMemory(
            str(pk), content, kind, trust, Taint(taint), said_at.date().isoformat(), reference, float(score), marked
        )
        for pk, reference, kind, trust, taint, content, said_at, score, marked in rows
    )


def memory_texts(scopes: Iterable[Scope], ids: Iterable[UUID]) -> Mapping[UUID, str]:
    """The texts of those of these memories that still exist in these scopes; for the record of a window."""
    return dict(memories_of(scopes).filter(pk__in=list(ids)).values_list("pk", "content"))


def conversations_with(customer: str) -> set[UUID]:
    """Conversations in which something was said to this customer, even if other customers followed there."""
    rows = MemoryItem.objects.filter(scope__startswith=f"{ScopeKind.CONVERSATION.value}:", session_id__isnull=False)
    named = rows.filter(scope__endswith=f"/{customer}").values_list("session_id", "scope").distinct()
    return {pk for pk, scope in named if pk is not None and scope == str(conversation_scope(pk, customer))}


def memories_of(scopes: Iterable[Scope]) -> QuerySet[MemoryItem]:
    """All memories of these scopes, a conversation's with what was said in it to any customer. Not for a turn."""
    condition = Q(pk__in=[])
    for scope in scopes:
        condition |= Q(scope=str(scope))
        if scope.kind is ScopeKind.CONVERSATION and "/" not in scope.id:
            condition |= Q(scope__startswith=f"{scope}/")
    rows: QuerySet[MemoryItem] = MemoryItem.objects.filter(condition)
    return rows
