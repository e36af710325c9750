"""The models that search a company's knowledge, and the progress of embedding. Owners choose; approvers view."""

from __future__ import annotations

import asyncio

from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.views.decorators.http import require_POST, require_safe

from apps.console.base import page
from apps.console.members import DECIDING_ROLES, StaffRequest, staff_view
from apps.knowledge import search_settings
from apps.tenants.enums import Role
from apps.tenants.models import Deployment
from kernel.errors import SilasError
from kernel.ids import require_id
from kernel.tenancy import tenant_scope

EXAMPLES = ("openai:text-embedding-3-small", "openai:text-embedding-3-large", "ollama:nomic-embed-text")


@require_safe
@staff_view(*DECIDING_ROLES)
def show(request: StaffRequest) -> HttpResponseBase:
    return _page(request)


@require_POST
@staff_view(Role.OWNER, scoped=False)
def save(request: StaffRequest) -> HttpResponseBase:
    """Outside of any scope: a new embedding model is tried first."""
    names = {name: request.POST.get(name, "").strip()[:120] for name in ("embedding", "reranker")}
    deployment_id = require_id(request.POST.get("deployment", ""))
    try:
        asyncio.run(
            search_settings.choose(request.member.tenant.pk, deployment_id, **names, actor=request.member.user.actor)
        )
    except SilasError as refusal:
        if refusal.status != 422:
            raise
        with tenant_scope(request.member.tenant):
            return _page(request, refusal=refusal, typed=names).render()
    return redirect("console-search-models")


def _page(
    request: StaffRequest, *, refusal: SilasError | None = None, typed: dict[str, str] | None = None
) -> TemplateResponse:
    row = search_settings.current()
    saved = {"embedding": row.embedding_model, "reranker": row.reranker} if row else {}
    return page(
        request,
        "console/search_models.html",
        at="knowledge",
        status=422 if refusal else 200,
        row=row,
        percent=100 * row.embedded // row.total if row and row.total else 0,
        places=list(Deployment.objects.order_by("created_at")),
        chosen=row.deployment_id if row else None,
        values=typed or saved,
        examples=EXAMPLES,
        refusal=refusal,
    )
