"""Decide whether a call is admitted: R5 → R6 → marks → gates → safety → approval → R4, in one short transaction.

Runs under the run's row lock inside the caller's scope. A refusal is committed too, with everything that it changes and
records, so a caller that ignores it or fails later loses nothing (contract autonomy A4, C, D).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from decimal import Decimal
from uuid import uuid4

from django.db.models import Sum

from apps.approvals.queries import is_for_these_calls, is_revoked
from apps.approvals.tokens.payloads import has_passed_gate
from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.gates.enums import GateTrigger
from apps.gates.schemas import GateReport, GateResult
from apps.guard import egress, rules
from apps.guard.alerts import send_budget_alerts
from apps.guard.enums import CallOutcomeLabel, CallState, HaltState, Holder, Intent, RefusalCode
from apps.guard.estimates import Quote, quote, round_up
from apps.guard.ledger import write_admission, write_limits_reached
from apps.guard.locks import LockedRun, lock_budgets, lock_run, platform_day
from apps.guard.models import GuardedRun, ToolCall
from apps.guard.rules import LIMIT
from apps.guard.schemas import ZERO, Admitted, BudgetAlert, BudgetFacts, BudgetRow, Call, NeedsApproval, Refused, RunRef
from apps.safety.services import judge_internal_call
from kernel import fault_points

# Returns why a call is forbidden, as a code and a sentence, or None.
Policy = Callable[[], tuple[str, str] | None]
_APPROVAL_NEEDED = "A person has to approve this first."
_MONEY = frozenset({RefusalCode.COST_CAP_REACHED, RefusalCode.GLOBAL_DAILY, RefusalCode.GLOBAL_MONTHLY})


def precheck(ref: RunRef, intent: Intent, call: Call) -> Refused | None:
    """Check R5 and R6 before gates run, so that a stopped run starts no script. Records a refusal."""
    run = lock_run(ref)
    return _stopped(run) or _not_granted(run, intent, call)


def record_unoffered_tool(ref: RunRef, intent: Intent, tool: str) -> None:
    """Record that a model asked for a tool that it was not offered. Nothing is carried out."""
    name = re.sub(r"[^\w.-]", "_", tool[:120])
    _record_refused_call(lock_run(ref), intent, Call(tool=name), CallState.REFUSED, CallOutcomeLabel.TOOL_NOT_GRANTED)


def admit_call(
    ref: RunRef,
    intent: Intent,
    call: Call,
    report: GateReport | None = None,
    *,
    policy: Policy | None = None,
) -> Admitted | Refused | NeedsApproval:
    """Decide in the contract's order, and reserve the price. `report` is the result of the call's gates, if it has any;
    `policy` a check by the room that registered the intent (`registry.register_policy`)."""
    acting, quoted = _needs_approval(call, report), _quoted(intent, call)
    run = lock_run(ref)
    return (
        _stopped(run)
        or _not_granted(run, intent, call)
        or _marked(run, intent, call)
        or _forbidden(run, intent, call, policy)
        or _gated(run, intent, call, report)
        or _leaking(run, intent, call)
        or _unsafe(run, intent, call, report)
        or _not_approved(run, intent, call, report)
        or _admitted_or_over_budget(run, ref, intent, call, quoted, acting=acting)
    )


def _stopped(run: LockedRun) -> Refused | None:
    code = rules.check_running(run.facts)
    if code is None:
        return None
    if run.row.halt_state == HaltState.HALT_REQUESTED:
        GuardedRun.objects.filter(pk=run.row.pk).update(halt_state=HaltState.HALTED)
    reason = "external_halt" if code is RefusalCode.HALTED else code.value
    record(AuditEvent.HALTED, subject=f"run:{run.row.pk}", data={"reason": reason})
    return _refusal(code)


def _not_granted(run: LockedRun, intent: Intent, call: Call) -> Refused | None:
    code = rules.check_grant(
        run.facts, intent=intent, tool=call.tool, access=call.access, access_until=call.access_until
    )
    if code is None:
        return None
    _record_refused_call(run, intent, call, CallState.REFUSED, CallOutcomeLabel.TOOL_NOT_GRANTED)
    return _refusal(code)


def _marked(run: LockedRun, intent: Intent, call: Call) -> Refused | None:
    """Refuse a call that acts or leaves, after its models read instructions to the assistant, unless a person approved
    exactly this call: no standing approval counts, and no trusted address (ADR 107). An acting call in a run without
    any approval continues to `_not_approved`, which asks for one."""
    if not rules.needs_own_approval(run.facts, intent=intent, acting=call.acting, leaves=call.leaves):
        return None
    approval = run.facts.approval
    if approval is None and call.acting:
        return None
    if (
        approval is not None
        and rules.check_approval(run.facts, call.digest) is None
        and is_for_these_calls(approval.token)
    ):
        return None
    _record_refused_call(run, intent, call, CallState.DENIED, CallOutcomeLabel.CONTENT_MARKED)
    return _refusal(RefusalCode.CONTENT_MARKED)


def _gated(run: LockedRun, intent: Intent, call: Call, report: GateReport | None) -> Refused | None:
    if report is None:
        return None
    for event, data in report.audit:
        record(AuditEvent(event), subject=f"run:{run.row.pk}", data=data)
    if report.blocked is None:
        return None
    _record_refused_call(run, intent, call, CallState.DENIED, CallOutcomeLabel.GATE_BLOCKED)
    reason = report.blocked.reason or str(RefusalCode.GATE_BLOCKED.label)
    return Refused(RefusalCode.GATE_BLOCKED, reason, report.blocked.gate_name)


def _forbidden(run: LockedRun, intent: Intent, call: Call, policy: Policy | None) -> Refused | None:
    """Refuse a call that the policy of its intent forbids; recorded as blocked by a gate."""
    objection = policy() if policy else None
    if objection is None:
        return None
    _record_refused_call(run, intent, call, CallState.DENIED, CallOutcomeLabel.GATE_BLOCKED)
    gate, reason = objection
    return Refused(RefusalCode.GATE_BLOCKED, reason, gate)


def _leaking(run: LockedRun, intent: Intent, call: Call) -> Refused | None:
    """Refuse a reading call to another host that would leak data. Acting calls are approved by a person, values
    included."""
    if call.acting or not (call.leaves or intent in rules.OUTSIDE_INTENTS):
        return None
    code = egress.egress_refusal(call.args, call.shown)
    if code is None:
        return None
    _record_refused_call(run, intent, call, CallState.DENIED, CallOutcomeLabel(code.value))
    return _refusal(code)


def _unsafe(run: LockedRun, intent: Intent, call: Call, report: GateReport | None) -> Refused | None:
    """Refuse an acting call that the safety loop stops. Calls that only read are not put to it."""
    if not _needs_approval(call, report):
        return None
    deployment = run.row.deployment_id
    principal = f"deployment:{deployment}" if deployment else f"tenant:{run.row.tenant_id}"
    reason = judge_internal_call(
        principal, name=str(run.facts.origin), intent=Intent(intent).value, tool=call.tool, args=call.args
    )
    if not reason:
        return None
    _record_refused_call(run, intent, call, CallState.DENIED, CallOutcomeLabel.SAFETY_BLOCKED)
    return _refusal(RefusalCode.SAFETY_BLOCKED)


def _needs_approval(call: Call, report: GateReport | None) -> bool:
    return call.acting or bool(report and report.needs_approval)


def _not_approved(
    run: LockedRun, intent: Intent, call: Call, report: GateReport | None
) -> Refused | NeedsApproval | None:
    """Refuse an acting call without the run's approval, and a call whose gate requires an approval that it lacks."""
    asking = _gates_asking(call, report)
    if asking:
        _record_refused_call(run, intent, call, CallState.DENIED, CallOutcomeLabel.APPROVAL_REQUIRED)
        first = asking[0]
        return NeedsApproval(first.reason or _APPROVAL_NEEDED, first.gate_name, asking, call.args)
    code = _approval_refusal(run, call) if call.acting else None
    if code is None:
        return None
    if run.facts.approval is not None:
        _record_refused_call(run, intent, call, CallState.DENIED, CallOutcomeLabel(code.value))
        return _refusal(code)
    _record_refused_call(run, intent, call, CallState.DENIED, CallOutcomeLabel.APPROVAL_REQUIRED)
    return NeedsApproval(_APPROVAL_NEEDED)


