"""A code that a person reads at the console lets an agent go on (contract safety-loop 12-14).

The code is made when somebody entitled looks, 128 random bits, kept as a hash, good once and for a few minutes. A wrong
one burns the challenge and counts against the agent and whoever called, under a row lock and for good.
"""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from apps.approvals.queries import passkey_wanted
from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.safety.enums import ChallengeState, HoldKind, HoldState
from apps.safety.locks import lock_challenge, lock_hold, lock_tries
from apps.safety.models import Challenge, FailedTries, Hold
from apps.safety.rules import Tries, after_failure, is_over, press_risk, wait_seconds
from apps.safety.schemas import Failure, Principal, Reply, Success
from apps.safety.services.holding import end_hold, live_challenge, new_challenge, with_proof
from apps.tenants.enums import Capability
from apps.tenants.models import Membership
from apps.tenants.rules import roles_with
from kernel.canonical import sha256_hex
from kernel.clock import now
from kernel.errors import NotFound, SilasError

_BYTES = 16


def show_code(hold_id: UUID, *, actor: str, proof: str = "") -> str:
    """A new code for what holds this agent, for the eyes of `actor` alone; the one shown before is void. The answer is
    never written anywhere. Raises `NotFound`, 409 `not_held`. Called by `pressing`, which has asked for their passkey,
    and for letters."""
    hold = lock_hold(hold_id)
    if hold is None:
        raise NotFound("hold")
    if hold.state != HoldState.OPEN or hold.kind == HoldKind.CONFIRM:
        raise SilasError("not_held", "Nothing waits for a code here any more.", status=409)
    moment = now()
    challenge = hold.challenges.filter(state=ChallengeState.PENDING).first()
    if challenge is None or is_over(challenge.expires_at, moment):
        challenge = new_challenge(hold, moment)
    code = secrets.token_hex(_BYTES)
    challenge.hashed, challenge.shown_at = _hashed(challenge, code), moment
    challenge.expires_at = moment + timedelta(seconds=hold.challenge_seconds)
    challenge.save(update_fields=["hashed", "shown_at", "expires_at"])
    data = with_proof({"hold": str(hold_id)}, proof)
    record(AuditEvent.SAFETY_CODE_SHOWN, actor=actor, subject=f"safety_agent:{hold.agent_id}", data=data)
    return "-".join(code[at : at + 8] for at in range(0, len(code), 8))


@dataclass(frozen=True, repr=False)
class CodeLetter:
    """A code on its way to these addresses; it stands here and nowhere else."""

    hold: Hold
    code: str
    addresses: tuple[str, ...]


def claim_letter(hold_id: UUID) -> CodeLetter | None:
    """A code for a hold that waits for one, that nobody has looked at and no letter has told of, for everybody who may
    decide and of whom no passkey is asked for it. Claimed by its row, once."""
    hold = lock_hold(hold_id)
    if hold is None or hold.state != HoldState.OPEN or hold.mailed_at is not None:
        return None
    if hold.challenges.filter(state=ChallengeState.PENDING, shown_at__isnull=False).exists():
        return None
    addresses = tuple(one.email for one in _deciding() if not passkey_wanted(press_risk(hold.kind), one))
    if not addresses:
        return None
    hold.mailed_at = now()
    hold.save(update_fields=["mailed_at"])
    return CodeLetter(hold, show_code(hold_id, actor="system"), addresses)


def _deciding() -> list[Any]:
    """Whoever may press *Show the code*, can log in and has an address."""
    rows = Membership.objects.filter(role__in=roles_with(Capability.DECIDE), user__is_active=True)
    return [row.user for row in rows.select_related("user").order_by("pk") if row.user.email]


def verify_challenge(principal: Principal, *, challenge_id: str, code: str) -> Reply:
    """Redeem a code. Unknown, foreign and wrong look the same from outside."""
    challenge = _of_principal(challenge_id, principal)
    keys = [f"caller:{principal.ref}", *([f"agent:{challenge.hold.agent_id}"] if challenge else [])]
    tries = lock_tries(keys)
    moment = now()
    wait = max(wait_seconds(_tries(row), moment) for row in tries)
    if wait:
        return _locked(principal, wait)
    if challenge is None:
        return _wrong(principal, tries, None)
    if challenge.state == ChallengeState.VERIFIED:
        return Failure("TOKEN_ALREADY_USED", "This challenge was answered already.")
    if challenge.state == ChallengeState.EXPIRED or (
        challenge.state == ChallengeState.PENDING and is_over(challenge.expires_at, moment)
    ):
        return _late(principal, challenge)
    if challenge.state != ChallengeState.PENDING or not _is_right(challenge, code):
        return _wrong(principal, tries, challenge)
    return _verified(principal, challenge)


