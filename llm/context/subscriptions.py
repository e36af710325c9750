"""Subscriptions of a context window: questions that are asked again for every turn (spec 5.7, contract silas 7).

Only the harness subscribes and deactivates, never a model. A conversation has no files, so only `memory_query` can be
subscribed to here. An inactive subscription costs nothing, stays listed for a while and is reactivated when it is asked
for again. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kernel.canonical import sha256_hex
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError

MEMORY_QUERY = "memory_query"
MOST_ACTIVE, MOST_LISTED, MAX_TARGET = 3, 10, 400


@dataclass(frozen=True)
class Subscription:
    """`created` and `referenced` are turns: when it was first and last asked for."""

    sub_id: str
    target: str
    strategy: str
    created: int
    referenced: int
    max_results: int = 5
    max_tokens: int = 2_000
    active: bool = True


def subscribe(
    subscriptions: Sequence[Subscription],
    sub_type: str,
    target: str,
    *,
    turn: int,
    strategy: str,
    max_results: int = 5,
    max_tokens: int = 2_000,
) -> tuple[Subscription, ...]:
    """Add or renew an active subscription, the newest last; if there are too many, the oldest is deactivated.

    Raises `subscription_unsupported` for anything but a memory query, `subscription_invalid` for an empty one.
    """
    if sub_type != MEMORY_QUERY:
        raise SilasError(
            ErrorCode.SUBSCRIPTION_UNSUPPORTED, "A conversation can only subscribe to questions to its memory."
        )
    target = target.strip()[:MAX_TARGET]
    if not target:
        raise SilasError(ErrorCode.SUBSCRIPTION_INVALID, "A subscription needs a question.")
    sub_id = sha256_hex(f"{strategy}\n{target}")[:12]
    known = next((other for other in subscriptions if other.sub_id == sub_id), None)
    created = known.created if known else turn
    subscription = Subscription(sub_id, target, strategy, created, turn, max(1, max_results), max(1, max_tokens))
    others = [other for other in subscriptions if other.sub_id != sub_id]
    return _limit([*others, subscription])


def expire(subscriptions: Sequence[Subscription], *, turn: int, ttl: int) -> tuple[Subscription, ...]:
    """Deactivate subscriptions that were not referred to in `ttl` turns."""
    return tuple(
        replace(subscription, active=subscription.active and turn - subscription.referenced < ttl)
        for subscription in subscriptions
    )


def _limit(subscriptions: list[Subscription]) -> tuple[Subscription, ...]:
    active = [subscription.sub_id for subscription in subscriptions if subscription.active][-MOST_ACTIVE:]
    return tuple(
        replace(subscription, active=subscription.sub_id in active) for subscription in subscriptions[-MOST_LISTED:]
    )
