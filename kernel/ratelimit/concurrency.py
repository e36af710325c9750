"""Limit how many of something are held at once over all processes, with leases in Redis.

A lease is acquired in one atomic step and renewed by its holder; the leases of a process that died expire. Redis'
clock is used throughout. Raises what Redis raises, and `TimeoutError`: the caller decides what a missing count means.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kernel.ratelimit.fixed_window import call_redis, redis_client

# Longer than three renewals, so that one lost or late renewal does not end a lease.
LEASE_SECONDS = 60
RENEW_SECONDS = 15
_PREFIX = "silas.seats:"
_NOW = "local t = redis.call('TIME') local now = t[1] * 1000 + math.floor(t[2] / 1000)\n"
_ACQUIRE = (
    _NOW
    + """
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
if not redis.call('ZSCORE', KEYS[1], ARGV[1]) and redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[2]) then return 0 end
redis.call('ZADD', KEYS[1], now + ARGV[3] * 1000, ARGV[1])
redis.call('EXPIRE', KEYS[1], ARGV[3])
return 1
"""
)
_RENEW = (
    _NOW
    + """
for i, key in ipairs(KEYS) do
    redis.call('ZADD', key, now + ARGV[#KEYS + 1] * 1000, ARGV[i])
    redis.call('EXPIRE', key, ARGV[#KEYS + 1])
end
"""
)
_HOLDERS = _NOW + "return redis.call('ZCOUNT', KEYS[1], now, '+inf')"
_MOST_AT_ONCE = 500


async def acquire(place: str, holder: str, *, maximum: int) -> bool:
    """Whether `holder` got one of the `maximum` leases of this place, for `LEASE_SECONDS`."""
    return await call_redis(_acquire, place, holder, maximum)


async def renew(held: Mapping[str, str]) -> None:
    """Renew leases, given as {holder: place}, for `LEASE_SECONDS`, even if they have expired."""
    pairs = list(held.items())
    for begin in range(0, len(pairs), _MOST_AT_ONCE):
        await call_redis(_renew, pairs[begin : begin + _MOST_AT_ONCE])


async def holders(place: str) -> int:
    """How many leases of this place are held now."""
    return int(await call_redis(_holders, place))


async def release(place: str, holder: str) -> None:
    await call_redis(_release, place, holder)


def _acquire(place: str, holder: str, most: int) -> bool:
    return bool(redis_client().eval(_ACQUIRE, 1, _PREFIX + place, holder, most, LEASE_SECONDS))


def _holders(place: str) -> int:
    return int(redis_client().eval(_HOLDERS, 1, _PREFIX + place))


def _renew(held: Iterable[tuple[str, str]]) -> None:
    pairs = list(held)
    keys, holders = [_PREFIX + place for _, place in pairs], [holder for holder, _ in pairs]
    redis_client().eval(_RENEW, len(keys), *keys, *holders, LEASE_SECONDS)


def _release(place: str, holder: str) -> None:
    redis_client().zrem(_PREFIX + place, holder)
