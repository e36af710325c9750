"""Approvals of a held action by a person or another principal, never by the agent itself (contract safety-loop 15).

A token carries a person's approval through the agent. It is bound to the operation in its canonical spelling, the agent
and its execution; stored as a hash, valid once, for five minutes.
"""

from __future__ import annotations

import secrets
from datetime import timedelta
from uuid import UUID

from apps.approvals.queries import always_needs_passkey
from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.safety.enums import HoldKind, HoldState
from apps.safety.locks import lock_hold
from apps.safety.models import Hold
from apps.safety.queries import open_block, pending_challenge
from apps.safety.rules.holds import approval_risk, is_expired
from apps.safety.schemas import Failure, Principal, Reply, Success
from apps.safety.services.holds import action_digest, end_hold, refuse, with_proof
from kernel.canonical import sha256_hex
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import NotFound, SilasError
from kernel.language import gettext

TOKEN_SECONDS = 300


def allow(hold_id: UUID, *, actor: str, proof: str = "") -> Hold:
    """Lift a hold of any kind, by a person at the console. Raises `NotFound`, 409 `not_held`.

    Called by `operator_actions`, which has checked their passkey.
    """
    hold = _lock_open_hold(hold_id)
    end_hold(hold, HoldState.LIFTED, actor=actor, proof=proof)
    return hold


def issue_token(hold_id: UUID, *, actor: str, proof: str = "") -> str:
    """Issue a token that the person hands to the agent; an earlier token becomes invalid.

    Raises as `allow` does, and 409 `needs_code` for holds that only a code lifts.
    """
    hold = _lock_open_hold(hold_id)
    if hold.kind != HoldKind.CONFIRM:
        raise SilasError(ErrorCode.NEEDS_CODE)
    token = f"conf_{secrets.token_urlsafe(32)}"
    hold.token_hashed, hold.token_used_at = sha256_hex(token), None
    hold.token_expires_at = now() + timedelta(seconds=TOKEN_SECONDS)
    hold.save(update_fields=["token_hashed", "token_used_at", "token_expires_at"])
    subject, data = f"safety_agent:{hold.agent_id}", with_proof({"hold": str(hold_id)}, proof)
    record(AuditEvent.SAFETY_TOKEN_ISSUED, actor=actor, subject=subject, data=data)
    return token


def _lock_open_hold(hold_id: UUID) -> Hold:
    hold = lock_hold(hold_id)
    if hold is None:
        raise NotFound()
    if hold.state != HoldState.OPEN:
        raise SilasError(ErrorCode.NOT_HELD, gettext("This was already decided, or its run has ended."))
    return hold


def confirm_operation(
    principal: Principal, *, operation: str, token: str = "", execution_id: UUID | None = None
) -> Reply:
    """Lift a confirmable pause with a person's token, or as another principal that may confirm."""
    if (block := open_block(principal.ref)) is not None:
        return refuse(block, "confirm_operation")
    if token:
        return _confirm_by_token(principal, operation, token)
    return _confirm_for_another(principal, operation, execution_id)


def _confirm_by_token(principal: Principal, operation: str, token: str) -> Reply:
    hold_id = Hold.objects.filter(token_hashed=sha256_hex(token)).values_list("pk", flat=True).first()
    hold = lock_hold(hold_id) if hold_id else None
    problem = _token_problem(hold, principal, operation)
    if hold is None or problem:
        subject = f"safety_agent:{hold.agent_id}" if hold else principal.ref
        record(AuditEvent.SAFETY_TOKEN_REFUSED, actor=principal.ref, subject=subject, data={"why": problem})
        return Failure(problem, _MESSAGES[problem])
    hold.token_used_at = now()
    hold.save(update_fields=["token_used_at"])
    end_hold(hold, HoldState.LIFTED, actor=principal.ref)
    return _confirmed(hold)


_MESSAGES = {
    "TOKEN_INVALID": "This confirmation token is not valid.",
    "TOKEN_EXPIRED": "This confirmation token has expired.",
    "TOKEN_ALREADY_USED": "This confirmation token was already used.",
    "TOKEN_SCOPE_MISMATCH": "This confirmation token is for another operation.",
}


def _token_problem(hold: Hold | None, principal: Principal, operation: str) -> str:
    """Return the code of the first check that fails, in the contract's order (safety-loop 15), or ""."""
    if hold is None or hold.token_expires_at is None or hold.principal != principal.ref:
        return "TOKEN_INVALID"
    if hold.token_used_at is not None:
        return "TOKEN_ALREADY_USED"
    if is_expired(hold.token_expires_at, now()) or hold.state != HoldState.OPEN:
        return "TOKEN_EXPIRED"
    return "" if _is_about(hold, operation) else "TOKEN_SCOPE_MISMATCH"


def _confirm_for_another(principal: Principal, operation: str, execution_id: UUID | None) -> Reply:
    rows = Hold.objects.filter(state=HoldState.OPEN).exclude(kind=HoldKind.BLOCK).select_related("agent")
    if not principal.may_confirm:
        rows = rows.filter(principal=principal.ref)
    if execution_id is not None:
        rows = rows.filter(execution_id=execution_id)
    hold_id = next((row.pk for row in rows if _is_about(row, operation)), None)
    hold = lock_hold(hold_id) if hold_id else None
    if hold is None or hold.state != HoldState.OPEN:
        return Failure("NOT_FOUND_RESOURCE", "Nothing waits for this operation.", {"resource_type": "confirmation"})
    if hold.principal == principal.ref or not principal.may_confirm:
        return _refuse(hold, hold.principal, "self_approval", "An agent cannot confirm for itself.")
    if hold.kind != HoldKind.CONFIRM:
        challenge = pending_challenge(hold)
        details = {"reason": "verification_required", "verification_id": str(challenge.pk) if challenge else ""}
        return Failure("PERMISSION_DENIED", "Only a code from the console lifts this ('verify_challenge').", details)
    # An API key has no passkey: where the policy requires one for every approval, only a person can confirm.
    if always_needs_passkey(approval_risk(hold.kind)):
        return _refuse(hold, principal.ref, "passkey_required", "Approvals require a passkey here.")
    end_hold(hold, HoldState.LIFTED, actor=principal.ref)
    return _confirmed(hold)


def _refuse(hold: Hold, actor: str, why: str, message: str) -> Failure:
    subject = f"safety_agent:{hold.agent_id}"
    record(AuditEvent.SAFETY_TOKEN_REFUSED, actor=actor, subject=subject, data={"why": why})
    message = f"{message} A person can allow it in the console or issue a token."
    return Failure("PERMISSION_DENIED", message, {"reason": why})


def _is_about(hold: Hold, operation: str) -> bool:
    return hold.digest == action_digest(hold.agent.name, hold.execution_id, operation)


def _confirmed(hold: Hold) -> Success:
    message = "Confirmed. Report the action again and go on."
    return Success({"confirmed": True, "operation": hold.hint, "message": message})
