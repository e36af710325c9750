"""Find the memories relevant to a question, in the given scopes only: by text and in the graph (spec 6.1, 6.3).

Every query names its scopes; without one nothing is found. Callers never pass a scope that a model named.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import Q, QuerySet
from pgvector.django import CosineDistance

from apps.knowledge.provider_vectors import QuestionVector
from apps.knowledge.queries import MAX_QUESTION_LENGTH
from apps.memory import facts, graph
from apps.memory.enums import Purpose, ScopeKind, Tier, Trust
from apps.memory.models import MemoryItem, may_be_recalled
from apps.memory.schemas import Scope, conversation_scope
from kernel.clock import now
from kernel.taint import Taint, join
from kernel.tenancy import Read, built_once, current_tenant_id, read_together
from kernel.tenancy.reads import Rows
from llm.briefing import RecalledMemory
from llm.context.budget import count_tokens
from llm.embedding import Vector
from llm.enums import MemoryQueryStrategy as Strategy
from llm.enums import MemoryType

# Confirmed preferences that one window holds; they are pinned, so they must always fit.
MOST_PREFERENCES, PREFERENCE_TOKENS = 10, 400
# How far back in one scope and tier a question reaches.
REACH = 500
_BY = {
    Strategy.SEMANTIC: "semantic",
    Strategy.SESSION: "semantic",
    Strategy.KEYWORD: "keyword",
    Strategy.TEMPORAL: "newest",
}
_DEPLOYMENT = "deployment:"
_RECALL_COMPANY = "SELECT * FROM memory_recall_company(%s::uuid, %s, %s::vector, %s)"
# Vectors of other dimensions cannot be compared, so those of the version are read first.
_NEAREST = """
    WITH mine AS MATERIALIZED (
        SELECT stored.memory_id, stored.embedding
            FROM unnest(%s::text[]) AS mine(scope) CROSS JOIN unnest(%s::text[]) AS wanted(tier) CROSS JOIN LATERAL (
                SELECT id FROM memory_memoryitem AS item WHERE item.tenant_id = %s AND item.scope = mine.scope
                    AND item.tier = wanted.tier AND item.archived_at IS NULL
                    AND (item.valid_until IS NULL OR item.valid_until > now())
                    ORDER BY item.created_at DESC LIMIT %s
            ) AS item JOIN memory_memoryvector AS stored ON stored.memory_id = item.id AND stored.version = %s
    ), measured AS (
        SELECT memory_id, embedding <=> %s::halfvec AS distance FROM mine
    )
    SELECT memory_id FROM measured WHERE distance < 0.75 ORDER BY distance, memory_id LIMIT %s
