"""Search providers: how each is asked, and how its answer is read. One request, one bounded answer.

Only the provider's own host is called (`http_client`): no redirect is followed, nothing compressed is read, and the
request ends after `SECONDS`. An answer is untrusted: addresses that are not public are left out, markup and invisible
characters are removed, and the key never comes back. Called outside of every transaction.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import httpx2

from apps.toolservers import rules
from apps.toolservers.enums import SearchProvider
from apps.toolservers.http_client import client_for
from apps.toolservers.web.schemas import LONGEST_QUERY, SECONDS, SearchResult, SearchSource
from kernel.errors import SilasError
from kernel.http.addresses import host_of, is_public_url
from kernel.http.resolver import RequestRefused

MOST_BYTES = 1_000_000
_LONGEST_TITLE, _LONGEST_TEXT, _LONGEST_URL = 200, 1200, 500
_LONGEST_WITH_SITES = 400
_STATUS = {401: "key_refused", 403: "key_refused", 402: "search_used_up", 429: "search_used_up", 432: "search_used_up"}


class SearchFailed(Exception):
    """A search that failed. `code` is ours: key_refused, search_used_up, no_answer, too_slow, unreadable,
    answer_too_large, answer_packed, address_inside, …; `asked`: the provider may charge for it."""

    def __init__(self, code: str, *, asked: bool) -> None:
        super().__init__(code)
        self.code = code
        self.asked = asked


@dataclass(frozen=True)
class Provider:
    """`home`: the only address with which a key of the installation is used; empty for one's own server. `pages` finds
    the list in an answer, `text` is the field of a page's text."""

    home: str
    needs_key: bool
    request: Callable[[SearchSource, str, int], dict[str, Any]]
    pages: Callable[[Mapping[str, Any]], Any]
    text: str


def _brave(source: SearchSource, query: str, most: int) -> dict[str, object]:
    """https://api-dashboard.search.brave.com/app/documentation/web-search/get-started"""
    params = {"q": _with_sites(query, source.domains), "count": str(most), "text_decorations": "false"}
    headers = {"X-Subscription-Token": source.key, "Accept": "application/json"}
    return {"method": "GET", "url": f"{source.base_url}/res/v1/web/search", "params": params, "headers": headers}


def _tavily(source: SearchSource, query: str, most: int) -> dict[str, object]:
    """https://docs.tavily.com/documentation/api-reference/endpoint/search"""
    body = {"query": query, "max_results": most, "search_depth": "basic", "include_domains": list(source.domains)}
    headers = {"Authorization": f"Bearer {source.key}"}
    return {"method": "POST", "url": f"{source.base_url}/search", "json": body, "headers": headers}


def _searxng(source: SearchSource, query: str, most: int) -> dict[str, object]:
    """https://docs.searxng.org/dev/search_api.html"""
    params = {"q": _with_sites(query, source.domains), "format": "json"}
    headers = {"Authorization": f"Bearer {source.key}"} if source.key else {}
    return {"method": "GET", "url": f"{source.base_url}/search", "params": params, "headers": headers}


PROVIDERS: Mapping[str, Provider] = {
    SearchProvider.BRAVE: Provider(
        "https://api.search.brave.com", True, _brave, lambda said: (said.get("web") or {}).get("results"), "description"
    ),
    SearchProvider.TAVILY: Provider("https://api.tavily.com", True, _tavily, lambda said: said["results"], "content"),
    SearchProvider.SEARXNG: Provider("", False, _searxng, lambda said: said["results"], "content"),
}


async def search(source: SearchSource, query: str, *, most: int) -> tuple[SearchResult, ...]:
    """Return at most `most` pages, in the provider's order. `query` has been validated. Raises `SearchFailed`."""
    provider = PROVIDERS[source.provider]
    request = provider.request(source, query[:LONGEST_QUERY], most)
    try:
        async with asyncio.timeout(SECONDS), client_for(source.base_url, {}, most=MOST_BYTES) as client:
            answer = await client.request(**request)
    except TimeoutError:
        raise SearchFailed("too_slow", asked=True) from None
    except (RequestRefused, SilasError) as refused:
        raise SearchFailed(refused.code, asked=refused.code in ("answer_too_large", "answer_packed")) from None
    except httpx2.HTTPError:
        raise SearchFailed("no_answer", asked=True) from None
    if answer.status_code != 200:
        raise SearchFailed(_STATUS.get(answer.status_code, "no_answer"), asked=False)
    return _parse_answer(provider, source, answer.content)[:most]


def _parse_answer(provider: Provider, source: SearchSource, body: bytes) -> tuple[SearchResult, ...]:
    try:
        pages = provider.pages(json.loads(body))
        if pages is None:
            return ()
        results = [_parse_page(item, provider.text, source.key) for item in pages[:50] if isinstance(item, Mapping)]
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        raise SearchFailed("unreadable", asked=True) from None
    return tuple(page for page in results if page is not None and is_within(page.url, source.domains))


def _parse_page(item: Mapping[str, object], text: str, key: str) -> SearchResult | None:
    """Return None for a page whose address is not public."""
    url = item.get("url")
    if not isinstance(url, str) or len(url) > _LONGEST_URL or not is_public_url(url, schemes=("https", "http")):
        return None
    title, words = (
        rules.redact(key, rules.one_line(str(part or ""), most))
        for part, most in ((item.get("title"), _LONGEST_TITLE), (item.get(text), _LONGEST_TEXT))
    )
    return SearchResult(title, rules.redact(key, url), words)


def is_within(url: str, domains: tuple[str, ...]) -> bool:
    """True for a page of one of these domains or their subdomains; without domains, for every page."""
    host = host_of(url, schemes=("https", "http"))
    return not domains or any(host == domain or host.endswith(f".{domain}") for domain in domains)


def _with_sites(query: str, domains: tuple[str, ...]) -> str:
    """Ask the provider to search these sites alone; results from elsewhere are left out in any case."""
    sites = " OR ".join(f"site:{domain}" for domain in domains)
    restricted = f"{query} ({sites})" if sites else query
    return restricted if len(restricted) <= _LONGEST_WITH_SITES else query
