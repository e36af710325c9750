"""A person, or somebody else who may, says yes to a held action; never the agent itself (contract safety-loop 15).

A token carries a person's yes through the agent: bound to the operation in its canonical spelling, the agent and its
execution; kept as a hash, good once, for five minutes.
"""

from __future__ import annotations

import secrets
from datetime import timedelta
from uuid import UUID

from apps.approvals.queries import passkey_required
from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.safety.enums import HoldKind, HoldState
from apps.safety.locks import lock_hold
from apps.safety.models import Hold
from apps.safety.queries import open_block, pending_challenge
from apps.safety.rules import is_over, press_risk
from apps.safety.schemas import Failure, Principal, Reply, Success
from apps.safety.services.holding import action_digest, end_hold, refused, with_proof
from kernel.canonical import sha256_hex
from kernel.clock import now
from kernel.errors import NotFound, SilasError

TOKEN_SECONDS = 300


def allow(hold_id: UUID, *, actor: str, proof: str = "") -> Hold:
    """A person at the console lets the agent go on: the one step out of every hold. Raises `NotFound`, 409
    `not_held`. Called by `pressing`, which has asked for their passkey."""
    hold = _standing(hold_id)
    end_hold(hold, HoldState.LIFTED, actor=actor, proof=proof)
    return hold


def issue_token(hold_id: UUID, *, actor: str, proof: str = "") -> str:
    """A person's yes as a token that they hand to the agent; one before it is void. Raises as `allow`, and 409
    `needs_code` where only a code will do."""
    hold = _standing(hold_id)
    if hold.kind != HoldKind.CONFIRM:
        raise SilasError("needs_code", "This one needs a code.", status=409)
    token = f"conf_{secrets.token_urlsafe(32)}"
    hold.token_hashed, hold.token_used_at = sha256_hex(token), None
    hold.token_expires_at = now() + timedelta(seconds=TOKEN_SECONDS)
    hold.save(update_fields=["token_hashed", "token_used_at", "token_expires_at"])
    subject, data = f"safety_agent:{hold.agent_id}", with_proof({"hold": str(hold_id)}, proof)
    record(AuditEvent.SAFETY_TOKEN_ISSUED, actor=actor, subject=subject, data=data)
    return token


def _standing(hold_id: UUID) -> Hold:
    hold = lock_hold(hold_id)
    if hold is None:
        raise NotFound("hold")
    if hold.state != HoldState.OPEN:
        raise SilasError("not_held", "This was decided already, or its execution ended.", status=409)
    return hold


def confirm_operation(
    principal: Principal, *, operation: str, token: str = "", execution_id: UUID | None = None
) -> Reply:
    """Lift a confirmable pause: with a person's token, or as another principal that may confirm."""
    if (block := open_block(principal.ref)) is not None:
        return refused(block, "confirm_operation")
    if token:
        return _by_token(principal, operation, token)
    return _by_another(principal, operation, execution_id)


def _by_token(principal: Principal, operation: str, token: str) -> Reply:
    found = Hold.objects.filter(token_hashed=sha256_hex(token)).values_list("pk", flat=True).first()
    hold = lock_hold(found) if found else None
    problem = _token_problem(hold, principal, operation)
    if hold is None or problem:
        subject = f"safety_agent:{hold.agent_id}" if hold else principal.ref
        record(AuditEvent.SAFETY_TOKEN_REFUSED, actor=principal.ref, subject=subject, data={"why": problem})
        return Failure(problem, _TOLD[problem])
    hold.token_used_at = now()
    hold.save(update_fields=["token_used_at"])
    end_hold(hold, HoldState.LIFTED, actor=principal.ref)
    return _confirmed(hold)


_TOLD = {
    "TOKEN_INVALID": "This confirmation token is not right.",
    "TOKEN_EXPIRED": "This confirmation token has expired.",
    "TOKEN_ALREADY_USED": "This confirmation token was used already.",
    "TOKEN_SCOPE_MISMATCH": "This confirmation token is for another operation.",
}


def _token_problem(hold: Hold | None, principal: Principal, operation: str) -> str:
    """Which check fails first: exists, time, unused, scope (contract safety-loop 15); "" when none does."""
    if hold is None or hold.token_expires_at is None or hold.principal != principal.ref:
        return "TOKEN_INVALID"
    if hold.token_used_at is not None:
        return "TOKEN_ALREADY_USED"
    if is_over(hold.token_expires_at, now()) or hold.state != HoldState.OPEN:
        return "TOKEN_EXPIRED"
    same = hold.digest == action_digest(hold.agent.name, hold.execution_id, operation)
    return "" if same else "TOKEN_SCOPE_MISMATCH"


def _by_another(principal: Principal, operation: str, execution_id: UUID | None) -> Reply:
    rows = Hold.objects.filter(state=HoldState.OPEN).exclude(kind=HoldKind.BLOCK).select_related("agent")
    if not principal.may_confirm:
        rows = rows.filter(principal=principal.ref)
    if execution_id is not None:
        rows = rows.filter(execution_id=execution_id)
    found = [each for each in rows if _is_about(each, operation)]
    hold = lock_hold(found[0].pk) if found else None
    if hold is None or hold.state != HoldState.OPEN:
        return Failure("NOT_FOUND_RESOURCE", "Nothing waits for this operation.", {"resource_type": "confirmation"})
    if hold.principal == principal.ref or not principal.may_confirm:
        return _not_yourself(hold, operation)
    if hold.kind != HoldKind.CONFIRM:
        return _needs_code(hold)
    if passkey_required(press_risk(hold.kind)):
        return _needs_passkey(hold, principal)
    end_hold(hold, HoldState.LIFTED, actor=principal.ref)
    return _confirmed(hold)


def _needs_passkey(hold: Hold, principal: Principal) -> Failure:
    """A key has no passkey: where policy wants one behind every yes, a person says it."""
    why, subject = "passkey_required", f"safety_agent:{hold.agent_id}"
    record(AuditEvent.SAFETY_TOKEN_REFUSED, actor=principal.ref, subject=subject, data={"why": why})
    message = "Here every yes takes a passkey. A person allows it in the console, or hands out a token."
    return Failure("PERMISSION_DENIED", message, {"reason": why})


def _is_about(hold: Hold, operation: str) -> bool:
    return hold.digest == action_digest(hold.agent.name, hold.execution_id, operation)


def _not_yourself(hold: Hold, operation: str) -> Failure:
    message = "An agent cannot confirm for itself. A person allows it in the console, or hands out a token."
    record(
        AuditEvent.SAFETY_TOKEN_REFUSED,
        actor=hold.principal,
        subject=f"safety_agent:{hold.agent_id}",
        data={"why": "self_approval"},
    )
    return Failure("PERMISSION_DENIED", message, {"reason": "self_approval"})


def _needs_code(hold: Hold) -> Failure:
    challenge = pending_challenge(hold)
    details = {"reason": "verification_required", "verification_id": str(challenge.pk) if challenge else ""}
    return Failure("PERMISSION_DENIED", "This one needs a code from the console ('verify_challenge').", details)


def _confirmed(hold: Hold) -> Success:
    message = "Confirmed. Report the action again and go on."
    return Success({"confirmed": True, "operation": hold.hint, "message": message})
