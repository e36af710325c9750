"""Read how a company searches the web. Inside the caller's scope.

Without a usable row there is no such tool: no model is told of it, and the guard refuses it (spec 9.2).
"""

from __future__ import annotations

import json
from decimal import Decimal
from uuid import UUID

from apps.guard.models import GuardedRun
from apps.tenants import policy_seals, vault
from apps.tenants.enums import PolicyKind
from apps.toolservers import integrity
from apps.toolservers.models import WebSearch
from apps.toolservers.web.providers import PROVIDERS
from apps.toolservers.web.schemas import SearchSource, SearchTerms
from kernel.tenancy import Read, current_tenant_id
from kernel.tenancy.reads import Rows
from llm.models import environment_key

_TERMS = """
    SELECT search.provider, search.base_url, search.key <> ''::bytea, search.level, search.price::text,
           search.most_results, search.domains::text,
           (SELECT place.environment_keys FROM tenants_deployment place WHERE place.id = %s),
           seal.version, seal.signature, seal.items
    FROM toolservers_websearch search
    LEFT JOIN tenants_policyseal seal ON seal.tenant_id = search.tenant_id AND seal.kind = 'tools'
    WHERE search.tenant_id = %s
"""


def search_terms(deployment_id: UUID | None) -> Read[SearchTerms | None]:
    """Return the terms on which a chatbot searches: with its company's own key, or the installation's where it may use
    that. One statement, so that setting and sealed list are of one moment."""
    return Read(_TERMS, [deployment_id, current_tenant_id()], _usable_terms)


def _usable_terms(rows: Rows) -> SearchTerms | None:
    for provider, base_url, has_key, level, price, most, domains, environment, *seal in rows:
        sealed = policy_seals.verified_items(current_tenant_id(), PolicyKind.TOOLS, [tuple(seal)] if seal[0] else [])
        value = integrity.search_value(
            provider,
            base_url,
            domains=json.loads(domains),
            most_results=most,
            price=Decimal(price),
            level=level,
        )
        usable = (
            has_key
            or not PROVIDERS[provider].needs_key
            or installation_key(provider, base_url, allowed=bool(environment))
        )
        is_ours = integrity.is_authentic_search(value, sealed)
        return SearchTerms(provider, level, Decimal(price), most) if usable and is_ours else None
    return None


def installation_key(provider: str, base_url: str, *, allowed: bool) -> str:
    """Return the installation's key (`BRAVE_API_KEY`, `TAVILY_API_KEY`), which is sent to the provider's own address
    alone."""
    own = PROVIDERS[provider].home
    return environment_key(f"{provider}:search", allowed=allowed and bool(own) and base_url == own) or ""


def is_set_up() -> bool:
    exists: bool = WebSearch.objects.exists()
    return exists


def search_source(run_id: UUID) -> SearchSource | None:
    """Return the provider for this run, with the key unsealed; never to be stored or logged. None when search is not
    set up. Raises `SilasError("seal_broken")`."""
    row = web_search()
    if row is None or not integrity.is_authentic_search(
        integrity.search_row_value(row), policy_seals.load_items(PolicyKind.TOOLS)
    ):
        return None
    run = GuardedRun.objects.filter(pk=run_id)
    allowed = bool(run.values_list("deployment__environment_keys", flat=True).first())
    sealed = bytes(row.key)
    key = vault.unseal(sealed, belongs_to=seal_context(row.pk)).decode() if sealed else ""
    key = key or installation_key(row.provider, row.base_url, allowed=allowed)
    if not key and PROVIDERS[row.provider].needs_key:
        return None
    return SearchSource(row.pk, row.provider, row.base_url, tuple(row.domains), row.most_results, key)


def web_search() -> WebSearch | None:
    row: WebSearch | None = WebSearch.objects.first()
    return row


def seal_context(search_id: object) -> str:
    """Return what the key is bound to when it is sealed."""
    return f"web_search:{search_id}"