def _gates_asking(call: Call, report: GateReport | None) -> tuple[GateResult, ...]:
    """Return the gates that want an approval of this call and do not have one."""
    holds = {"tool": call.tool, "args": dict(call.args)}
    return tuple(
        result
        for result in (report.asking if report else ())
        if not has_passed_gate(call.passes, trigger=GateTrigger.ON_TOOL_CALL, gate=result.gate_name, holds=holds)
    )


def _approval_refusal(run: LockedRun, call: Call) -> RefusalCode | None:
    """Return why the call is not approved: the run has no approval of it, or it was revoked since the run began."""
    code = rules.check_approval(run.facts, call.digest)
    approval = run.facts.approval
    if code is None and approval is not None and approval.token and is_revoked(approval.token):
        return RefusalCode.APPROVAL_VOID
    return code


def _admitted_or_over_budget(
    run: LockedRun, ref: RunRef, intent: Intent, call: Call, quoted: Quote, *, acting: bool
) -> Admitted | Refused:
    estimate = None if quoted.estimate is None else round_up(quoted.estimate)
    tokens = _tokens_of(call)
    reserved = tokens_reserved(run.row) if tokens and run.facts.limits.tokens is not None else 0
    code = rules.check_run_limits(run.facts, estimate, tokens=reserved + tokens)
    if code is not None or estimate is None:
        code = code or RefusalCode.PRICE_UNKNOWN
        return _over_budget(run, call, code, estimate or ZERO, closes=rules.run_is_exhausted(run.facts, code))
    admitted = _admission(run, ref, intent, call, estimate, acting=acting)
    admitted = replace(admitted, rates=quoted.rates)
    budgets: tuple[BudgetRow, ...] = ()
    if estimate:
        locked = lock_budgets(run, ref, estimate)
        refusing = rules.refusing_budgets(run.facts, locked.facts, estimate)
        code = rules.check_budgets(refusing, locked.platform)
        if code is not None:
            _alert_reached(refusing)
            gone = bool(locked.platform) or any(budget.paused or rules.is_exhausted(budget) for budget in refusing)
            return _over_budget(run, call, code, estimate, latch=False, closes=gone)
        budgets = locked.rows
        windows = tuple((budget.budget_id, budget.window) for budget in locked.facts)
        installations = platform_day(run.facts.now)
        admitted = replace(admitted, day=run.facts.day, platform_day=installations, windows=windows)
    return _admit(run, admitted, budgets)


