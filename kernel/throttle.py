"""How often may something be tried? Counts in the cache that run out by themselves.

A try is counted before it is made, in one atomic step a limit, so that of any number of rivals no more than allowed get
through; one that did no harm is taken back. Raises what the cache raises: what a missing cache means, the caller says.
Called by the console's login and by the identity checks; keys carry a room's name and, where there is one, the tenant.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from django.core.cache import cache


@dataclass(frozen=True)
class Limit:
    """What `key` names may be tried `most` times in `seconds`, counted from the first of them."""

    key: str
    most: int
    seconds: int


def begin(limits: Iterable[Limit]) -> Limit | None:
    """Count one try under every limit and return None; or count nothing and return the limit that is used up."""
    counted: list[Limit] = []
    for limit in limits:
        counted.append(limit)
        if _count(limit) > limit.most:
            take_back(counted)
            return limit
    return None


def take_back(limits: Iterable[Limit]) -> None:
    """One try less under each; a count that has run out meanwhile needs nothing."""
    for limit in limits:
        with suppress(ValueError):
            cache.decr(limit.key)


def _count(limit: Limit) -> int:
    cache.add(limit.key, 0, limit.seconds)
    try:
        return cache.incr(limit.key)
    except ValueError:  # it ran out between the two
        cache.add(limit.key, 0, limit.seconds)
        return cache.incr(limit.key)
