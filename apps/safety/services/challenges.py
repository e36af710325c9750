"""Verification codes: a person reads the code at the console, the agent redeems it (contract safety-loop 12-14).

The code is created when an entitled person opens it: 128 random bits, stored as a hash, valid once and for a few
minutes. A wrong code fails the challenge and counts against the agent and the caller, under a row lock.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from apps.approvals.queries import needs_passkey
from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.safety.enums import ChallengeState, HoldKind, HoldState
from apps.safety.locks import lock_attempts, lock_challenge, lock_hold
from apps.safety.models import Challenge, FailedTries, Hold
from apps.safety.rules.holds import Attempts, after_failure, approval_risk, is_expired, wait_seconds
from apps.safety.schemas import Failure, Principal, Reply, Success
from apps.safety.services.holds import end_hold, ensure_challenge, replace_challenge, with_proof
from apps.tenants.enums import Capability
from apps.tenants.models import Membership
from apps.tenants.rules import roles_with
from kernel.canonical import sha256_hex
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import NotFound, SilasError
from kernel.language import gettext

_BYTES = 16


def show_code(hold_id: UUID, *, actor: str, proof: str = "") -> str:
    """Create a code for the hold and return it, to be shown to `actor` alone; an earlier code becomes invalid.

    Called by `operator_actions` after its passkey check, and for e-mails. The code is stored nowhere. Raises
    `NotFound`, 409 `not_held`.
    """
    hold = lock_hold(hold_id)
    if hold is None:
        raise NotFound()
    if hold.state != HoldState.OPEN or hold.kind == HoldKind.CONFIRM:
        raise SilasError(ErrorCode.NOT_HELD, gettext("This no longer needs a code."))
    moment = now()
    challenge = hold.challenges.filter(state=ChallengeState.PENDING).first()
    if challenge is None or is_expired(challenge.expires_at, moment):
        challenge = replace_challenge(hold, moment)
    # Created now and not with the block: a code that waits for a person would have to stay readable until then. Showing
    # it again creates another one, so an agent that uses up attempts cannot lock its own operator out.
    code = secrets.token_hex(_BYTES)
    challenge.hashed, challenge.shown_at = _hashed(challenge, code), moment
    challenge.expires_at = moment + timedelta(seconds=hold.challenge_seconds)
    challenge.save(update_fields=["hashed", "shown_at", "expires_at"])
    data = with_proof({"hold": str(hold_id)}, proof)
    record(AuditEvent.SAFETY_CODE_SHOWN, actor=actor, subject=f"safety_agent:{hold.agent_id}", data=data)
    return "-".join(code[start : start + 8] for start in range(0, len(code), 8))


@dataclass(frozen=True, repr=False)
class CodeEmail:
    """A code to be mailed to these addresses, each with its reader's language; the code exists only here."""

    hold: Hold
    code: str
    addresses: Mapping[str, str]


def claim_code_email(hold_id: UUID) -> CodeEmail | None:
    """Claim the e-mail for a hold whose code was neither shown nor mailed yet; at most once for each hold.

    It goes to everyone who may decide and needs no passkey for it. Returns None when there is nothing to send.
    """
    hold = lock_hold(hold_id)
    if hold is None or hold.state != HoldState.OPEN or hold.mailed_at is not None:
        return None
    if hold.challenges.filter(state=ChallengeState.PENDING, shown_at__isnull=False).exists():
        return None
    risk = approval_risk(hold.kind)
    deciding = Membership.objects.filter(role__in=roles_with(Capability.DECIDE), user__is_active=True)
    users = [row.user for row in deciding.exclude(user__email="").select_related("user").order_by("pk")]
    addresses = {user.email: user.language for user in users if not needs_passkey(risk, user)}
    if not addresses:
        return None
    hold.mailed_at = now()
    hold.save(update_fields=["mailed_at"])
    return CodeEmail(hold, show_code(hold_id, actor="system"), addresses)


