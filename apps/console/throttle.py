"""How often may somebody try to log in? Failures are counted per address and account, and per address alone.

Counts live in the cache and run out by themselves; nothing here tells whether an account exists.
"""

from __future__ import annotations

from contextlib import suppress

from django.core.cache import cache

from kernel.canonical import sha256_hex

WINDOW_SECONDS = 15 * 60
MAX_PER_ACCOUNT = 5
MAX_PER_ADDRESS = 50


def is_throttled(address: str, account: str) -> bool:
    counts = cache.get_many(_limits(address, account))
    return any(counts.get(key, 0) >= limit for key, limit in _limits(address, account).items())


def note_failure(address: str, account: str) -> None:
    for key in _limits(address, account):
        cache.add(key, 0, WINDOW_SECONDS)
        with suppress(ValueError):  # it ran out in between: then it was the last of an old window
            cache.incr(key)


def forget_failures(address: str, account: str) -> None:
    """After a good login; the address's own count stays, or one good account would pay for guessing others."""
    cache.delete(next(iter(_limits(address, account))))


def _limits(address: str, account: str) -> dict[str, int]:
    person = sha256_hex(f"{address}\n{account.strip().lower()}")[:32]
    return {
        f"login:account:{person}": MAX_PER_ACCOUNT,
        f"login:address:{sha256_hex(address)[:32]}": MAX_PER_ADDRESS,
    }
