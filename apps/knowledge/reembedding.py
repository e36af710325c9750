"""Embed passages by the company's provider model, in the background; earlier vectors answer until all are done."""

from __future__ import annotations

from uuid import UUID

from apps.guard.schemas import RunRef
from apps.knowledge.models import Chunk, ChunkVector
from apps.knowledge.provider_vectors import ProviderModel, SearchPlan, embed_guarded
from kernel.tenancy import in_scope
from llm.provider_embeddings import Vector

BATCH = 64


async def embed_batch(tenant_id: UUID, plan: SearchPlan, model: ProviderModel, run: RunRef) -> bool:
    """Embed up to 64 passages that have no vector of the model; False if there are none. Raises `ProviderFailed`."""
    texts = await in_scope(tenant_id, _missing, model.version)
    if not texts:
        return False
    vectors = await embed_guarded(tenant_id, plan, model, list(texts.values()), run=run)
    await in_scope(tenant_id, _store, model, dict(zip(texts, vectors, strict=True)))
    return True


def counts(version: str) -> tuple[int, int]:
    """How many passages have a vector of this version, and how many there are. Inside a scope."""
    return ChunkVector.objects.filter(version=version).count(), Chunk.objects.count()


def delete_others(version: str, *, most: int) -> int:
    """Delete up to `most` vectors of other versions; returns how many. Inside a scope."""
    old = ChunkVector.objects.exclude(version=version).order_by().values_list("pk", flat=True)[:most]
    return int(ChunkVector.objects.filter(pk__in=list(old)).delete()[0])


def _missing(version: str) -> dict[UUID, str]:
    rows = Chunk.objects.exclude(vectors__version=version).order_by().values_list("pk", "context", "text")[:BATCH]
    return {pk: f"{context}\n{text}" for pk, context, text in rows}


def _store(model: ProviderModel, vectors: dict[UUID, Vector]) -> None:
    """A passage that was deleted meanwhile is left out."""
    rows = Chunk.objects.select_for_update(no_key=True).filter(pk__in=vectors).order_by("pk")
    ChunkVector.objects.bulk_create(
        [
            ChunkVector(
                chunk_id=pk,
                collection_id=collection_id,
                version=model.version,
                dimensions=model.dimensions,
                embedding=vectors[pk],
            )
            for pk, collection_id in rows.values_list("pk", "collection_id")
        ],
        ignore_conflicts=True,
    )
