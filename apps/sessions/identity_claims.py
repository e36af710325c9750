"""Count the identity claim of a visitor's message before a check runs; beyond a limit the visitor is told to wait.

Called by the input gates. A person is asked for when a limit is used up; while the counters are away the turn goes on
without the check.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from apps.access import ratelimit
from apps.audit.enums import AuditEvent
from apps.gates.claims import Claim
from apps.gates.enums import GateTrigger
from apps.gates.providers.script import claim_for
from apps.sessions.state import Stop, TurnState
from kernel.language import gettext_lazy
from kernel.ratelimit.fixed_window import Limit

WAIT = gettext_lazy(
    "There were too many attempts, so I haven't checked this one. Please wait at least 15 minutes before you try again."
    " I've asked a colleague to take a look here."
)
CANNOT_CHECK = gettext_lazy(
    "I can't verify your identity right now. Please try again in a few minutes, or ask for a person."
)


@dataclass(frozen=True)
class Guess:
    """The claim of one message. `gates` would check it; `counted` is what it was counted under, `stop` is set when it
    must not be checked."""

    gates: frozenset[str] = frozenset()
    counted: tuple[Limit, ...] = ()
    stop: Stop | None = None


async def begin(state: TurnState, context: Mapping[str, object]) -> Guess:
    """Count the claim that the message makes, if it makes one."""
    gates = (gate for gate in state.policy.gates if gate.on == GateTrigger.EVERY_USER_MESSAGE)
    claims = {gate.name: claim for gate in gates if (claim := claim_for(gate, context))}
    return await asyncio.to_thread(_count, state, claims) if claims else Guess()


async def passed(guess: Guess) -> None:
    """It was no guess: it does not count."""
    if guess.counted:
        await asyncio.to_thread(ratelimit.take_back, guess.counted)


def _count(state: TurnState, claims: Mapping[str, Claim]) -> Guess:
    gates = frozenset(claims)
    counted = ratelimit.count_claims(state.tenant_id, state.session.pk, state.message.seq, tuple(claims.values()))
    if not counted.refused:
        return Guess(gates, counted.limits)
    state.audit.append((AuditEvent.IDENTITY_THROTTLED, {"by": counted.refused}))
    if counted.refused == "unavailable":
        # Without counters guesses would be unlimited, so nothing is checked (fail closed).
        return Guess(gates, stop=Stop("identity:unavailable", CANNOT_CHECK))
    return Guess(gates, stop=Stop("identity:throttled", WAIT, wants_person=True))
