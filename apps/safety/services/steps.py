"""Evaluate the step that an agent reports and answer with a directive (contract safety-loop 6-8, 12).

One report is one transaction under the locks of its principal and its agent: evaluated, held if necessary, stored and
answered. The answer always carries a directive, also for a stopped agent.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.safety.enums import Decision, ExecutionStatus, HoldKind, HoldState, Mode
from apps.safety.locks import lock_execution, lock_reporting
from apps.safety.models import Execution, Hold, SafetyAgent, Step, StepWindow
from apps.safety.queries import notifications, open_block, pending_challenge, policy_of, running_execution
from apps.safety.rules.stages import directive, evaluate, is_enforcing
from apps.safety.schemas import Intended, Policy, Principal, Reply, Success, Verdict
from apps.safety.services.executions import execution_not_found, execution_state
from apps.safety.services.holds import action_digest, open_hold, pending_pause, refuse
from apps.safety.signals import loop_changed
from kernel.clock import now
from kernel.tenancy import before_commit


def record_step(
    principal: Principal,
    *,
    name: str,
    hint: str,
    description: str = "",
    outcome: str = "",
    execution_id: UUID | None = None,
) -> Reply:
    """Evaluate the intended action and answer with its directive."""
    window, agent = lock_reporting(principal.ref, name)
    if (block := open_block(principal.ref)) is not None:
        return _blocked_reply(agent, block)
    policy = policy_of(principal.ref)
    execution = _count_step(agent, window, execution_id, policy.step_window_seconds)
    if execution is None:
        return execution_not_found()
    # The limit holds for the execution and for the principal within its window, whichever used more: a new execution,
    # or another name with the same key, does not bypass it.
    used = max(execution.steps - execution.granted_at, window.steps)
    is_evaluated = policy.mode not in (Mode.LOGGING, Mode.DISABLED)
    verdict = evaluate(policy, Intended(hint, outcome, used)) if is_evaluated else None
    autonomy = _directive_for(agent, execution, policy, verdict, hint, used)
    decision = Decision.GO if autonomy["continue"] else Decision.STOP if autonomy.get("stopped") else Decision.PAUSE
    data: dict[str, object] = {"seq": execution.steps, "decision": str(decision), "mode": str(policy.mode)}
    step = Step(
        tenant_id=execution.tenant_id,
        execution=execution,
        seq=execution.steps,
        hint=hint,
        description=description,
        outcome=outcome,
        factors=autonomy["factors"],
        created_at=execution.last_at,
        mode=policy.mode,
        decision=decision,
    )
    if verdict is not None:
        step.stage, step.tier, step.score = verdict.stage, verdict.tier, verdict.score
        data |= {"stage": str(verdict.stage), "tier": str(verdict.tier), "score": verdict.score}
    before_commit(Step.objects.bulk_create, step)
    loop_changed(decision is not Decision.GO)
    record(AuditEvent.SAFETY_JUDGED, actor=agent.principal, subject=f"safety_execution:{execution.pk}", data=data)
    autonomy["notifications"] = notifications(agent, execution)
    return Success(execution_state(execution) | {"autonomy": autonomy})


def _count_step(
    agent: SafetyAgent, window: StepWindow, execution_id: UUID | None, window_seconds: int
) -> Execution | None:
    """Count this report for its execution and its principal; None when no such execution is running."""
    running = running_execution(agent, execution_id)
    if running is None:
        return None
    execution = lock_execution(running.pk)
    if execution.status != ExecutionStatus.RUNNING:
        return None
    execution.steps, execution.last_at = execution.steps + 1, now()
    execution.save(update_fields=["steps", "last_at"])
    if (execution.last_at - window.started_at).total_seconds() >= window_seconds:
        window.steps, window.started_at = 0, execution.last_at
    window.steps += 1
    window.save(update_fields=["steps", "started_at"])
    return execution


def _directive_for(
    agent: SafetyAgent, execution: Execution, policy: Policy, verdict: Verdict | None, hint: str, used: int
) -> dict[str, Any]:
    """Build the directive from the verdict, the agent's existing holds and what a person has approved."""
    left = max(0, policy.max_steps - used) if policy.max_steps else None
    answer = directive(policy.mode, verdict, steps_remaining=left)
    if verdict is None or not is_enforcing(policy.mode):
        return answer
    if verdict.decision is Decision.STOP:
        hold = open_hold(agent, execution, verdict, policy, kind=HoldKind.BLOCK, hint=hint)
        return answer | {"reason": _with_challenge(hold, hold.reason)}
    if (pause := pending_pause(agent, execution)) is not None:
        return _paused(pause) | {"stepsRemaining": left} if left is not None else _paused(pause)
    if verdict.decision is Decision.GO:
        return answer
    if _use_approval(agent, execution, verdict, hint):
        del answer["reason"]
        return answer | {"continue": True, "factors": [*answer["factors"], "A person allowed this action."]}
    kind = HoldKind.VERIFY if verdict.verifies else HoldKind.CONFIRM
    hold = open_hold(agent, execution, verdict, policy, kind=kind, hint=hint)
    return answer | {"reason": _with_challenge(hold, hold.reason)}


def _paused(hold: Hold) -> dict[str, Any]:
    reason = _with_challenge(hold, f"Still waiting for a person: {hold.reason}")
    return {"continue": False, "factors": [reason, *hold.factors], "reason": reason, "nextStepRisk": hold.tier}


def _with_challenge(hold: Hold, reason: str) -> str:
    if hold.kind == HoldKind.CONFIRM:
        return reason
    challenge = pending_challenge(hold) or hold.challenges.first()
    return f"{reason} Verification: {challenge.pk}." if challenge else reason


def _use_approval(agent: SafetyAgent, execution: Execution, verdict: Verdict, hint: str) -> bool:
    """Spend a person's approval of the same action in the same execution; False when there is none.

    An approval that was given to a lighter verdict than the present one does not count.
    """
    digest = action_digest(agent.name, execution.pk, hint)
    approved = execution.holds.filter(state=HoldState.LIFTED, used_at=None, digest=digest).exclude(kind=HoldKind.BLOCK)
    approved = approved.filter(kind=HoldKind.VERIFY) if verdict.verifies else approved
    first = approved.values_list("pk", flat=True).first()
    return first is not None and Hold.objects.filter(pk=first, used_at=None).update(used_at=now()) == 1


def _blocked_reply(agent: SafetyAgent, block: Hold) -> Reply:
    """Refuse a blocked agent's report in the shape of a directive (G3).

    A block survives a change of mode: in other modes than enforcing it still applies, but is not called a stop.
    """
    failure = refuse(block, "record_execution_step")
    reason = f"{failure.message} Verification: {failure.details['verification_id']}."
    autonomy: dict[str, object] = {"continue": False, "factors": [block.reason, *block.factors], "reason": reason}
    if is_enforcing(policy_of(agent.principal).mode):
        autonomy["stopped"] = True
    autonomy |= {"nextStepRisk": "danger_zone", "notifications": notifications(agent, None)}
    return Success({"status": "blocked", "autonomy": autonomy})
