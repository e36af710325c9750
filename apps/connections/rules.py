"""Transitions, due times and accounts for tools, decided from values alone (spec 2.5, 5.10)."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from apps.connections.enums import ConnectionStatus as Status
from apps.connections.enums import FailureType, Recovery, SetupState, Tier
from apps.connections.schemas import ConnectionFailure
from kernel.canonical import sha256_hex
from kernel.error_codes import ErrorCode
from kernel.language import in_english
from kernel.stored_texts import stored_text

TRANSITIONS: Mapping[Status, frozenset[Status]] = {
    Status.PROPOSED: frozenset({Status.CONNECTING, Status.FAILED, Status.REMOVED}),
    Status.CONNECTING: frozenset({Status.PROPOSED, Status.ACTIVE, Status.PAUSED, Status.FAILED, Status.REMOVED}),
    Status.ACTIVE: frozenset({Status.PAUSED, Status.FAILED, Status.REMOVED}),
    Status.PAUSED: frozenset({Status.ACTIVE, Status.FAILED, Status.REMOVED}),
    Status.FAILED: frozenset({Status.PROPOSED, Status.CONNECTING, Status.ACTIVE, Status.REMOVED}),
    Status.REMOVED: frozenset(),
}
OVER = frozenset({SetupState.DONE, SetupState.FAILED, SetupState.CANCELLED})
UNDER_WAY = frozenset(set(SetupState) - OVER)

REFRESH_AHEAD = timedelta(minutes=10)
WARN_AHEAD = timedelta(days=7)
USED_LATELY = timedelta(days=30)
JITTER = 0.1
_READS = ("read", "observe", "list", "search", "view", "openid", "profile", "email", "offline_access")


def tiers_of(permissions: Iterable[str]) -> list[str]:
    """Return the tiers that these permissions amount to: reading observes, anything else acts too."""
    wanted = list(permissions)
    acts = any(not only_reads(name) for name in wanted)
    return [Tier.OBSERVE.value, *([Tier.ACT.value] if acts else [])] if wanted else []


def only_reads(permission: str) -> bool:
    verb = permission.replace(":", ".").replace("/", ".").rpartition(".")[2].casefold()
    return verb.startswith(_READS) and "write" not in verb


def missing(wanted: Iterable[str], granted: Iterable[str]) -> list[str]:
    """Return what is wanted and not granted, in order, each once."""
    have = set(granted)
    return [name for name in dict.fromkeys(wanted) if name not in have]


def operation(purpose: str, *, skill: str, strategy: str, settings: Mapping[str, object]) -> str:
    """Return what an approval binds beside the permissions: the exact files, the way of signing in, and the
    settings."""
    return f"{purpose} {skill} {strategy} {sha256_hex(dict(settings))}"


def needs_refresh(expires: datetime | None, now: datetime) -> bool:
    return expires is not None and expires - REFRESH_AHEAD <= now


def refresh_token_ends(expires: datetime | None, now: datetime) -> bool:
    return expires is not None and expires - WARN_AHEAD <= now


def is_dormant(last_used: datetime | None, now: datetime) -> bool:
    return last_used is None or last_used < now - USED_LATELY


def next_check(due: datetime, expires: datetime | None, *, now: datetime, dice: random.Random) -> datetime:
    """Return the schedule's next moment, delayed by a random part, but in time to refresh what expires."""
    spread = due + (due - now) * JITTER * dice.random()
    if expires is None or expires <= now:
        return spread
    return max(min(spread, expires - REFRESH_AHEAD), now + timedelta(seconds=5))


ANY = "type:"  # a tool may name a provider instead of a skill


@dataclass(frozen=True)
class Account:
    """The parts of a connection that decide whether a tool uses it."""

    id: UUID
    skill: str
    provider: str
    status: Status
    is_usual: bool = False

    def fits(self, wanted: str) -> bool:
        return self.provider == wanted.removeprefix(ANY) if wanted.startswith(ANY) else self.skill == wanted


def account_for(wanted: str, accounts: Iterable[Account]) -> Account | ErrorCode:
    """Return the account that a tool means, or the code of why there is none. `accounts`: those that were connected
    once and were not removed.

    It is the one that a person chose, or the only one; of several the tool uses none until a person chooses. A chosen
    account that does not work has no substitute: what is sent must not leave from another address than usual.
    """
    fitting = [account for account in accounts if account.fits(wanted)]
    meant = [account for account in fitting if account.is_usual] or fitting
    if len(meant) > 1:
        return ErrorCode.CONNECTION_AMBIGUOUS
    return meant[0] if meant and meant[0].status is Status.ACTIVE else ErrorCode.CONNECTION_MISSING