def verify_challenge(principal: Principal, *, challenge_id: str, code: str) -> Reply:
    """Redeem a code. Unknown, foreign and wrong codes get the same answer."""
    challenge = _principals_challenge(challenge_id, principal)
    keys = [f"caller:{principal.ref}", *([f"agent:{challenge.hold.agent_id}"] if challenge else [])]
    rows = lock_attempts(keys)
    moment = now()
    wait = max(wait_seconds(_attempts(row), moment) for row in rows)
    if wait:
        record(AuditEvent.SAFETY_CODE_LOCKED, actor=principal.ref, subject=principal.ref, data={"seconds": wait})
        details = {"limit": 10, "remaining": 0, "window": "60s", "retry_after_seconds": wait}
        return Failure("RATE_LIMIT_EXCEEDED", "Too many wrong codes. Wait before the next try.", details)
    if challenge is None:
        return _refuse_wrong(principal, rows, None)
    if challenge.state == ChallengeState.VERIFIED:
        return Failure("TOKEN_ALREADY_USED", "This challenge was answered already.")
    if challenge.state == ChallengeState.EXPIRED or (
        challenge.state == ChallengeState.PENDING and is_expired(challenge.expires_at, moment)
    ):
        return _refuse_expired(principal, challenge)
    if challenge.state != ChallengeState.PENDING or not _matches(challenge, code):
        return _refuse_wrong(principal, rows, challenge)
    challenge.end(ChallengeState.VERIFIED)
    end_hold(challenge.hold, HoldState.LIFTED, actor=principal.ref)
    message = "A person verified it. The agent may go on."
    return Success({"verified": True, "unblocked_agent": challenge.hold.agent.name, "message": message})


def _principals_challenge(challenge_id: str, principal: Principal) -> Challenge | None:
    """Only the held principal redeems its code: the person gave it to that agent."""
    try:
        challenge = lock_challenge(UUID(challenge_id))
    except ValueError:
        return None
    return challenge if challenge is not None and challenge.hold.principal == principal.ref else None


def _refuse_expired(principal: Principal, challenge: Challenge) -> Reply:
    hold = challenge.hold
    if challenge.state == ChallengeState.PENDING:
        challenge.end(ChallengeState.EXPIRED)
    data = {"hold": str(hold.pk), "why": "expired"}
    record(AuditEvent.SAFETY_CODE_REFUSED, actor=principal.ref, subject=f"safety_agent:{hold.agent_id}", data=data)
    if hold.state == HoldState.OPEN and hold.kind == HoldKind.VERIFY:
        end_hold(hold, HoldState.EXPIRED, actor="system")
    details = _next_challenge(hold) if hold.kind == HoldKind.BLOCK and hold.state == HoldState.OPEN else {}
    return Failure("TOKEN_EXPIRED", "This challenge has expired.", details)


def _refuse_wrong(principal: Principal, rows: list[FailedTries], challenge: Challenge | None) -> Reply:
    """Fail the challenge and count the failure.

    The principal's own hold gets its next challenge at once and the answer names it, so that the next code is redeemed
    for the right challenge.
    """
    moment = now()
    for row in rows:
        after = after_failure(_attempts(row), moment)
        row.failures, row.window_start = after.failures, after.window_start
        row.locked_until, row.strikes = after.locked_until, after.strikes
        row.save(update_fields=["failures", "window_start", "locked_until", "strikes"])
    hold: Hold | None = challenge.hold if challenge else None
    if challenge is not None and challenge.state == ChallengeState.PENDING:
        challenge.end(ChallengeState.FAILED)
    data = {"why": "wrong" if hold else "unknown", "hold": str(hold.pk) if hold else ""}
    subject = f"safety_agent:{hold.agent_id}" if hold else principal.ref
    record(AuditEvent.SAFETY_CODE_REFUSED, actor=principal.ref, subject=subject, data=data)
    details = _next_challenge(hold) if hold is not None and hold.state == HoldState.OPEN else {}
    return Failure("TOKEN_INVALID", "This challenge or its code is not right.", details)


def _next_challenge(hold: Hold) -> dict[str, str]:
    return {"verification_id": str(ensure_challenge(hold).pk)}


def _attempts(row: FailedTries) -> Attempts:
    return Attempts(row.failures, row.window_start, row.locked_until, row.strikes)


def _hashed(challenge: Challenge, code: str) -> str:
    """Hash the code together with its challenge, so that it is valid for no other."""
    return sha256_hex(f"{challenge.pk}:{code}")


def _matches(challenge: Challenge, code: str) -> bool:
    """Compare in constant time. No code matches a challenge whose code was never shown."""
    given = _hashed(challenge, "".join(character for character in code.lower() if character.isalnum()))
    return bool(challenge.hashed) and hmac.compare_digest(given, challenge.hashed)
