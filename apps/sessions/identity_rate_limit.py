"""Limit how often a visitor may claim an identity, per conversation and per claimed name, before a check runs.

Beyond a limit no identity check runs, the visitor is told to wait and a person is asked for. While Redis is away no
check runs either: nobody gains a level that way, and the turn goes on. A name is kept as a hash, for a day at most.
Called by the input gates, and by `identity` for signed tokens, whose attempts count for the conversation only, because
a signature cannot be guessed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.core.cache import cache

from apps.audit.enums import AuditEvent
from apps.gates.claims import Claim
from apps.gates.enums import GateTrigger
from apps.gates.providers import claim_for
from apps.sessions.state import Stop, TurnState
from kernel.canonical import sha256_hex
from kernel.ratelimit import fixed_window
from kernel.ratelimit.fixed_window import Limit

_log = logging.getLogger(__name__)

WINDOW_SECONDS, DAY_SECONDS = 15 * 60, 24 * 60 * 60
MAX_PER_CONVERSATION = 5
MAX_PER_NAME = 5
MAX_PER_NAME_A_DAY = 20

WAIT = (
    "That was tried too often, so I have not checked it. Please wait at least a quarter of an hour before you try again"
    ", or talk to a person: I have asked a colleague to look in here."
)
CANNOT_CHECK = "I cannot check who you are at the moment. Please try again in a few minutes, or ask for a person."


@dataclass(frozen=True)
class Guess:
    """The claim of one message. `gates` would check it; `counted` is what it was counted under, `stop` is set when it
    must not be checked."""

    gates: frozenset[str] = frozenset()
    counted: tuple[Limit, ...] = ()
    stop: Stop | None = None


# Why a signed identity was not looked at, and what the audit log calls that.
NOT_CHECKED = {"identity_throttled": "signed", "identity_unavailable": "unavailable"}


def count_signed(tenant_id: UUID, session_id: UUID | None) -> tuple[Limit, ...] | str:
    """Count one signed identity that is presented in this conversation, together with what was claimed there; give it
    to `take_back` if it was good. A code instead where it must not be looked at. A conversation that has not begun has
    no count: how many may begin is bounded by `flood`."""
    if session_id is None:
        return ()
    limit = _of_conversation(tenant_id, session_id)
    try:
        return (limit,) if fixed_window.consume([limit]) is None else "identity_throttled"
    except Exception as error:  # noqa: BLE001 (whatever the cache raises: what cannot be counted is not checked)
        _log.warning("identity_not_counted session=%s error=%s", session_id, type(error).__name__)
        return "identity_unavailable"


async def begin(state: TurnState, context: Mapping[str, Any]) -> Guess:
    """Count the claim that the message makes, if it makes one."""
    gates = (gate for gate in state.policy.gates if gate.on == GateTrigger.EVERY_USER_MESSAGE)
    claims = {gate.name: claim for gate in gates if (claim := claim_for(gate, context))}
    return await asyncio.to_thread(_counted, state, claims) if claims else Guess()


async def passed(guess: Guess) -> None:
    """It was no guess: it does not count."""
    if guess.counted:
        await asyncio.to_thread(take_back, guess.counted)


def _counted(state: TurnState, claims: Mapping[str, Claim]) -> Guess:
    gates, limits = frozenset(claims), _limits(state, tuple(claims.values()))
    try:
        # A turn that broke off and is made again makes no new guess.
        if cache.get(_key_of_message(state)):
            return Guess(gates)
        used_up = fixed_window.consume(limits)
        if used_up is None:
            cache.set(_key_of_message(state), 1, WINDOW_SECONDS)
            return Guess(gates, limits)
    except Exception as error:  # noqa: BLE001 (whatever the cache raises: what cannot be counted is not checked)
        _log.warning("identity_not_counted session=%s error=%s", state.session.pk, type(error).__name__)
        return _held(state, gates, by="unavailable", stop=Stop("identity:unavailable", CANNOT_CHECK))
    by = "conversation" if used_up is limits[0] else "name"
    return _held(state, gates, by=by, stop=Stop("identity:throttled", WAIT, wants_person=True))


def take_back(counted: tuple[Limit, ...]) -> None:
    try:
        fixed_window.refund(counted)
    except Exception as error:  # noqa: BLE001 (the cache is away; the check has passed all the same)
        _log.warning("identity_count_kept error=%s", type(error).__name__)


def _held(state: TurnState, gates: frozenset[str], *, by: str, stop: Stop) -> Guess:
    state.audit.append((AuditEvent.IDENTITY_THROTTLED, {"by": by}))
    return Guess(gates, stop=stop)


def _limits(state: TurnState, claims: tuple[Claim, ...]) -> tuple[Limit, ...]:
    """The conversation's first: a conversation that is used up can use up nobody's name any more."""
    conversation = _of_conversation(state.tenant_id, state.session.pk)
    names = dict.fromkeys(sha256_hex(f"{state.tenant_id}\n{claim.match_key}")[:32] for claim in claims)
    keys = [f"identity:{state.tenant_id}:name:{name}" for name in names]
    soon = [Limit(key, MAX_PER_NAME, WINDOW_SECONDS) for key in keys]
    daily = [Limit(f"{key}:day", MAX_PER_NAME_A_DAY, DAY_SECONDS) for key in keys]
    return (conversation, *soon, *daily)


def _of_conversation(tenant_id: UUID, session_id: UUID) -> Limit:
    return Limit(f"identity:{tenant_id}:session:{session_id}", MAX_PER_CONVERSATION, WINDOW_SECONDS)


def _key_of_message(state: TurnState) -> str:
    return f"identity:{state.tenant_id}:message:{state.session.pk}:{state.message.seq}"