def usable_names(accounts: Iterable[Account]) -> frozenset[str]:
    """Return what a tool may name and find an account: skills, and providers as `type:<provider>`."""
    accounts = list(accounts)
    names = {name for account in accounts for name in (account.skill, f"{ANY}{account.provider}")}
    return frozenset(name for name in names if isinstance(account_for(name, accounts), Account))


def ambiguous_accounts(accounts: Iterable[Account]) -> frozenset[UUID]:
    """Return the accounts of skills that have several and none of them chosen; tools use none of these."""
    by_skill: Mapping[str, list[Account]] = defaultdict(list)
    for account in accounts:
        by_skill[account.skill].append(account)
    ambiguous = (rows for rows in by_skill.values() if len(rows) > 1 and not any(row.is_usual for row in rows))
    return frozenset(account.id for rows in ambiguous for account in rows)


_OPTIONS: Mapping[FailureType, tuple[Recovery, ...]] = {
    FailureType.ENTERPRISE_POLICY_BLOCK: (Recovery.DRAFT_IT_REQUEST, Recovery.PERSONAL_ACCOUNT),
    FailureType.CONSENT_DENIED: (Recovery.RETRY, Recovery.FEWER),
    FailureType.MFA_REQUIRED: (Recovery.RETRY,),
    FailureType.TOKEN_REVOKED: (Recovery.RECONNECT,),
    FailureType.RATE_LIMITED: (Recovery.LATER,),
    FailureType.SERVICE_UNAVAILABLE: (Recovery.LATER,),
    FailureType.UNKNOWN: (Recovery.RETRY, Recovery.RECONNECT),
}
_MESSAGES: Mapping[FailureType, str] = {
    FailureType.ENTERPRISE_POLICY_BLOCK: stored_text(
        "Your organization's IT policy prevents personal apps from accessing {it}."
    ),
    FailureType.CONSENT_DENIED: stored_text("You declined the authorization. {it} wasn't connected."),
    FailureType.MFA_REQUIRED: stored_text("{it} requires multi-factor authentication to complete setup."),
    FailureType.TOKEN_REVOKED: stored_text(
        "Your {it} access was revoked (changed password, admin action, or expired)."
    ),
    FailureType.RATE_LIMITED: stored_text("{it} is temporarily limiting requests. Try again in {minutes:d} minutes."),
    FailureType.SERVICE_UNAVAILABLE: stored_text("{it} is not responding."),
    FailureType.UNKNOWN: stored_text("{it} isn't working, and the reason is unknown."),
}
_DOES: Mapping[Recovery, str] = {
    Recovery.DRAFT_IT_REQUEST: stored_text("Draft a message to your IT department for you to review"),
    Recovery.PERSONAL_ACCOUNT: stored_text("Set it up again with another account"),
    Recovery.RETRY: stored_text("Set it up again"),
    Recovery.FEWER: stored_text("Set it up again with fewer permissions"),
    Recovery.RECONNECT: stored_text("Sign in again"),
    Recovery.LATER: stored_text("Try again in {minutes:d} minutes"),
    Recovery.SKIP: stored_text("Leave it disconnected for now"),
}
USUAL_MINUTES = 15


def failure_payload(failure: ConnectionFailure, service: str) -> dict[str, Any]:
    """Return the payload of a failure card: the platform's own words and options for the type (spec 5.10.4), never a
    script's, which could say anything."""
    kind, minutes = FailureType(failure.failure_type), failure.retry_minutes or USUAL_MINUTES
    ways: Sequence[Recovery] = (*_OPTIONS[kind], Recovery.SKIP)
    return {
        "failure_type": kind.value,
        "service": service,
        "message": _MESSAGES[kind].format(it=service, minutes=minutes),
        "recovery_options": [_option(way, minutes) for way in ways],
    }


def _option(way: Recovery, minutes: int) -> dict[str, str]:
    label = (
        stored_text("Retry in {minutes:d} minutes").format(minutes=minutes)
        if way is Recovery.LATER
        else in_english(way.label)
    )
    return {"action": way.value, "label": label, "description": _DOES[way].format(minutes=minutes)}