"""
_RECALL = "SELECT * FROM memory_recall(%s::uuid, %s::text[], %s::text[], %s, %s::vector, %s, %s, %s)"


def recall_for(
    purpose: Purpose,
    scopes: Iterable[Scope],
    text: str,
    *,
    vector: Vector | None,
    by_provider: Sequence[QuestionVector] = (),
    others: Sequence[Read[Any]] = (),
) -> tuple[RecalledMemory, ...]:
    """The memories of these scopes that a turn or a background run is given, within the budget of its purpose. `others`
    are read in the same round trip."""
    budget = facts.BUDGETS[purpose]
    found = recall(scopes, text, vector=vector, k=2 * budget.items, by_provider=by_provider, others=others)
    return facts.within_budget(found, budget, count=count_tokens)


def recall_company(purpose: Purpose, text: str, *, vector: Vector | None) -> tuple[RecalledMemory, ...]:
    """What the company remembers for everybody, within the budget of a background run.

    For workers, which may read no memory of a conversation or a customer: a function of the database reads for them. It
    leaves out what was written after its author had read instructions to the assistant.
    """
    budget = facts.BUDGETS[purpose]
    question = text[:MAX_QUESTION_LENGTH].replace("\0", " ")
    values = [current_tenant_id(), question, None if vector is None else str(vector), 2 * budget.items]
    return facts.within_budget(Read(_RECALL_COMPANY, values, _memories).value, budget, count=count_tokens)


def recall(
    scopes: Iterable[Scope],
    text: str,
    *,
    vector: Vector | None,
    k: int,
    tiers: Iterable[Tier] = (Tier.ACTIVE,),
    strategy: Strategy | None = None,
    by_provider: Sequence[QuestionVector] = (),
    others: Sequence[Read[Any]] = (),
) -> tuple[RecalledMemory, ...]:
    """The `k` best memories of these scopes, best first. The raw lane is asked only when `tiers` names it.

    Without a strategy by all of them: by words and meaning, by the entities and the times that the question names, and
    by causes if it asks for one, fused by rank; by a provider's vectors too where the question has some.
    """
    scopes, tiers, text = list(scopes), list(tiers), text[:MAX_QUESTION_LENGTH].replace("\0", " ")
    by_words = _by_text(scopes, text, vector, k, tiers, strategy or Strategy.SEMANTIC)
    relations = graph.newest_relations(scopes) if strategy in (None, Strategy.ENTITY) else None
    read_together(*(each for each in (by_words, relations) if each), *others)
    by_text = by_words.value if by_words else []
    rankings = [[UUID(memory.memory_id) for memory in by_text]]
    if relations is not None:
        rankings.append(graph.rank_by_entity(relations.value, text))
    if strategy in (None, Strategy.TEMPORAL):
        rankings.append(graph.rank_by_time(scopes, text, tiers=tiers))
    if strategy is Strategy.CAUSAL or (strategy is None and graph.asks_for_cause(text)):
        rankings.append(graph.rank_by_cause(scopes, text))
    if strategy in (Strategy.ENTITY, Strategy.CAUSAL) or (strategy is Strategy.TEMPORAL and rankings[1]):
        del rankings[0]
    if strategy is None:
        rankings += [_by_provider(scopes, tiers, asked, 2 * k) for asked in by_provider]
    best = facts.fuse(rankings)[:k]
    known = {UUID(memory.memory_id): memory for memory in by_text}
    known |= _by_id(scopes, tiers, [pk for pk in best if pk not in known], vector)
    return tuple(known[pk] for pk in best if pk in known)


def _by_text(
    scopes: list[Scope], text: str, vector: Vector | None, k: int, tiers: list[Tier], strategy: Strategy
) -> Read[list[RecalledMemory]] | None:
    """By words and meaning, by words, or the newest; nothing for a strategy of the graph."""
    if strategy not in _BY:
        return None
    values: list[object] = [
        current_tenant_id(),
        [str(scope) for scope in scopes],
        [tier.value for tier in tiers],
        text,
        None if vector is None else str(vector),
        _BY[strategy],
        k,
        REACH,
    ]
    return Read(_RECALL, values, _memories)


def _by_provider(scopes: list[Scope], tiers: list[Tier], asked: QuestionVector, k: int) -> list[UUID]:
    """The nearest by one model of the newest memories of each scope and tier."""
    values: list[Any] = [
        [str(scope) for scope in scopes],
        [tier.value for tier in tiers],
        current_tenant_id(),
        REACH,
        asked.model.version,
        str(asked.vector),
        k,
    ]
    with connection.cursor() as cursor:
        cursor.execute(_NEAREST, values)
        return [pk for (pk,) in cursor.fetchall()]


def _memories(rows: Rows) -> list[RecalledMemory]:
    return [
        RecalledMemory(
            str(pk), content, kind, trust, Taint(taint), said_at.date().isoformat(), reference, float(score), marked
        )
        for pk, reference, kind, trust, taint, content, said_at, score, marked in rows
    ]


def _by_id(
    scopes: list[Scope], tiers: list[Tier], ids: list[UUID], vector: Vector | None
) -> dict[UUID, RecalledMemory]:
    """These memories as far as they are in the scopes and tiers, with how alike they and the question are."""
    if not ids:
        return {}
    rows = MemoryItem.objects.filter(
        may_be_recalled(), pk__in=ids, scope__in=[str(scope) for scope in scopes], tier__in=tiers
    )
    if vector is not None:
        rows = rows.annotate(distance=CosineDistance("embedding", vector))
    return {
        row.pk: _recalled(row, max(0.0, 1 - (getattr(row, "distance", None) or 1.0)))
        for row in rows.defer("embedding", "words")
    }


def _recalled(row: MemoryItem, score: float = 0.0) -> RecalledMemory:
    return RecalledMemory(
        memory_id=str(row.pk),
        text=row.content,
        kind=row.memory_type,
        trust=row.trust,
        taint=Taint(row.taint),
        said_at=row.created_at.date().isoformat(),
        reference=row.reference,
        score=score,
        marked=row.marked,
    )


def taint_of(memories: Iterable[RecalledMemory]) -> Taint:
    """How little what was recalled may be trusted: as the worst of it; `owner` for nothing."""
    return join(Taint.OWNER, *(memory.taint for memory in memories))


def deployment_tag(deployment_id: UUID) -> str:
    """The tag of a preference that counts at this deployment only; one without such a tag counts at all of them."""
    return f"{_DEPLOYMENT}{deployment_id}"


def confirmed_preferences(deployment_id: UUID) -> Read[tuple[RecalledMemory, ...]]:
    """The preferences that a person of the company confirmed for this deployment, newest first (spec 6.6).

    They are defaults for models, independent of the question; a visitor's scope is never read here.
    """
    company = Scope(ScopeKind.TENANT, str(current_tenant_id()))
    rows = _verified_preferences.rows(str(company), now())
    return rows.parsed(partial(_of_deployment, deployment_id))


@built_once
def _verified_preferences(scope: str, at: datetime) -> QuerySet[MemoryItem]:
    kind = {"memory_type": MemoryType.PREFERENCE.value, "trust": Trust.VERIFIED, "tier": Tier.ACTIVE}
    rows = MemoryItem.objects.filter(may_be_recalled(at=at), scope=scope, **kind).order_by("-created_at", "pk")
    return rows.defer("embedding", "words")


def _of_deployment(deployment_id: UUID, rows: Iterable[MemoryItem]) -> tuple[RecalledMemory, ...]:
    mine, room = deployment_tag(deployment_id), PREFERENCE_TOKENS
    found: list[RecalledMemory] = []
    for row in rows:
        elsewhere = any(tag.startswith(_DEPLOYMENT) for tag in row.tags) and mine not in row.tags
        room -= 0 if elsewhere else count_tokens(row.content)
        if room < 0 or len(found) == MOST_PREFERENCES:
            break
        if not elsewhere:
            found.append(_recalled(row))
    return tuple(found)


def memory_texts(scopes: Iterable[Scope], ids: Iterable[UUID]) -> Mapping[UUID, tuple[str, str]]:
    """Type and text of those of these memories that still exist in these scopes; for the record of a window."""
    rows = memories_of(scopes).filter(pk__in=list(ids)).values_list("pk", "memory_type", "content")
    return {pk: (kind, text) for pk, kind, text in rows}


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
