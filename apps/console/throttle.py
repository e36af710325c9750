"""How often may somebody try to log in? Counted per address and account, per address, and per account from anywhere.

A try is counted before the password is looked at, and one that was right does not count. The last count is for whoever
comes from many addresses, or says so (a proxy passes on what it is told): wide enough that nobody is locked out for
fun. Counts live in the cache and run out by themselves; nothing here tells whether an account exists.
"""

from __future__ import annotations

from django.core.cache import cache

from kernel import throttle
from kernel.canonical import sha256_hex
from kernel.throttle import Limit

WINDOW_SECONDS = 15 * 60
MAX_PER_ACCOUNT = 5
MAX_PER_ADDRESS = 50
MAX_FROM_ANYWHERE = 100


def may_try(address: str, account: str) -> bool:
    """Count one try; False when it must not be made."""
    return throttle.begin(_limits(address, account)) is None


def succeeded(address: str, account: str) -> None:
    """It was the right password: the try does not count, and this person's earlier ones from here are forgotten."""
    own, *others = _limits(address, account)
    cache.delete(own.key)
    throttle.take_back(others)


def _limits(address: str, account: str) -> tuple[Limit, ...]:
    person = sha256_hex(account.strip().lower())[:32]
    here = sha256_hex(f"{address}\n{person}")[:32]
    return (
        Limit(f"login:account:{here}", MAX_PER_ACCOUNT, WINDOW_SECONDS),
        Limit(f"login:address:{sha256_hex(address)[:32]}", MAX_PER_ADDRESS, WINDOW_SECONDS),
        Limit(f"login:anywhere:{person}", MAX_FROM_ANYWHERE, WINDOW_SECONDS),
    )