def _of_principal(challenge_id: str, principal: Principal) -> Challenge | None:
    """A block is lifted by whoever it holds: the person gave the code to that agent."""
    try:
        found = lock_challenge(UUID(challenge_id))
    except ValueError:
        return None
    return found if found is not None and found.hold.principal == principal.ref else None


def _verified(principal: Principal, challenge: Challenge) -> Reply:
    challenge.state, challenge.ended_at = ChallengeState.VERIFIED, now()
    challenge.save(update_fields=["state", "ended_at"])
    hold = challenge.hold
    end_hold(hold, HoldState.LIFTED, actor=principal.ref)
    message = "A person verified it. The agent may go on."
    return Success({"verified": True, "unblocked_agent": hold.agent.name, "message": message})


def _late(principal: Principal, challenge: Challenge) -> Reply:
    hold = challenge.hold
    if challenge.state == ChallengeState.PENDING:
        challenge.state, challenge.ended_at = ChallengeState.EXPIRED, now()
        challenge.save(update_fields=["state", "ended_at"])
    data = {"hold": str(hold.pk), "why": "expired"}
    record(AuditEvent.SAFETY_CODE_REFUSED, actor=principal.ref, subject=f"safety_agent:{hold.agent_id}", data=data)
    if hold.state == HoldState.OPEN and hold.kind == HoldKind.VERIFY:
        end_hold(hold, HoldState.EXPIRED, actor="system")
    details = {} if hold.kind != HoldKind.BLOCK or hold.state != HoldState.OPEN else _next(hold)
    return Failure("TOKEN_EXPIRED", "This challenge has expired.", details)


def _wrong(principal: Principal, tries: list[FailedTries], challenge: Challenge | None) -> Reply:
    """Burn the challenge and count the failure. The principal's own hold has its next challenge at once, and the
    answer names it, so that the code which the person reads next is redeemed for the right one."""
    moment = now()
    for row in tries:
        after = after_failure(_tries(row), moment)
        row.failures, row.window_start = after.failures, after.window_start
        row.locked_until, row.strikes = after.locked_until, after.strikes
        row.save(update_fields=["failures", "window_start", "locked_until", "strikes"])
    hold: Hold | None = challenge.hold if challenge else None
    if challenge is not None and challenge.state == ChallengeState.PENDING:
        challenge.state, challenge.ended_at = ChallengeState.FAILED, moment
        challenge.save(update_fields=["state", "ended_at"])
    data = {"why": "wrong" if hold else "unknown", "hold": str(hold.pk) if hold else ""}
    subject = f"safety_agent:{hold.agent_id}" if hold else principal.ref
    record(AuditEvent.SAFETY_CODE_REFUSED, actor=principal.ref, subject=subject, data=data)
    details = {}
    if hold is not None and hold.state == HoldState.OPEN:
        details = _next(hold)
    return Failure("TOKEN_INVALID", "This challenge or its code is not right.", details)


def _locked(principal: Principal, wait: int) -> Reply:
    record(AuditEvent.SAFETY_CODE_LOCKED, actor=principal.ref, subject=principal.ref, data={"seconds": wait})
    details = {"limit": 10, "remaining": 0, "window": "60s", "retry_after_seconds": wait}
    return Failure("RATE_LIMIT_EXCEEDED", "Too many wrong codes. Wait before the next try.", details)


def _next(hold: Hold) -> dict[str, str]:
    return {"verification_id": str(live_challenge(hold).pk)}


def _tries(row: FailedTries) -> Tries:
    return Tries(row.failures, row.window_start, row.locked_until, row.strikes)


def _hashed(challenge: Challenge, code: str) -> str:
    """Bound to its challenge: the same code elsewhere is another."""
    return sha256_hex(f"{challenge.pk}:{code}")


def _is_right(challenge: Challenge, code: str) -> bool:
    """Compared in constant time; a challenge whose code nobody was shown has none that is right."""
    given = _hashed(challenge, "".join(each for each in code.lower() if each.isalnum()))
    return bool(challenge.hashed) and hmac.compare_digest(given, challenge.hashed)