def _alert_reached(refusing: Iterable[BudgetFacts]) -> None:
    """Record and alert, once in its window, that a limit has nothing left."""
    reached = [
        budget
        for budget in refusing
        if budget.alerted < LIMIT and budget.holder != Holder.VISITOR and rules.is_exhausted(budget)
    ]
    if reached:
        write_limits_reached(reached)
        send_budget_alerts(
            BudgetAlert(
                budget.budget_id,
                budget.holder,
                budget.ref,
                budget.period,
                budget.window,
                LIMIT,
                budget.spent,
                budget.limit,
            )
            for budget in reached
        )


def _quoted(intent: Intent, call: Call) -> Quote:
    """Return the estimate of this call. It is checked and reserved, and charged if the real cost remains unknown."""
    if call.forecast is not None:
        return quote(call.model, call.tool, call.forecast)
    if call.estimate is None:
        return Quote(None if intent in rules.MODEL_RUNS else ZERO)
    return Quote(call.estimate)


def _tokens_of(call: Call) -> int:
    """Return the model tokens that this call may use at most."""
    if call.forecast is None or rules.uses_no_tokens(call.model):
        return 0
    return call.forecast.input_tokens + call.forecast.output_tokens


def tokens_reserved(run: GuardedRun) -> int:
    """Return the model tokens reserved for calls of the run under way. A call that was given up keeps its
    reservation."""
    open_ones = ToolCall.objects.filter(run=run, state__in=(CallState.ADMITTED, CallState.UNCERTAIN))
    return int(open_ones.aggregate(total=Sum("tokens_reserved"))["total"] or 0)


