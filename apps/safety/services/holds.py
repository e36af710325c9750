"""Open and end holds of agents (pauses and blocks) and their challenges. Internal to this app."""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import F, Q

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.bus import services as bus
from apps.bus.enums import Kind
from apps.safety.enums import ChallengeState, HoldKind, HoldState, Stage
from apps.safety.locks import lock_hold
from apps.safety.models import Challenge, Execution, Hold, SafetyAgent, StepWindow
from apps.safety.queries import open_block, pending_challenge
from apps.safety.rules.holds import is_expired
from apps.safety.rules.normalization import canonical_text
from apps.safety.schemas import Failure, Policy, Verdict
from apps.safety.signals import loop_changed
from kernel.canonical import sha256_hex
from kernel.clock import now


def action_digest(agent_name: str, execution_id: UUID | None, operation: str) -> str:
    """Identify the action that a confirmation is for: the agent, its execution and the operation in its canonical
    spelling."""
    return sha256_hex(
        {"agent": agent_name, "execution": str(execution_id or ""), "operation": canonical_text(operation)}
    )


def open_hold(
    agent: SafetyAgent, execution: Execution | None, verdict: Verdict, policy: Policy, *, kind: HoldKind, hint: str
) -> Hold:
    """Hold the agent. A verify pause and a block get their challenge at once."""
    moment = now()
    if execution is not None:
        close_pauses(execution, HoldKind.CONFIRM, HoldKind.VERIFY)
    hold = Hold(
        agent=agent,
        principal=agent.principal,
        execution=execution,
        kind=kind,
        stage=verdict.stage,
        tier=verdict.tier,
        hint=hint,
        digest=action_digest(agent.name, execution.pk if execution else None, hint),
        reason=verdict.reason[:700],
        factors=list(verdict.factors),
        challenge_seconds=policy.challenge_seconds,
        created_at=moment,
    )
    if not _insert(hold):
        block = open_block(agent.principal)
        assert block is not None
        return block
    if kind != HoldKind.CONFIRM:
        _create_challenge(hold, moment)
        if settings.SAFETY_MAIL_CODES:
            bus.enqueue(Kind.SAFETY_CODE_MAIL, scope_id=hold.pk)
    bus.enqueue(Kind.HOLD_ALERT, scope_id="holds")
    loop_changed(True)
    if kind == HoldKind.BLOCK:
        data = {"stage": str(verdict.stage), "score": verdict.score, "hold": str(hold.pk)}
        record(AuditEvent.SAFETY_BLOCKED, actor=agent.principal, subject=f"safety_agent:{agent.pk}", data=data)
    return hold


def _insert(hold: Hold) -> bool:
    """Insert the hold; False when the principal has a block already."""
    # Two agents of one principal can be stopped at once: the unique constraint lets the first block win.
    try:
        with transaction.atomic():
            hold.save(force_insert=True)
    except IntegrityError:
        if hold.kind != HoldKind.BLOCK:
            raise
        return False
    return True


def with_proof(data: dict[str, str], proof: str) -> dict[str, str]:
    """Add the hash of the passkey's assertion, which is stored with the hold, to the audit data of an action."""
    return {**data, "proof": proof} if proof else data


def end_hold(hold: Hold, state: HoldState, *, actor: str, proof: str = "") -> None:
    """End the hold and its pending challenge; does nothing when it has ended already."""
    moment = now()
    still_open = Hold.objects.filter(pk=hold.pk, state=HoldState.OPEN)
    if not still_open.update(state=state, ended_at=moment, ended_by=actor):
        return
    hold.state, hold.ended_at, hold.ended_by = state, moment, actor
    loop_changed(True)
    hold.challenges.filter(state=ChallengeState.PENDING).update(state=ChallengeState.SUPERSEDED, ended_at=moment)
    if state == HoldState.LIFTED:
        if hold.execution_id and hold.stage == Stage.STEP_LIMIT:
            Execution.objects.filter(pk=hold.execution_id).update(granted_at=F("steps"))
            StepWindow.objects.filter(principal=hold.principal).update(steps=0, started_at=moment)
        data = with_proof({"kind": str(hold.kind), "hold": str(hold.pk)}, proof)
        record(AuditEvent.SAFETY_LIFTED, actor=actor, subject=f"safety_agent:{hold.agent_id}", data=data)


def close_pauses(execution: Execution, *kinds: HoldKind) -> None:
    """End the open pauses of these kinds without a person's decision."""
    for hold in execution.holds.filter(state=HoldState.OPEN, kind__in=kinds):
        end_hold(hold, HoldState.CLOSED, actor="system")


def pending_pause(agent: SafetyAgent, execution: Execution | None = None) -> Hold | None:
    """Return the pause that the agent must wait for, and expire verify pauses whose challenge ran out.

    That is any pause of this execution, or a verify pause of its principal, which another execution or another name
    cannot bypass (contract safety-loop 12).
    """
    concerns = Q(principal=agent.principal, kind=HoldKind.VERIFY)
    if execution is not None:
        concerns |= Q(execution=execution, kind=HoldKind.CONFIRM)
    pending = None
    for pause in Hold.objects.filter(concerns, state=HoldState.OPEN).select_related("agent").order_by("created_at"):
        challenge = pending_challenge(pause)
        if pause.kind == HoldKind.VERIFY and challenge is not None and is_expired(challenge.expires_at, now()):
            end_hold(pause, HoldState.EXPIRED, actor="system")
        elif pending is None:
            pending = pause
            if pause.kind == HoldKind.VERIFY:
                ensure_challenge(pause)
    return pending


def replace_challenge(hold: Hold, moment: datetime) -> Challenge:
    """Supersede the pending challenge by a new one, whose code does not exist yet."""
    hold.challenges.filter(state=ChallengeState.PENDING).update(state=ChallengeState.SUPERSEDED, ended_at=moment)
    return _create_challenge(hold, moment)


def _create_challenge(hold: Hold, moment: datetime) -> Challenge:
    expires_at = moment + timedelta(seconds=hold.challenge_seconds)
    challenge: Challenge = Challenge.objects.create(hold=hold, created_at=moment, expires_at=expires_at)
    if hold.kind == HoldKind.VERIFY:
        bus.schedule(Kind.SAFETY_EXPIRY, scope_id=hold.pk, due_at=expires_at)
    return challenge


def ensure_challenge(hold: Hold) -> Challenge:
    """Return the pending challenge, or a new one when it expired or failed (contract safety-loop G4)."""
    moment = now()
    pending = pending_challenge(hold)
    if pending is not None and not is_expired(pending.expires_at, moment):
        return pending
    if pending is not None:
        pending.end(ChallengeState.EXPIRED)
    return replace_challenge(hold, moment)


def refuse(hold: Hold, operation: str) -> Failure:
    """Record and return the refusal that a held agent gets from every operation except reports."""
    data = {"operation": operation, "hold": str(hold.pk)}
    record(AuditEvent.SAFETY_REFUSED, actor=hold.principal, subject=f"safety_agent:{hold.agent_id}", data=data)
    locked = lock_hold(hold.pk) or hold
    challenge = ensure_challenge(locked)
    if hold.kind == HoldKind.VERIFY:
        details = {"reason": "verification_required", "verification_id": str(challenge.pk)}
        message = "This agent waits for a person's verification. Report nothing else until it is given or has expired."
        return Failure("PERMISSION_DENIED", message, details)
    details = {"reason": "hard_blocked", "verification_id": str(challenge.pk)}
    return Failure("PERMISSION_DENIED", "This agent is stopped. A person has to unblock it in the console.", details)
