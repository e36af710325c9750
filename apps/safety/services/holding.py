"""Open and end the holds of an agent (pauses and blocks) and their challenges. Used inside this room only."""

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
from apps.safety.rules import is_over, subject_of
from apps.safety.schemas import Failure, Policy, Verdict
from apps.safety.signals import loop_changed
from kernel.canonical import sha256_hex
from kernel.clock import now


def action_digest(agent_name: str, execution_id: UUID | None, operation: str) -> str:
    """Which action a yes is for: the agent, its execution and the operation in its canonical spelling."""
    return sha256_hex({"agent": agent_name, "execution": str(execution_id or ""), "operation": subject_of(operation)})


def open_hold(
    agent: SafetyAgent, execution: Execution | None, verdict: Verdict, policy: Policy, *, kind: HoldKind, hint: str
) -> Hold:
    """Hold the agent; a verify pause and a block have their challenge at once."""
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
    if not _is_first(hold):
        standing = open_block(agent.principal)
        assert standing is not None
        return standing
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


def _is_first(hold: Hold) -> bool:
    """Of two agents of one principal that are stopped at once, the second finds the block of the first."""
    try:
        with transaction.atomic():
            hold.save(force_insert=True)
    except IntegrityError:
        if hold.kind != HoldKind.BLOCK:
            raise
        return False
    return True


def with_proof(data: dict[str, str], proof: str) -> dict[str, str]:
    """What is audited of a press. `proof`: the hash of the passkey's assertion behind it, which is with the hold."""
    return {**data, "proof": proof} if proof else data


def end_hold(hold: Hold, state: HoldState, *, actor: str, proof: str = "") -> None:
    """Ends what still holds, and its challenge with it."""
    moment = now()
    ended = {"state": state, "ended_at": moment, "ended_by": actor}
    if not Hold.objects.filter(pk=hold.pk, state=HoldState.OPEN).update(**ended):
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


def standing_pause(agent: SafetyAgent, execution: Execution | None = None) -> Hold | None:
    """The pause that the agent has to wait for: any of this execution, or a verify pause of its principal, which no
    other execution, name or end of the execution goes around. A verify pause ends with its challenge's time
    (contract safety-loop 12)."""
    concerns = Q(principal=agent.principal, kind=HoldKind.VERIFY)
    if execution is not None:
        concerns |= Q(execution=execution, kind=HoldKind.CONFIRM)
    standing = None
    for held in Hold.objects.filter(concerns, state=HoldState.OPEN).select_related("agent").order_by("created_at"):
        challenge = pending_challenge(held)
        if held.kind == HoldKind.VERIFY and challenge is not None and is_over(challenge.expires_at, now()):
            end_hold(held, HoldState.EXPIRED, actor="system")
        elif standing is None:
            standing = held
            if held.kind == HoldKind.VERIFY:
                live_challenge(held)
    return standing


def new_challenge(hold: Hold, moment: datetime) -> Challenge:
    """Another challenge takes the place of the one before. Its code does not exist yet."""
    hold.challenges.filter(state=ChallengeState.PENDING).update(state=ChallengeState.SUPERSEDED, ended_at=moment)
    return _create_challenge(hold, moment)


def _create_challenge(hold: Hold, moment: datetime) -> Challenge:
    expires_at = moment + timedelta(seconds=hold.challenge_seconds)
    made: Challenge = Challenge.objects.create(hold=hold, created_at=moment, expires_at=expires_at)
    if hold.kind == HoldKind.VERIFY:
        bus.schedule(Kind.SAFETY_EXPIRY, scope_id=hold.pk, due_at=expires_at)
    return made


def live_challenge(hold: Hold) -> Challenge:
    """The challenge that stands, or a new one where it ran out or was burned (contract safety-loop G4)."""
    moment = now()
    standing = pending_challenge(hold)
    if standing is not None and not is_over(standing.expires_at, moment):
        return standing
    if standing is not None:
        standing.state, standing.ended_at = ChallengeState.EXPIRED, moment
        standing.save(update_fields=["state", "ended_at"])
    return new_challenge(hold, moment)


def refused(hold: Hold, operation: str) -> Failure:
    """What a stopped agent is told by every operation but its reports."""
    data = {"operation": operation, "hold": str(hold.pk)}
    record(AuditEvent.SAFETY_REFUSED, actor=hold.principal, subject=f"safety_agent:{hold.agent_id}", data=data)
    locked = lock_hold(hold.pk) or hold
    challenge = live_challenge(locked)
    if hold.kind == HoldKind.VERIFY:
        details = {"reason": "verification_required", "verification_id": str(challenge.pk)}
        message = "This agent waits for a person's verification. Report nothing else until it is given or has expired."
        return Failure("PERMISSION_DENIED", message, details)
    details = {"reason": "hard_blocked", "verification_id": str(challenge.pk)}
    return Failure("PERMISSION_DENIED", "This agent is stopped. A person has to unblock it in the console.", details)
