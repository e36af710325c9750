"""An agent says what it intends, and is told whether it may (contract safety-loop 6-8, 12).

One report is one transaction under the agent's lock: judged, held if need be, written down and answered. The answer
always carries a directive, a stopped agent's too.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.safety.enums import Decision, HoldKind, HoldState, Mode
from apps.safety.locks import Report, lock_report
from apps.safety.models import Execution, Hold, SafetyAgent, Step
from apps.safety.queries import notifications, pending_challenge, policy_of
from apps.safety.rules import decides, directive, evaluate, is_over
from apps.safety.schemas import Intended, Policy, Principal, Reply, Success, Verdict
from apps.safety.services.executions import no_execution, state_of
from apps.safety.services.holding import action_digest, end_hold, live_challenge, open_hold, refused
from apps.safety.signals import loop_changed
from kernel.clock import now
from kernel.tenancy import gather_for_commit


def record_step(
    principal: Principal,
    *,
    name: str,
    hint: str,
    description: str = "",
    outcome: str = "",
    execution_id: UUID | None = None,
) -> Reply:
    """Judge the intended action and answer with its directive."""
    begun = lock_report(principal.ref, name, execution_id)
    if begun.block is not None:
        return _stopped(begun.agent, Hold.objects.select_related("agent").get(pk=begun.block))
    execution, policy = begun.execution, begun.policy
    if execution is None or policy is None:
        return no_execution()
    verdict = verdict_of(policy, hint, outcome, execution.steps - execution.granted_at)
    said = _decided(begun, execution, policy, verdict, hint)
    _write_down(execution, policy.mode, verdict, said, hint=hint, description=description, outcome=outcome)
    quiet = begun.quiet and said["continue"]
    said["notifications"] = [] if quiet else notifications(begun.agent, execution)
    return Success(state_of(execution) | {"autonomy": said})


def verdict_of(policy: Policy, hint: str, outcome: str, used: int = 1) -> Verdict | None:
    """`used`: how many steps of its present budget the execution has used, this one included."""
    if policy.mode in (Mode.LOGGING, Mode.DISABLED):
        return None
    return evaluate(policy, Intended(hint, outcome, used))


def _decided(begun: Report, execution: Execution, policy: Policy, verdict: Verdict | None, hint: str) -> dict[str, Any]:
    """The directive, after what holds the execution already and what a person has allowed."""
    agent = begun.agent
    left = max(0, policy.max_steps - (execution.steps - execution.granted_at)) if policy.max_steps else None
    said = directive(policy.mode, verdict, steps_remaining=left)
    if verdict is None or not decides(policy.mode):
        return said
    if verdict.decision is Decision.STOP:
        hold = open_hold(agent, execution, verdict, policy, kind=HoldKind.BLOCK, hint=hint)
        return said | {"reason": _with_challenge(hold, hold.reason)}
    if not begun.quiet and (held := _standing_pause(execution)) is not None:
        return _held(held) | {"stepsRemaining": left} if left is not None else _held(held)
    if verdict.decision is Decision.GO:
        return said
    if _uses_a_yes(agent, execution, verdict, hint):
        return {**said, "continue": True, "factors": [*said["factors"], "A person allowed this action."]} | {
            "reason": ""
        }
    kind = HoldKind.VERIFY if verdict.verifies else HoldKind.CONFIRM
    hold = open_hold(agent, execution, verdict, policy, kind=kind, hint=hint)
    return said | {"reason": _with_challenge(hold, hold.reason)}


def _standing_pause(execution: Execution) -> Hold | None:
    """What the execution waits for still; a verify pause whose time ran out is over (contract safety-loop 12)."""
    held: Hold | None = execution.holds.filter(state=HoldState.OPEN).exclude(kind=HoldKind.BLOCK).first()
    if held is None or held.kind == HoldKind.CONFIRM:
        return held
    challenge = pending_challenge(held)
    if challenge is not None and is_over(challenge.expires_at, now()):
        end_hold(held, HoldState.EXPIRED, actor="system")
        return None
    if challenge is None:
        live_challenge(held)
    return held


def _held(hold: Hold) -> dict[str, Any]:
    reason = _with_challenge(hold, f"Still waiting for a person: {hold.reason}")
    return {"continue": False, "factors": [reason, *hold.factors], "reason": reason, "nextStepRisk": hold.tier}


def _with_challenge(hold: Hold, reason: str) -> str:
    if hold.kind == HoldKind.CONFIRM:
        return reason
    challenge = pending_challenge(hold) or hold.challenges.first()
    return f"{reason} Verification: {challenge.pk}." if challenge else reason


def _uses_a_yes(agent: SafetyAgent, execution: Execution, verdict: Verdict, hint: str) -> bool:
    """A person's yes lets the same action of the same execution pass, once; a yes to less than what it is judged now
    does not."""
    digest = action_digest(agent.name, execution.pk, hint)
    given = execution.holds.filter(state=HoldState.LIFTED, used_at=None, digest=digest).exclude(kind=HoldKind.BLOCK)
    given = given.filter(kind=HoldKind.VERIFY) if verdict.verifies else given
    first = given.values_list("pk", flat=True).first()
    return first is not None and Hold.objects.filter(pk=first, used_at=None).update(used_at=now()) == 1


def _stopped(agent: SafetyAgent, block: Hold) -> Reply:
    """A stopped agent's report is refused in the shape of a directive (G3). A block outlives a change of mode; in
    another mode than enforcing it still holds, and is not called a stop."""
    failure = refused(block, "record_execution_step")
    reason = f"{failure.message} Verification: {failure.details['verification_id']}."
    autonomy: dict[str, Any] = {"continue": False, "factors": [block.reason, *block.factors], "reason": reason}
    if decides(policy_of(agent.principal).mode):
        autonomy["stopped"] = True
    told = autonomy | {"nextStepRisk": "danger_zone", "notifications": notifications(agent, None)}
    return Success({"status": "blocked", "autonomy": told})


def _write_down(
    execution: Execution,
    mode: Mode,
    verdict: Verdict | None,
    said: dict[str, Any],
    *,
    hint: str,
    description: str,
    outcome: str,
) -> None:
    if said.get("reason") == "":
        del said["reason"]
    decision = Decision.GO if said["continue"] else Decision.STOP if said.get("stopped") else Decision.PAUSE
    step = Step(
        tenant_id=execution.tenant_id,
        execution=execution,
        seq=execution.steps,
        hint=hint,
        description=description,
        outcome=outcome,
        factors=said["factors"],
        created_at=execution.last_at,
        **words_of(mode, verdict, decision),
    )
    gather_for_commit(_written, step)
    loop_changed(decision is not Decision.GO)
    data = judged(execution.steps, mode, verdict, decision)
    subject = f"safety_execution:{execution.pk}"
    record(AuditEvent.SAFETY_JUDGED, actor=execution.agent.principal, subject=subject, data=data)


def words_of(mode: Mode, verdict: Verdict | None, decision: Decision) -> dict[str, Any]:
    """How a step's row says what was decided."""
    judged_as = (verdict.stage, verdict.tier, verdict.score) if verdict else ("", "", None)
    return {"mode": mode, "decision": decision} | dict(zip(("stage", "tier", "score"), judged_as, strict=True))


def judged(seq: int, mode: Mode, verdict: Verdict | None, decision: Decision) -> dict[str, Any]:
    """How the audit log says it."""
    data: dict[str, Any] = {"seq": seq, "decision": str(decision), "mode": str(mode)}
    if verdict is not None:
        data |= {"stage": str(verdict.stage), "tier": str(verdict.tier), "score": verdict.score}
    return data


def _written(steps: list[Step]) -> None:
    """With the audit log's entry and COMMIT: one round trip."""
    Step.objects.bulk_create(steps)
