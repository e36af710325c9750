"""Embed memories in the background: those of an imported bundle that have no embedding, and all by the model of a
provider, with the passages of documents. Until then words and earlier vectors find them.

Handlers of `Kind.MEMORY_EMBEDDING` and `Kind.PROVIDER_EMBEDDING`, on the queue `trusted`: no other worker may read
memories (ADR 36).
"""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID, uuid4

from django.db.models import QuerySet

from apps.bus import services as bus
from apps.bus.deliveries import Delivery
from apps.bus.enums import Kind
from apps.guard.schemas import RunRef
from apps.knowledge import provider_vectors
from apps.knowledge import reembedding as passages
from apps.knowledge.models import SearchSettings
from apps.knowledge.provider_vectors import ProviderModel, SearchPlan
from apps.memory.enums import Tier
from apps.memory.models import MemoryItem, MemoryVector, may_be_recalled
from kernel.clock import now
from kernel.tenancy import current_tenant_id, in_scope, in_thread, tenant_scope
from llm import embedding
from llm.failures import ProviderFailed
from llm.provider_embeddings import Vector

_BATCH = 100
# Of a provider: batches in one delivery, vectors deleted at once, and when the job looks again.
_BATCHES, _DELETED = 50, 5000
_AGAIN, _AFTER_PROBLEM = timedelta(minutes=1), timedelta(minutes=5)


def enqueue_embedding() -> None:
    """Enqueue the job for the scope's company, in the transaction of the import."""
    bus.enqueue(
        Kind.MEMORY_EMBEDDING,
        scope_id=current_tenant_id(),
        message_id=f"{Kind.MEMORY_EMBEDDING.value}:{uuid4()}",
    )


async def handle_embedding(delivery: Delivery) -> None:
    """Embed under the present model, in short transactions. Run again after a crash, it continues."""
    pks = await in_scope(delivery.tenant_id, _without_embedding)
    for start in range(0, len(pks), _BATCH):
        await in_thread(_embed, delivery.tenant_id, pks[start : start + _BATCH])


def _without_embedding() -> list[UUID]:
    return list(MemoryItem.objects.filter(embedding=None).order_by().values_list("pk", flat=True))


def _embed(tenant_id: UUID, pks: list[UUID]) -> None:
    with tenant_scope(tenant_id):
        rows = list(MemoryItem.objects.filter(pk__in=pks, embedding=None).values_list("pk", "content"))
    vectors = embedding.embed_all([content for _, content in rows])
    with tenant_scope(tenant_id):
        for (pk, content), vector in zip(rows, vectors, strict=True):
            # A memory that was changed meanwhile has the embedding of its new text.
            MemoryItem.objects.filter(pk=pk, content=content).update(embedding=vector)


async def handle_provider_embedding(delivery: Delivery) -> None:
    """Embed what has no vector of the company's model, in batches that are stored one by one; a process that dies costs
    time only. Delete the vectors of other models once all are done. Looks again every minute."""
    plan = await provider_vectors.load_plan(delivery.tenant_id)
    if plan is not None and plan.model is not None:
        problem = ""
        try:
            await _embed_by_provider(delivery.tenant_id, plan, plan.model)
        except ProviderFailed as failure:
            problem = failure.reason
        if problem != plan.problem:
            await in_scope(delivery.tenant_id, provider_vectors.note_problem, problem)
    await delivery.reschedule(_next_time)


async def _embed_by_provider(tenant_id: UUID, plan: SearchPlan, model: ProviderModel) -> None:
    """Up to 50 batches. Where everything is embedded, a provider that failed is asked once whether it answers."""
    done, total = await in_scope(tenant_id, _counts, model.version)
    if done >= total and not plan.problem:
        return
    run = await provider_vectors.open_run(tenant_id, plan)
    try:
        if done >= total:
            await provider_vectors.embed_guarded(tenant_id, plan, model, ["test"], run=run)
        for _ in range(_BATCHES):
            if not (
                await passages.embed_batch(tenant_id, plan, model, run)
                or await _embed_memories(tenant_id, plan, model, run)
            ):
                break
    finally:
        await provider_vectors.close_run(tenant_id, run)


def _counts(version: str) -> tuple[int, int]:
    """How many passages and memories have a vector of this version, and how many there are."""
    done, total = passages.counts(version)
    memories = MemoryVector.objects.filter(version=version, memory__in=_recallable())
    return done + memories.count(), total + _recallable().count()


def _next_time() -> datetime | None:
    """Store the progress; when to look again, None where the company has no model and no vectors are left."""
    row: SearchSettings | None = SearchSettings.objects.select_for_update(no_key=True).first()
    if row is None:
        return None
    model = ProviderModel(row.embedding_model, row.dimensions) if row.embedding_model else None
    version = model.version if model else ""
    row.embedded, row.total = _counts(version)
    is_done = row.embedded >= row.total
    if is_done:
        row.former_model, row.former_dimensions = "", 0
    row.save(update_fields=["embedded", "total", "former_model", "former_dimensions"])
    if row.problem:
        return now() + _AFTER_PROBLEM
    if not is_done and model:
        return now()
    if passages.delete_others(version, most=_DELETED) + _delete_others(version) >= _DELETED:
        return now()
    return now() + _AGAIN if model else None


def _recallable() -> QuerySet[MemoryItem]:
    """Memories that turns recall; the raw lane, which only subscriptions ask, has built-in vectors only."""
    rows: QuerySet[MemoryItem] = MemoryItem.objects.filter(may_be_recalled(), tier=Tier.ACTIVE)
    return rows


async def _embed_memories(tenant_id: UUID, plan: SearchPlan, model: ProviderModel, run: RunRef) -> bool:
    texts = await in_scope(tenant_id, _missing, model.version)
    if not texts:
        return False
    vectors = await provider_vectors.embed_guarded(tenant_id, plan, model, list(texts.values()), run=run)
    await in_scope(tenant_id, _store, model.version, texts, dict(zip(texts, vectors, strict=True)))
    return True


def _missing(version: str) -> dict[UUID, str]:
    rows = _recallable().exclude(vectors__version=version).order_by().values_list("pk", "content")
    return dict(rows[: passages.BATCH])


def _store(version: str, texts: dict[UUID, str], vectors: dict[UUID, Vector]) -> None:
    """A memory that was changed or deleted meanwhile is left out."""
    rows = MemoryItem.objects.select_for_update(no_key=True).filter(pk__in=vectors).order_by("pk")
    MemoryVector.objects.bulk_create(
        [
            MemoryVector(memory_id=pk, version=version, embedding=vectors[pk])
            for pk, content in rows.values_list("pk", "content")
            if content == texts[pk]
        ],
        ignore_conflicts=True,
    )


def _delete_others(version: str) -> int:
    old = MemoryVector.objects.exclude(version=version).order_by().values_list("pk", flat=True)[:_DELETED]
    return int(MemoryVector.objects.filter(pk__in=list(old)).delete()[0])
