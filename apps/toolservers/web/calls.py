"""How is the web searched? The handler of `web_search`: counted, asked, and told as somebody else's words.

Only the guard calls it, with no transaction open. How often: so many times in one turn, in one run's minute, and in a
company's day (spec 9.2 and its limits). Without Redis nothing is counted, so nothing is searched.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from django.conf import settings
from redis.exceptions import RedisError

from apps.guard.schemas import ZERO, CallContext, CallFailed, HandlerResult
from apps.toolservers.http_client import ADDRESS_ERRORS
from apps.toolservers.web import providers, queries, services
from apps.toolservers.web.providers import SearchFailed
from apps.toolservers.web.schemas import LONGEST_QUERY, TOOL_NAME, SearchResult, SearchSource
from kernel.errors import SilasError
from kernel.ratelimit import fixed_window
from kernel.ratelimit.fixed_window import Limit
from kernel.taint import Taint
from kernel.tenancy import in_scope
from kernel.unicode_safety import has_hidden_characters

_log = logging.getLogger(__name__)
_OFF = ("web_search_off", "Searching the web is not set up here.")
_HOUR, _DAY = 3600, 86_400
_MESSAGES = ADDRESS_ERRORS | {
    "key_refused": "The search provider does not take the key.",
    "search_used_up": "The search provider takes no more questions just now.",
    "too_slow": "The search provider took too long.",
    "unreadable": "The search provider's answer cannot be read.",
    "answer_too_large": "The search provider's answer is too large.",
    "answer_packed": "The search provider packs its answer, which is not read here.",
}
_UNKNOWN = "The search provider did not answer."


def failure_message(code: str) -> str:
    return _MESSAGES.get(code, _UNKNOWN) if code else ""


def check_set_up(tool: str, context: Mapping[str, Any]) -> tuple[str, str] | None:
    """What the guard asks before a search is admitted: a company that did not set it up does not search."""
    return None if tool == TOOL_NAME and queries.is_set_up() else _OFF


async def search_web(ctx: CallContext) -> HandlerResult:
    """`ctx.context`: `turn`, the number of the turn that asks, where there is one. What fails before the provider was
    asked costs nothing; afterwards the price of a search is charged."""
    query, count = _parse_arguments(ctx.args)
    source = await _source(ctx)
    await _count_search(ctx)
    try:
        found = await providers.search(source, query, most=min(count, source.most_results))
    except SearchFailed as no:
        await in_scope(ctx.tenant_id, services.record_failure, source.search_id, no.code)
        raise _call_failed(no.code, failure_message(no.code), asked=no.asked) from None
    await in_scope(ctx.tenant_id, services.record_failure, source.search_id, "")
    return HandlerResult(format_results(source, query, found), cost=None)


def format_results(source: SearchSource, query: str, found: tuple[SearchResult, ...]) -> dict[str, Any]:
    """The answer as models and people get it: each page with its address, which is what is cited."""
    pages = [
        {"number": number, "title": page.title, "address": page.url, "text": page.text}
        for number, page in enumerate(found, start=1)
    ]
    return {"from": source.provider, "taint": Taint.EXTERNAL.value, "query": query, "pages": pages}


def _parse_arguments(args: Mapping[str, Any]) -> tuple[str, int]:
    query, count = " ".join(str(args.get("query", "")).split()), args.get("count", 10)
    if not 2 <= len(query) <= LONGEST_QUERY or has_hidden_characters(query):
        raise _call_failed("bad_arguments", f"Ask in 2 to {LONGEST_QUERY} characters that can be seen.")
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        raise _call_failed("bad_arguments", "Say how many results you want, from 1 on.")
    return query, count


async def _source(ctx: CallContext) -> SearchSource:
    try:
        source: SearchSource | None = await in_scope(ctx.tenant_id, queries.search_source, ctx.run_id)
    except SilasError as broken:
        raise _call_failed(broken.code, broken.message) from None
    if source is None:
        raise _call_failed(*_OFF)
    return source


async def _count_search(ctx: CallContext) -> None:
    """One search more, or none at all where a limit is used up."""
    most, run = settings.SEARCH_LIMITS, f"web_search:run:{ctx.run_id}"
    turn = ctx.context.get("turn")
    limits = [
        Limit(f"{run}:minute", most["a_minute"], 60),
        Limit(f"web_search:tenant:{ctx.tenant_id}:day", most["tenant_a_day"], _DAY),
    ]
    if turn is not None:
        limits.append(Limit(f"{run}:turn:{turn}", most["a_turn"], _HOUR))
    try:
        used_up = await fixed_window.aconsume(limits)
    except (RedisError, TimeoutError):
        _log.warning("web_search_not_counted")
        raise _call_failed("search_not_counted", "Searches cannot be counted just now.") from None
    if used_up is not None:
        raise _call_failed("too_many_searches", "The web was searched as often as it may be; go on with what you have.")


def _call_failed(code: str, reason: str, *, asked: bool = False) -> CallFailed:
    return CallFailed(code, reason, effect_free=not asked, cost=None if asked else ZERO)
