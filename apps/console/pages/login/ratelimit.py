"""Limits on login attempts: per account and address, per address, and per account from anywhere.

An attempt is counted before the password is checked, and a right one does not count. The limit from anywhere is for
attackers with many addresses, real or forged behind a proxy, and is wide enough that an account cannot be locked out on
purpose. Using up the attempts for an account from one address blocks it, twice as long each time within a day. Counts
live in the cache and expire there; the answers don't reveal whether an account exists.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from uuid import UUID

from django.core.cache import cache
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from kernel.canonical import sha256_hex
from kernel.ratelimit import fixed_window
from kernel.ratelimit.fixed_window import Limit

WINDOW_SECONDS = 15 * 60
MAX_PER_ACCOUNT = 5
MAX_PER_ADDRESS = 50
MAX_FROM_ANYWHERE = 100
MAX_EMAILS = 3
MAX_EMAILS_PER_ADDRESS = 20
MAX_STARTED = 100
LONGEST_WAIT_SECONDS = 8 * 3600
_REMEMBERED_SECONDS = 24 * 3600


@dataclass(frozen=True)
class Wait:
    """The attempt is blocked for so many `seconds`; `is_new` if this attempt started the block."""

    seconds: int
    is_new: bool = False

    @property
    def words(self) -> str:
        minutes = max(1, -(-self.seconds // 60))
        hours, rest = minutes // 60, minutes % 60
        rest_in_words = ngettext("%(number)s minute", "%(number)s minutes", rest) % {"number": rest}
        if not hours:
            return rest_in_words
        hours_in_words = ngettext("%(number)s hour", "%(number)s hours", hours) % {"number": hours}
        return (
            _("%(hours)s and %(minutes)s") % {"hours": hours_in_words, "minutes": rest_in_words}
            if rest
            else hours_in_words
        )


def wait_before(address: str, account: str) -> Wait | None:
    """Count one attempt and return None, or count nothing and return how long to wait."""
    return _wait(_limits(address, account))


def wait_before_code(what: str, person: UUID) -> Wait | None:
    """Like `wait_before`, for a code after the right password: counted per person, from any address."""
    return _wait((_code_limit(what, person),))


def code_was_right(what: str, person: UUID) -> None:
    """Forget this attempt and the person's earlier ones."""
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


def password_was_right(address: str, account: str) -> None:
    """Forget this attempt and the person's earlier ones from this address."""
    own, *others = _limits(address, account)
    _forget(own)
    fixed_window.refund(others)


def may_request_email(address: str, account: str) -> bool:
    """Count a request for an email with a link: three an hour per account, twenty per address."""
    person = sha256_hex(account.strip().lower())[:32]
    return (
        fixed_window.consume(
            (
                Limit(f"letter:account:{person}", MAX_EMAILS, 3600),
                Limit(f"letter:address:{sha256_hex(address)[:32]}", MAX_EMAILS_PER_ADDRESS, 3600),
            )
        )
        is None
    )


def may_begin(address: str) -> bool:
    """Count the start of a passkey or single sign-on login by an unknown person."""
    return (
        fixed_window.consume((Limit(f"login:begun:{sha256_hex(address)[:32]}", MAX_STARTED, WINDOW_SECONDS),)) is None
    )


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
