"""How often may somebody try to log in? Counted per address and account, per address, and per account from anywhere.

A try is counted before the password is looked at, and one that was right does not count. The last count is for whoever
comes from many addresses, or says so (a proxy passes on what it is told): wide enough that nobody is locked out for
fun. Whoever used up an account's tries from one address waits, twice as long each time within a day. Counts live in the
cache and run out by themselves; nothing here tells whether an account exists.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from uuid import UUID

from django.core.cache import cache

from kernel.canonical import sha256_hex
from kernel.ratelimit import fixed_window
from kernel.ratelimit.fixed_window import Limit

WINDOW_SECONDS = 15 * 60
MAX_PER_ACCOUNT = 5
MAX_PER_ADDRESS = 50
MAX_FROM_ANYWHERE = 100
MAX_LETTERS = 3
MAX_LETTERS_PER_ADDRESS = 20
MAX_BEGUN = 100
LONGEST_WAIT_SECONDS = 8 * 3600
_REMEMBERED_SECONDS = 24 * 3600


@dataclass(frozen=True)
class Wait:
    """The try must not be made for so many `seconds`; `is_new`: it is this try that closed the account from here."""

    seconds: int
    is_new: bool = False

    @property
    def words(self) -> str:
        minutes = max(1, -(-self.seconds // 60))
        if minutes == 15:
            return "a quarter of an hour"
        hours, rest = minutes // 60, minutes % 60
        told = [(hours, "hour"), (rest, "minute")]
        return " and ".join(f"{count} {word}{'s' if count > 1 else ''}" for count, word in told if count)


def may_try(address: str, account: str) -> bool:
    """Count one try; False when it must not be made."""
    return wait_before(address, account) is None


def wait_before(address: str, account: str) -> Wait | None:
    """Count one try and return None; or count nothing and say how long to wait."""
    return _wait(_limits(address, account))


def wait_before_code(what: str, person: UUID) -> Wait | None:
    """`wait_before` for a code of somebody who has shown their password: counted by person, wherever they are."""
    return _wait((_code_limit(what, person),))


def code_fitted(what: str, person: UUID) -> None:
    """The try does not count, and this person's earlier ones are forgotten."""
    _forget(_code_limit(what, person))


def _wait(limits: tuple[Limit, ...]) -> Wait | None:
    closed, strikes = _closing(limits[0])
    until: float | None = cache.get(closed)
    if until is not None:
        return Wait(max(1, int(until - time.time())))
    used_up = fixed_window.consume(limits)
    if used_up is None:
        return None
    if used_up != limits[0]:
        return Wait(WINDOW_SECONDS)
    before = cache.get(strikes, 0)
    seconds = min(WINDOW_SECONDS * 2**before, LONGEST_WAIT_SECONDS)
    is_new = cache.add(closed, time.time() + seconds, seconds)
    if is_new:
        cache.set(strikes, before + 1, _REMEMBERED_SECONDS)
    return Wait(seconds, is_new)


def succeeded(address: str, account: str) -> None:
    """It was the right password: the try does not count, and this person's earlier ones from here are forgotten."""
    own, *others = _limits(address, account)
    _forget(own)
    fixed_window.refund(others)


def may_ask(address: str, account: str) -> bool:
    """May a letter with a link be asked for? Three an hour for one account, twenty from one address."""
    person = sha256_hex(account.strip().lower())[:32]
    return (
        fixed_window.consume(
            (
                Limit(f"letter:account:{person}", MAX_LETTERS, 3600),
                Limit(f"letter:address:{sha256_hex(address)[:32]}", MAX_LETTERS_PER_ADDRESS, 3600),
            )
        )
        is None
    )


def may_begin(address: str) -> bool:
    """May somebody whom we do not know yet be asked for a passkey, or be sent to their company's login?"""
    return fixed_window.consume((Limit(f"login:begun:{sha256_hex(address)[:32]}", MAX_BEGUN, WINDOW_SECONDS),)) is None


def _forget(own: Limit) -> None:
    cache.delete_many([own.key, *_closing(own)])


def _code_limit(what: str, person: UUID) -> Limit:
    return Limit(f"login:{what}:{person}", MAX_PER_ACCOUNT, WINDOW_SECONDS)


def _closing(own: Limit) -> tuple[str, str]:
    return f"{own.key}:closed", f"{own.key}:strikes"


def _limits(address: str, account: str) -> tuple[Limit, ...]:
    person = sha256_hex(account.strip().lower())[:32]
    here = sha256_hex(f"{address}\n{person}")[:32]
    return (
        Limit(f"login:account:{here}", MAX_PER_ACCOUNT, WINDOW_SECONDS),
        Limit(f"login:address:{sha256_hex(address)[:32]}", MAX_PER_ADDRESS, WINDOW_SECONDS),
        Limit(f"login:anywhere:{person}", MAX_FROM_ANYWHERE, WINDOW_SECONDS),
    )