def _over_budget(
    run: LockedRun, call: Call, code: RefusalCode, estimate: Decimal, *, latch: bool = True, closes: bool = True
) -> Refused:
    """Refuse by R4 and record its event. `latch`: the run's own cap is reached, which no new day resets. `closes`:
    nothing is left for a smaller call, which ends an unattended run."""
    latched = latch and closes and code is RefusalCode.COST_CAP_REACHED
    changes: dict[str, object] = {"cost_cap_reached": True} if latched else {}
    if closes and rules.limit_ends_run(run.facts.origin) and not call.optional:
        changes["halt_state"] = HaltState.HALTED
    if changes:
        GuardedRun.objects.filter(pk=run.row.pk).update(**changes)
    if code in _MONEY:
        data = {"reason": code.value, "projected_usd": rules.format_amount(run.facts.committed + estimate)}
        record(AuditEvent.COST_CAP_REACHED, subject=f"run:{run.row.pk}", data=data)
    else:
        record(AuditEvent.BUDGET_REACHED, subject=f"run:{run.row.pk}", data={"reason": code.value})
    return replace(_refusal(code), too_large=not closes)


def _admission(
    run: LockedRun,
    ref: RunRef,
    intent: Intent,
    call: Call,
    estimate: Decimal,
    *,
    acting: bool,
) -> Admitted:
    """Return the call as admitted. An approved call has the approval's own effect key, so that it starts only once."""
    call_id = uuid4()
    approval = run.facts.approval if acting else None
    return Admitted(
        call_id=call_id,
        run=ref,
        deployment_id=run.row.deployment_id,
        seq=run.row.seq + 1,
        intent=intent,
        call=replace(call, patience_seconds=rules.call_timeout(run.facts, call.patience_seconds)),
        acting=acting,
        effect_key=f"{approval.nonce}:{call.digest}" if approval else str(call_id),
        reserved=estimate,
        budget_refs=run.budget_refs,
    )


def _admit(run: LockedRun, admitted: Admitted, budgets: Sequence[BudgetRow]) -> Admitted | Refused:
    if write_admission(admitted, budgets, tokens=_tokens_of(admitted.call)):
        record_call(admitted, CallOutcomeLabel.STARTED)
        # If the process dies before here, the call was never admitted: the COMMIT follows.
        fault_points.reach("guard.admitted")
        return admitted
    first = ToolCall.objects.get(effect_key=admitted.effect_key)
    done = first.state == CallState.EXECUTED
    code = RefusalCode.APPROVAL_SPENT if done else RefusalCode.EFFECT_UNCERTAIN
    _record_refused_call(run, admitted.intent, admitted.call, CallState.DENIED, CallOutcomeLabel(code.value))
    return _refusal(code)


def record_call(admitted: Admitted, outcome: CallOutcomeLabel, *, charged: Decimal | None = None) -> None:
    """Record a `tool_call` in the audit log."""
    # The digest of arguments is recorded for approved calls only, where it proves what was approved: the arguments
    # could be guessed from the digest of short ones.
    data: dict[str, object] = {"intent": admitted.intent.value, "outcome": outcome.value, "seq": admitted.seq}
    if admitted.acting:
        data["digest"] = admitted.call.digest
    if charged is not None:
        data["cost_usd"] = rules.format_amount(charged)
    record(AuditEvent.TOOL_CALL, subject=f"run:{admitted.run.run_id}", data=data)


def _record_refused_call(
    run: LockedRun, intent: Intent, call: Call, state: CallState, outcome: CallOutcomeLabel
) -> None:
    """Record a call that was not admitted: a row and an audit entry. It counts towards no limit."""
    seq = run.row.seq + 1
    GuardedRun.objects.filter(pk=run.row.pk).update(seq=seq)
    ToolCall.objects.create(
        run=run.row,
        seq=seq,
        effect_key=str(uuid4()),
        intent=intent,
        tool=call.tool[:120],
        args_digest=call.digest,
        state=state,
        error_code=outcome.value,
    )
    data = {"intent": Intent(intent).value, "outcome": outcome.value, "seq": seq}
    record(AuditEvent.TOOL_CALL, subject=f"run:{run.row.pk}", data=data)


def _refusal(code: RefusalCode) -> Refused:
    return Refused(code, str(code.label))


def with_gate_arguments(call: Call, report: GateReport) -> Call:
    """Return the call with the arguments as its gates left them. If they changed them, the digest and with it the
    needed approval are different."""
    args = report.context.get("tool_args", call.args)
    return call if args == call.args else replace(call, args=args)
