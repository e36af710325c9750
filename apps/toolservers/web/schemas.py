"""Shapes of web search: a company's terms, the provider to ask, a result. All frozen."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from uuid import UUID

TOOL_NAME = "web_search"
LONGEST_QUERY = 300
SECONDS = 8.0


@dataclass(frozen=True)
class SearchTerms:
    """The terms on which a company searches: at which access level, for how many US dollars a search, how many
    results."""

    provider: str
    level: str
    price: Decimal
    most_results: int


@dataclass(frozen=True)
class SearchSource:
    """The provider to ask, with its key. `key` is in no repr, row or log; `domains`: where results may come from, empty
    for anywhere."""

    search_id: UUID
    provider: str
    base_url: str
    domains: tuple[str, ...]
    most_results: int
    key: str = field(default="", repr=False)


@dataclass(frozen=True)
class SearchResult:
    """One page that a provider names: untrusted text, cleaned and cut."""

    title: str
    url: str
    text: str
