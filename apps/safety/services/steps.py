"""Judge the step that an agent reports and answer with a directive (contract safety-loop 6-8, 12).

One report is one transaction under the locks of its principal and its agent: judged, held if need be, written down and
answered. The answer always carries a directive, a stopped agent's too.
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
from apps.safety.rules import decides, directive, evaluate
from apps.safety.schemas import Intended, Policy, Principal, Reply, Success, Verdict
from apps.safety.services.executions import no_execution, state_of
from apps.safety.services.holding import action_digest, open_hold, refused, standing_pause
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
    """Judge the intended action and answer with its directive."""
    window, agent = lock_reporting(principal.ref, name)
    if (block := open_block(principal.ref)) is not None:
        return _stopped(agent, block)
    policy = policy_of(principal.ref)
    execution = _count_step(agent, window, execution_id, policy.step_window_seconds)
    if execution is None:
        return no_execution()
    used = steps_used(policy, execution, window)
    verdict = verdict_of(policy, hint, outcome, used)
    said = _decided(agent, execution, policy, verdict, hint, used)
    _write_down(execution, policy.mode, verdict, said, hint=hint, description=description, outcome=outcome)
    said["notifications"] = notifications(agent, execution)
    return Success(state_of(execution) | {"autonomy": said})


def _count_step(
    agent: SafetyAgent, window: StepWindow, execution_id: UUID | None, window_seconds: int
) -> Execution | None:
    """Count this report for its execution and for its principal; None where no such execution runs."""
    found = running_execution(agent, execution_id)
    if found is None:
        return None
    execution = lock_execution(found.pk)
    if execution.status != ExecutionStatus.RUNNING:
        return None
    execution.steps, execution.last_at = execution.steps + 1, now()
    execution.save(update_fields=["steps", "last_at"])
    execution.agent = agent
    if (execution.last_at - window.started_at).total_seconds() >= window_seconds:
        window.steps, window.started_at = 0, execution.last_at
    window.steps += 1
    window.save(update_fields=["steps", "started_at"])
    return execution


def steps_used(policy: Policy, execution: Execution, window: StepWindow) -> int:
    """How much of the step limit is used: by this execution, or by the principal within its window if that is more.
    A new execution, or another name of the same key, is no way around the limit."""
    return max(execution.steps - execution.granted_at, window.steps)


def verdict_of(policy: Policy, hint: str, outcome: str, used: int) -> Verdict | None:
    """The policy's verdict, or None in the modes that do not judge. `used`: see `Intended.steps`."""
    if policy.mode in (Mode.LOGGING, Mode.DISABLED):
        return None
    return evaluate(policy, Intended(hint, outcome, used))


def _decided(
    agent: SafetyAgent, execution: Execution, policy: Policy, verdict: Verdict | None, hint: str, used: int
) -> dict[str, Any]:
    """The directive, after what holds the agent already and what a person has allowed."""
    left = max(0, policy.max_steps - used) if policy.max_steps else None
    said = directive(policy.mode, verdict, steps_remaining=left)
    if verdict is None or not decides(policy.mode):
        return said
    if verdict.decision is Decision.STOP:
        hold = open_hold(agent, execution, verdict, policy, kind=HoldKind.BLOCK, hint=hint)
        return said | {"reason": _with_challenge(hold, hold.reason)}
    if (held := standing_pause(agent, execution)) is not None:
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
        mode=mode,
        decision=decision,
        stage=verdict.stage if verdict else "",
        tier=verdict.tier if verdict else "",
        score=verdict.score if verdict else None,
    )
    before_commit(_written, step)
    loop_changed(decision is not Decision.GO)
    data: dict[str, Any] = {"seq": execution.steps, "decision": str(decision), "mode": str(mode)}
    if verdict is not None:
        data |= {"stage": str(verdict.stage), "tier": str(verdict.tier), "score": verdict.score}
    subject = f"safety_execution:{execution.pk}"
    record(AuditEvent.SAFETY_JUDGED, actor=execution.agent.principal, subject=subject, data=data)


def _written(steps: list[Step]) -> None:
    Step.objects.bulk_create(steps)
