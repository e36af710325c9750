"""Set up and remove a company's web search. Inside the caller's scope."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from uuid import UUID, uuid4

from django.db.models.functions import Now

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.tenants import policy_seals, vault
from apps.tenants.enums import PolicyKind
from apps.tenants.provider_keys import key_problem
from apps.toolservers import integrity
from apps.toolservers.enums import SearchProvider
from apps.toolservers.models import WebSearch
from apps.toolservers.web.providers import PROVIDERS
from apps.toolservers.web.queries import seal_context
from kernel.error_codes import ErrorCode
from kernel.errors import NotFound, SilasError
from kernel.http.allowed import address_problem, is_allowed_private
from kernel.language import gettext

MOST_DOMAINS, MOST_PRICE = 20, Decimal(100)
_DOMAIN = re.compile(r"(?=.{4,253}\Z)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z][a-z0-9-]{0,61}[a-z0-9]")


def set_search(
    provider: str,
    *,
    key: str = "",
    base_url: str = "",
    domains: Sequence[str] = (),
    most_results: int = 5,
    price: Decimal = Decimal(0),
    level: str = "public",
    actor: str,
) -> WebSearch:
    """Search with this provider from now on. An empty `key` keeps the present one for the same provider and address;
    with another of either it has to be given again. Raises `SilasError` 422: search_provider, address_refused,
    search_key, search_terms."""
    base_url = _require_address(provider, base_url.rstrip("/"))
    wanted = [domain.strip().lower() for domain in domains if domain.strip()]
    _require_terms(wanted, most_results, price, level)
    if key and (problem := key_problem(key)):
        raise SilasError(ErrorCode.SEARCH_KEY, problem)
    row: WebSearch | None = WebSearch.objects.select_for_update(no_key=True).first()
    moved = row is None or (row.provider, row.base_url) != (provider, base_url)
    row = row or WebSearch(pk=uuid4())
    row.provider, row.base_url, row.domains = provider, base_url, wanted
    row.most_results, row.price, row.level, row.failure = most_results, price, level, ""
    # The stored key would otherwise go to another host.
    if key or moved:
        row.key = vault.seal(key.encode(), belongs_to=seal_context(row.pk)) if key else b""
    row.changed_at = Now()
    row.save()
    policy_seals.seal_item(PolicyKind.TOOLS, integrity.SEARCH, integrity.search_row_value(row))
    record(AuditEvent.WEB_SEARCH_SET, actor=actor, subject=f"web_search:{row.pk}", data={"provider": provider})
    return row


def remove_search(*, actor: str) -> None:
    """Remove the search and its key: nothing is searched from this commit on. Raises `NotFound`."""
    row: WebSearch | None = WebSearch.objects.select_for_update(no_key=True).first()
    if row is None:
        raise NotFound()
    record(AuditEvent.WEB_SEARCH_REMOVED, actor=actor, subject=f"web_search:{row.pk}", data={"provider": row.provider})
    row.delete()
    policy_seals.remove_item(PolicyKind.TOOLS, integrity.SEARCH)


def record_failure(search_id: UUID, code: str) -> None:
    """Record what went wrong last, for the settings page; "" when it went well."""
    WebSearch.objects.filter(pk=search_id).exclude(failure=code[:60]).update(failure=code[:60])


def reseal() -> int:
    """Seal the company's key under its newest data key; returns how many were changed."""
    count = 0
    for row in WebSearch.objects.exclude(key=b"").select_for_update(no_key=True):
        sealed = vault.reseal(bytes(row.key), belongs_to=seal_context(row.pk))
        if sealed is not None:
            row.key = sealed
            row.save(update_fields=["key"])
            count += 1
    return count


def _require_address(provider: str, base_url: str) -> str:
    """Return the address to ask: the provider's own, or a private one that the operator allows; SearXNG's wherever it
    runs."""
    if provider not in SearchProvider.values:
        raise SilasError(ErrorCode.SEARCH_PROVIDER)
    home = PROVIDERS[provider].home
    if home and base_url not in ("", home) and not is_allowed_private(base_url):
        raise SilasError(ErrorCode.ADDRESS_REFUSED, gettext("This provider can only be used at its own address."))
    if problem := address_problem(base_url or home):
        raise SilasError(ErrorCode.ADDRESS_REFUSED, problem)
    return base_url or home


def _require_terms(domains: Sequence[str], most_results: int, price: Decimal, level: str) -> None:
    if len(domains) > MOST_DOMAINS or not all(map(_DOMAIN.fullmatch, domains)):
        problem = f"Name {MOST_DOMAINS} domains or fewer, each like example.org."
    elif not price.is_finite() or not 0 <= price <= MOST_PRICE:
        problem = "Enter a price from 0 to 100 dollars per search."
    elif not 1 <= most_results <= 10:
        problem = "Choose from 1 to 10 results."
    elif len(level) > 60:
        problem = "The name of the access level is too long."
    else:
        return
    raise SilasError(ErrorCode.SEARCH_TERMS, problem)
