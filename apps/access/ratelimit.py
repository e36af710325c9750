"""Limit how often a visitor may claim an identity, per conversation and per claimed name, before a check runs.

Beyond a limit no identity check runs, and while Redis is away no check runs either, so no level is gained. A
name is kept as a hash, for a day at most. Called for the claims of a turn, and for signed tokens, whose attempts count
for the conversation only, because a signature cannot be guessed.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import dataclass
from uuid import UUID

from django.core.cache import cache

from apps.gates.claims import Claim
from kernel.canonical import sha256_hex
from kernel.ratelimit import fixed_window
from kernel.ratelimit.fixed_window import Limit, Unavailable

_log = logging.getLogger(__name__)

WINDOW_SECONDS, DAY_SECONDS = 15 * 60, 24 * 60 * 60
MAX_PER_CONVERSATION = 5
MAX_PER_NAME = 5
MAX_PER_NAME_A_DAY = 20


@dataclass(frozen=True)
class Counted:
    """What the claims of a message were counted under, or why they must not be checked: `conversation` or `name` is
    used up, or the counters are `unavailable`."""

    limits: tuple[Limit, ...] = ()
    refused: str = ""


# Why a signed identity was not looked at, and what the audit log calls that.
NOT_CHECKED = {"identity_throttled": "signed", "identity_unavailable": "unavailable"}


def count_signed(tenant_id: UUID, session_id: UUID | None) -> tuple[Limit, ...] | str:
    """Count one signed identity that is presented in this conversation, together with what was claimed there; give it
    to `take_back` if it was good. A code instead where it must not be looked at. A conversation that has not begun has
    no count: how many may begin is bounded by `flood`."""
    if session_id is None:
        return ()
    limit = _of_conversation(tenant_id, session_id)
    used_up = fixed_window.try_consume([limit], otherwise=f"identity_not_counted session={session_id}")
    if isinstance(used_up, Unavailable):
        return "identity_unavailable"
    return (limit,) if used_up is None else "identity_throttled"


def count_claims(tenant_id: UUID, session_id: UUID, seq: int, claims: Collection[Claim]) -> Counted:
    """Count what the message `seq` of a conversation claims. A turn that broke off and is made again counts nothing
    more."""
    limits = _limits(tenant_id, session_id, claims)
    message = f"identity:{tenant_id}:message:{session_id}:{seq}"
    try:
        if cache.get(message):
            return Counted()
        used_up = fixed_window.consume(limits)
        if used_up is None:
            cache.set(message, 1, WINDOW_SECONDS)
            return Counted(limits)
    except Exception as error:  # noqa: BLE001 (any error of the cache: what cannot be counted is not checked)
        _log.warning("identity_not_counted session=%s error=%s", session_id, type(error).__name__)
        return Counted(refused="unavailable")
    return Counted(refused="conversation" if used_up is limits[0] else "name")


def take_back(counted: tuple[Limit, ...]) -> None:
    fixed_window.try_refund(counted, otherwise="identity_count_kept")


def _limits(tenant_id: UUID, session_id: UUID, claims: Collection[Claim]) -> tuple[Limit, ...]:
    """The conversation's limit comes first: once it is reached, no name's limit is used any more."""
    conversation = _of_conversation(tenant_id, session_id)
    names = dict.fromkeys(sha256_hex(f"{tenant_id}\n{claim.match_key}")[:32] for claim in claims)
    keys = [f"identity:{tenant_id}:name:{name}" for name in names]
    soon = [Limit(key, MAX_PER_NAME, WINDOW_SECONDS) for key in keys]
    daily = [Limit(f"{key}:day", MAX_PER_NAME_A_DAY, DAY_SECONDS) for key in keys]
    return (conversation, *soon, *daily)


def _of_conversation(tenant_id: UUID, session_id: UUID) -> Limit:
    return Limit(f"identity:{tenant_id}:session:{session_id}", MAX_PER_CONVERSATION, WINDOW_SECONDS)
