"""Search by a provider's vectors beside the built-in ones (spec 6.2).

A question is embedded once for each model whose vectors are there, through the guard, and compared with the vectors of
that model only. A model that does not answer within two seconds is left out of the search; after two failures it is not
asked for a minute. What is found without it is the built-in search.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any
from uuid import UUID

from django.db import connection

from apps.guard import services as guard
from apps.guard.enums import Origin, Phase, RunStatus, TerminalReason
from apps.guard.schemas import Call, RunRef
from apps.knowledge.models import SearchSettings
from kernel.clock import now
from kernel.tenancy import Read, current_tenant_id, in_scope
from kernel.tenancy.reads import Rows
from llm import provider_embeddings
from llm.context.scorer import Breaker
from llm.failures import ProviderFailed
from llm.keys import ProviderKeys
from llm.provider_embeddings import Embedded, Vector
from llm.runs import Usage

PURPOSE = "embedding"
QUESTION_SECONDS = 2.0
# How many of the nearest passages of one model are fused.
NEAREST = 60

_SETTINGS = """
    SELECT settings.id, settings.deployment_id, settings.embedding_model, settings.dimensions, settings.former_model,
           settings.former_dimensions, settings.embedded, settings.total, settings.problem, settings.reranker,
           place.environment_keys, place.sealed_keys::text
    FROM knowledge_searchsettings settings JOIN tenants_deployment place ON place.id = settings.deployment_id
    WHERE settings.tenant_id = %s
"""


@dataclass(frozen=True)
class ProviderModel:
    name: str
    dimensions: int

    @property
    def version(self) -> str:
        return provider_embeddings.version(self.name, self.dimensions)


@dataclass(frozen=True)
class SearchPlan:
    """The search settings of a company, with the keys that they use. `share` of its passages and memories have a vector
    of `model`; those of `former` answer until all have."""

    settings_id: UUID
    deployment_id: UUID
    model: ProviderModel | None
    former: ProviderModel | None
    share: float
    problem: str
    reranker: str
    keys: ProviderKeys


@dataclass(frozen=True)
class QuestionVector:
    """A question by one model. Of a passage that has a vector of this model, its rank counts with `weight`."""

    model: ProviderModel
    vector: Vector = field(repr=False)
    weight: float


def search_plan() -> Read[SearchPlan | None]:
    """The scope's search settings; None where everything is built in."""
    return Read(_SETTINGS, [current_tenant_id()], _plan)


def _plan(rows: Rows) -> SearchPlan | None:
    for pk, place, name, size, former, former_size, embedded, total, problem, reranker, environment, sealed in rows:
        return SearchPlan(
            settings_id=pk,
            deployment_id=place,
            model=ProviderModel(name, size) if name else None,
            former=ProviderModel(former, former_size) if former else None,
            share=min(embedded / total, 1.0) if total else 0.0,
            problem=problem,
            reranker=reranker,
            keys=ProviderKeys(environment, json.loads(sealed), str(place)),
        )
    return None


async def load_plan(tenant_id: UUID) -> SearchPlan | None:
    """`search_plan` for callers outside of any scope."""
    return await in_scope(tenant_id, lambda: search_plan().value)


async def embed_question(
    tenant_id: UUID, plan: SearchPlan | None, text: str, *, run: RunRef | None
) -> tuple[QuestionVector, ...]:
    """The question by each model whose vectors are there; without those that cannot be had now. Outside of any scope.

    `run` pays for it; without one a run is opened for this question.
    """
    if plan is None or not text.strip():
        return ()
    # Ranks are fused and never distances, which two models do not share. By its share a new model takes over gradually,
    # so nothing jumps when its last passage is embedded.
    weighted = [(plan.model, plan.share), (plan.former, 1 - plan.share)]
    asked = [(model, weight) for model, weight in weighted if model is not None and weight > 0]
    if not asked:
        return ()
    payer = run or await open_run(tenant_id, plan)
    try:
        answers = [
            QuestionVector(model, vector, weight)
            for model, weight in asked
            if (vector := await _embed_question(tenant_id, plan, model, text, payer)) is not None
        ]
    finally:
        if run is None:
            await close_run(tenant_id, payer)
    return tuple(answers)


async def _embed_question(
    tenant_id: UUID, plan: SearchPlan, model: ProviderModel, text: str, run: RunRef
) -> Vector | None:
    breaker = breaker_of(tenant_id, model.version)
    if breaker.is_open:
        return None
    try:
        found = await embed_guarded(tenant_id, plan, model, [text], run=run, of_question=True)
    except guard.NotAdmitted:
        return None
    except ProviderFailed as failure:
        breaker.failed()
        if model == plan.model:
            await in_scope(tenant_id, note_problem, failure.reason)
        return None
    breaker.succeeded()
    if model == plan.model and plan.problem:
        await in_scope(tenant_id, note_problem, "")
    return found[0]


