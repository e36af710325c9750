"""Choose the embedding model and the reranker of a company. Owners do; nothing is embedded in the web process."""

from __future__ import annotations

from uuid import UUID

from apps.audit.services import record_row_change
from apps.bus.enums import Kind
from apps.bus.services import schedule
from apps.guard import services as guard
from apps.guard.schemas import Call
from apps.knowledge import provider_vectors
from apps.knowledge.models import SearchSettings
from apps.knowledge.provider_vectors import ProviderModel, SearchPlan
from apps.tenants.queries import deployment_by_id
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import gettext
from kernel.tenancy import current_tenant_id, in_scope
from llm import provider_embeddings
from llm.failures import ProviderFailed
from llm.models import is_builtin, is_known
from llm.runs import Usage

_PROBE = "How long does delivery take?"


async def choose(tenant_id: UUID, deployment_id: UUID, *, embedding: str, reranker: str, actor: str) -> SearchSettings:
    """Search with these models from now on, with the keys and at the expense of the chatbot; "" is the built-in way.

    A new embedding model is tried with one text before it is stored. Outside of any scope. Raises `NotFound` for a
    foreign chatbot, `SilasError("search_model")` 422 for a model that cannot be used.
    """
    for name in (embedding, reranker):
        if name and (is_builtin(name) or not is_known(name)):
            raise SilasError(ErrorCode.SEARCH_MODEL, gettext("Unknown model name."))
    plan = await in_scope(tenant_id, _plan_of, deployment_id)
    model = await _try_model(tenant_id, plan, embedding) if embedding else None
    return await in_scope(tenant_id, _store, deployment_id, model, reranker, actor)


def current() -> SearchSettings | None:
    """Of the scope's company."""
    row: SearchSettings | None = SearchSettings.objects.select_related("deployment").first()
    return row


def _plan_of(deployment_id: UUID) -> SearchPlan:
    place = deployment_by_id(deployment_id)
    return SearchPlan(place.pk, place.pk, None, None, 0.0, "", "", place.keys)


async def _try_model(tenant_id: UUID, plan: SearchPlan, name: str) -> ProviderModel:
    """The model, with the dimensions of its vectors."""
    texts = [_PROBE]

    async def ask() -> tuple[int, Usage]:
        found = await provider_embeddings.embed(name, texts, key=plan.keys.of(name), purpose="query", seconds=20)
        return len(found.vectors[0]), found.usage

    run = await provider_vectors.open_run(tenant_id, plan)
    forecast = provider_embeddings.estimate_usage(texts)
    call = Call(tool=provider_vectors.PURPOSE, model=name, forecast=forecast, patience_seconds=40)
    try:
        dimensions = await guard.call_model(tenant_id, run, call, ask)
    except ProviderFailed as failure:
        message = gettext("The model could not be used ({reason}). Check its name and the key.")
        raise SilasError(ErrorCode.SEARCH_MODEL, message.format(reason=failure.reason)) from None
    finally:
        await provider_vectors.close_run(tenant_id, run)
    if dimensions not in provider_embeddings.DIMENSIONS:
        sizes = ", ".join(map(str, provider_embeddings.DIMENSIONS))
        message = gettext("The model's vectors have {number} dimensions; choose one with {sizes}.")
        raise SilasError(ErrorCode.SEARCH_MODEL, message.format(number=dimensions, sizes=sizes))
    return ProviderModel(name, dimensions)


def _store(deployment_id: UUID, model: ProviderModel | None, reranker: str, actor: str) -> SearchSettings:
    row: SearchSettings | None = SearchSettings.objects.select_for_update(no_key=True).first()
    row = row or SearchSettings(deployment_id=deployment_id)
    before = ProviderModel(row.embedding_model, row.dimensions) if row.embedding_model else None
    row.deployment_id, row.reranker, row.updated_at = deployment_id, reranker, now()
    row.problem, row.problem_at = "", None
    if model != before:
        # The vectors that most passages have answer until the new ones are complete.
        if before is not None and row.embedded == row.total:
            row.former_model, row.former_dimensions = before.name, before.dimensions
        if model is not None and model == ProviderModel(row.former_model, row.former_dimensions):
            row.former_model, row.former_dimensions = "", 0
        row.embedding_model, row.dimensions = (model.name, model.dimensions) if model else ("", 0)
        row.embedded = 0
        if model is None:
            row.former_model, row.former_dimensions = "", 0
    row.save()
    schedule(Kind.PROVIDER_EMBEDDING, scope_id=current_tenant_id(), due_at=now())
    record_row_change(row, "changed", actor=actor)
    return row
