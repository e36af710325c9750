"""How many of something are held at once, over all processes? Seats in Redis that are kept by being renewed.

A seat is taken in one atomic step, so that of any number of rivals no more than allowed get one. Whoever holds one
renews it; the seats of a process that died run out by themselves. Clocks are Redis' own. Raises what Redis raises, and
`TimeoutError`: what a missing count means, the caller says.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kernel.throttle import in_time, redis

# Longer than three renewals: one that is lost or late costs nobody their seat.
SEAT_SECONDS = 60
RENEW_SECONDS = 15
_PREFIX = "silas.seats:"
_NOW = "local t = redis.call('TIME') local now = t[1] * 1000 + math.floor(t[2] / 1000)\n"
_TAKE = (
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
_MOST_AT_ONCE = 500


async def take(place: str, holder: str, *, most: int) -> bool:
    """Whether `holder` has one of the `most` seats of this place, from now on for `SEAT_SECONDS`."""
    return await in_time(_take, place, holder, most)


async def renew(held: Mapping[str, str]) -> None:
    """By holder, the place of each: they are held for another `SEAT_SECONDS`, whatever became of them meanwhile."""
    pairs = list(held.items())
    for begin in range(0, len(pairs), _MOST_AT_ONCE):
        await in_time(_renew, pairs[begin : begin + _MOST_AT_ONCE])


async def leave(place: str, holder: str) -> None:
    await in_time(_leave, place, holder)


def _take(place: str, holder: str, most: int) -> bool:
    return bool(redis().eval(_TAKE, 1, _PREFIX + place, holder, most, SEAT_SECONDS))


def _renew(held: Iterable[tuple[str, str]]) -> None:
    pairs = list(held)
    keys, holders = [_PREFIX + place for _, place in pairs], [holder for holder, _ in pairs]
    redis().eval(_RENEW, len(keys), *keys, *holders, SEAT_SECONDS)


def _leave(place: str, holder: str) -> None:
    redis().zrem(_PREFIX + place, holder)