@lru_cache(maxsize=1024)
def breaker_of(tenant_id: UUID, model: str) -> Breaker:
    """One in a process for each tenant's model: two failures, and it is not asked for a minute."""
    return Breaker(failures=2, cool_down=60)


async def embed_guarded(
    tenant_id: UUID,
    plan: SearchPlan,
    model: ProviderModel,
    texts: Sequence[str],
    *,
    run: RunRef,
    of_question: bool = False,
) -> tuple[Vector, ...]:
    """Embed texts as one guarded call. Raises `ProviderFailed`, also when the guard refuses the call or the vectors
    have other dimensions than they had when the model was chosen."""
    seconds = QUESTION_SECONDS if of_question else 60.0

    async def ask() -> tuple[Embedded, Usage]:
        key = plan.keys.of(model.name)
        found = await provider_embeddings.embed(
            model.name, texts, key=key, purpose="query" if of_question else "document", seconds=seconds
        )
        return found, found.usage

    forecast = provider_embeddings.estimate_usage(texts)
    call = Call(tool=PURPOSE, model=model.name, forecast=forecast, patience_seconds=2 * seconds, optional=True)
    found = await guard.call_model(tenant_id, run, call, ask)
    if len(found.vectors[0]) != model.dimensions:
        raise ProviderFailed("other_dimensions")
    return found.vectors


async def open_run(tenant_id: UUID, plan: SearchPlan) -> RunRef:
    """A run that pays for calls outside of conversations and tasks."""

    def opened() -> RunRef:
        run = guard.open_run(
            Origin.WORK,
            plan.settings_id,
            deployment_id=plan.deployment_id,
            phase=Phase.EXECUTION,
            critical=False,
            allow=(),
        )
        return run.ref

    return await in_scope(tenant_id, opened)


async def close_run(tenant_id: UUID, run: RunRef) -> None:
    await in_scope(tenant_id, guard.close_run, run.run_id, status=RunStatus.COMPLETED, reason=TerminalReason.COMPLETED)


def note_problem(code: str) -> None:
    """Store why the provider is of no use now, "" for none. Inside a scope."""
    rows = SearchSettings.objects.exclude(problem=code)
    rows.update(problem=code[:60], problem_at=now() if code else None)


def nearest(asked: QuestionVector, *, levels: Sequence[str], builtin: Vector, also: Sequence[UUID]) -> Rows:
    """The passages nearest to the question by one model, and those of the chunks `also` that have a vector of it.

    Rows as of `memory_search`, with the rank by this model in the last column. Inside a scope.
    """
    size = int(asked.model.dimensions)
    # The query names the size so that the partial index of that size serves it. Half precision, because an HNSW index
    # over `vector` takes no 3072 dimensions.
    distance = f"embedding::halfvec({size}) <=> %(vector)s::halfvec({size})"
    mine = f"""FROM knowledge_chunkvector
            WHERE tenant_id = %(tenant)s AND dimensions = {size} AND version = %(version)s
                AND collection_id = ANY (ARRAY(SELECT id FROM homes))"""  # noqa: S608  (a number of our own)
    # Up to 2000 passages are compared exactly; the addition hides the order from the index.
    statement = f"""
        WITH homes AS MATERIALIZED (
            SELECT id, chunk_count FROM memory_collection WHERE tenant_id = %(tenant)s AND min_level = ANY (%(levels)s)
        ), near AS MATERIALIZED (
            (SELECT chunk_id, {distance} AS distance {mine} AND (SELECT sum(chunk_count) FROM homes) > 2000
                ORDER BY {distance} LIMIT {NEAREST})
            UNION ALL
            (SELECT chunk_id, {distance} AS distance {mine}
                AND coalesce((SELECT sum(chunk_count) FROM homes), 0) <= 2000
                ORDER BY ({distance}) + 0 LIMIT {NEAREST})
            UNION
            SELECT chunk_id, {distance} AS distance {mine} AND chunk_id = ANY (%(also)s)
        )
        SELECT version.document_id, version.id, chunk.context::text, document.url::text, chunk."start", chunk."end",
               chunk.text, coalesce(greatest(0, 1 - (chunk.embedding <=> %(builtin)s::vector)), 0), NULL::bigint,
               chunk.id, row_number() OVER (ORDER BY near.distance, chunk.id)
        FROM near
        JOIN memory_chunk AS chunk ON chunk.id = near.chunk_id
        JOIN memory_documentversion AS version ON version.id = chunk.version_id
        JOIN memory_document AS document ON document.id = version.document_id
        ORDER BY near.distance, chunk.id
    """  # noqa: S608  (numbers of our own)
    values: dict[str, Any] = {
        "tenant": current_tenant_id(),
        "levels": list(levels),
        "vector": str(asked.vector),
        "version": asked.model.version,
        "builtin": str(builtin),
        "also": list(also),
    }
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('hnsw.iterative_scan', 'relaxed_order', true)")
        cursor.execute(statement, values)
        rows: Rows = cursor.fetchall()
    return rows
