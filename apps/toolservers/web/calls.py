"""Search the web. The handler of `web_search`.

Only the guard calls it, with no transaction open. Searches are limited for one turn, for one run's minute, and for a
company's day (spec 9.2 and its limits). Without Redis nothing can be counted, so nothing is searched. Results are
untrusted text.
"""

from __future__ import annotations

from collections.abc import Mapping

from django.conf import settings

from apps.guard.schemas import ZERO, CallContext, CallFailed, HandlerResult
from apps.toolservers.http_client import ADDRESS_ERRORS
from apps.toolservers.web import providers, queries, services
from apps.toolservers.web.providers import SearchFailed
from apps.toolservers.web.schemas import LONGEST_QUERY, TOOL_NAME, SearchResult, SearchSource
from kernel.errors import SilasError
from kernel.ratelimit import fixed_window
from kernel.ratelimit.fixed_window import Limit, Unavailable
from kernel.taint import Taint
from kernel.tenancy import in_scope
from kernel.unicode_safety import has_hidden_characters

_OFF = ("web_search_off", "Web search isn't set up.")
_HOUR, _DAY = 3600, 86_400
_MESSAGES = ADDRESS_ERRORS | {
    "key_refused": "The search provider rejected the key.",
    "search_used_up": "The search provider's quota is used up for now.",
    "too_slow": "The search provider took too long.",
    "unreadable": "The search provider's answer can't be read.",
    "answer_too_large": "The search provider's answer is too large.",
    "answer_packed": "The search provider compresses its answer, which isn't supported here.",
}
_UNKNOWN = "The search provider did not answer."


def failure_message(code: str) -> str:
    return _MESSAGES.get(code, _UNKNOWN) if code else ""


def check_set_up(tool: str, context: Mapping[str, object]) -> tuple[str, str] | None:
    """Policy of the guard, asked before a search is admitted: a company that did not set it up does not search."""
    return None if tool == TOOL_NAME and queries.is_set_up() else _OFF


async def search_web(ctx: CallContext) -> HandlerResult:
    """Search and return the pages.

    `ctx.context`: `turn`, the number of the turn that asks, if there is one. A failure before the provider was asked
    costs nothing; after that the price of a search is charged.
    """
    query, count = _parse_arguments(ctx.args)
    source = await _source(ctx)
    await _count_search(ctx)
    try:
        results = await providers.search(source, query, most=min(count, source.most_results))
    except SearchFailed as failure:
        await in_scope(ctx.tenant_id, services.record_failure, source.search_id, failure.code)
        raise _call_failed(failure.code, failure_message(failure.code), asked=failure.asked) from None
    await in_scope(ctx.tenant_id, services.record_failure, source.search_id, "")
    return HandlerResult(format_results(source, query, results), cost=None)


def format_results(source: SearchSource, query: str, results: tuple[SearchResult, ...]) -> dict[str, object]:
    """Return the results as models and people get them: each page with its address, which is what is cited."""
    pages = [
        {"number": number, "title": page.title, "address": page.url, "text": page.text}
        for number, page in enumerate(results, start=1)
    ]
    return {"from": source.provider, "taint": Taint.EXTERNAL.value, "query": query, "pages": pages}


def _parse_arguments(args: Mapping[str, object]) -> tuple[str, int]:
    query, count = " ".join(str(args.get("query", "")).split()), args.get("count", 10)
    if not 2 <= len(query) <= LONGEST_QUERY or has_hidden_characters(query):
        raise _call_failed("bad_arguments", f"Ask in 2 to {LONGEST_QUERY} visible characters.")
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        raise _call_failed("bad_arguments", "Ask for at least 1 result.")
    return query, count


async def _source(ctx: CallContext) -> SearchSource:
    try:
        source: SearchSource | None = await in_scope(ctx.tenant_id, queries.search_source, ctx.run_id)
    except SilasError as error:
        raise _call_failed(error.code, error.message) from None
    if source is None:
        raise _call_failed(*_OFF)
    return source


async def _count_search(ctx: CallContext) -> None:
    """Count one search against every limit, or none where a limit is used up."""
    most, run = settings.SEARCH_LIMITS, f"web_search:run:{ctx.run_id}"
    turn = ctx.context.get("turn")
    limits = [
        Limit(f"{run}:minute", most["a_minute"], 60),
        Limit(f"web_search:tenant:{ctx.tenant_id}:day", most["tenant_a_day"], _DAY),
    ]
    if turn is not None:
        limits.append(Limit(f"{run}:turn:{turn}", most["a_turn"], _HOUR))
    used_up = await fixed_window.atry_consume(limits, otherwise="web_search_not_counted")
    if isinstance(used_up, Unavailable):
        raise _call_failed("search_not_counted", "Web search is temporarily unavailable.")
    if used_up is not None:
        raise _call_failed(
            "too_many_searches", "The limit for web searches is reached; continue with the results you have."
        )


def _call_failed(code: str, reason: str, *, asked: bool = False) -> CallFailed:
    return CallFailed(code, reason, effect_free=not asked, cost=None if asked else ZERO)
