"""Decide whether a call is admitted: R5 → R6 → marks → gates → safety → approval → R4, in one short transaction.

Runs under the run's row lock inside the caller's scope. A refusal is committed too, with everything that it changes and
records, so a caller that ignores it or fails later loses nothing (contract autonomy A4, C, D).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from uuid import uuid4

from django.db.models import Sum

from apps.approvals.queries import is_for_these_calls, is_revoked
from apps.approvals.tokens.payloads import has_passed_gate
from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.gates.enums import GateTrigger
from apps.gates.schemas import GateReport
from apps.guard import egress, rules
from apps.guard.enums import CallOutcomeLabel, CallState, HaltState, Holder, Intent, RefusalCode, SpendKind
from apps.guard.estimates import Quote, quote, round_up
from apps.guard.ledger import OPEN_CALL, send_alerts, write_call
from apps.guard.locks import LockedRun, lock_budgets, lock_run, platform_day
from apps.guard.models import Budget, GuardedRun, ToolCall
from apps.guard.schemas import ZERO, Admitted, BudgetFacts, Call, NeedsApproval, Refused, RunFacts, RunRef
from apps.safety.services import judge_internal_call
from kernel import fault_points
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError

# Returns why a call is forbidden, as a code and a sentence, or None.
Policy = Callable[[], tuple[str, str] | None]
_APPROVAL_NEEDED = "A person has to approve this first."
_MONEY = frozenset({RefusalCode.COST_CAP_REACHED, RefusalCode.GLOBAL_DAILY, RefusalCode.GLOBAL_MONTHLY})
# How long after a call's timeout it counts as lost: time for its settlement to arrive.
_GRACE_SECONDS = 60


def admit(run: RunRef, intent: Intent, call: Call) -> Admitted | Refused | NeedsApproval:
    """Admit a model run, which its caller makes itself and then settles. Inside the caller's scope; a refusal is
    recorded when that scope commits. Tools go through `guarded_call`."""
    if intent not in rules.MODEL_RUNS:
        raise SilasError(ErrorCode.NOT_A_MODEL_RUN)
    return admit_call(run, intent, call)


def precheck(ref: RunRef, intent: Intent, call: Call) -> Refused | None:
    """Check R5 and R6 before gates run, so that a stopped run starts no script. Records a refusal."""
    return _check_brakes(*lock_run(ref), intent, call)


def record_unoffered_tool(ref: RunRef, intent: Intent, tool: str) -> None:
    """Record that a model asked for a tool that it was not offered. Nothing is carried out."""
    row, _ = lock_run(ref)
    # The name is a model's own text and is stored: only what a tool's name may hold, and no more than its column does.
    call = Call(tool=re.sub(r"[^\w.-]", "_", tool[:120]))
    _record_refused_call(row, intent, call, CallState.REFUSED, RefusalCode.TOOL_NOT_GRANTED)


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
    report = report or GateReport()
    acting = call.acting or bool(report.asking)
    if call.forecast is not None:
        quoted = quote(call.model, call.tool, call.forecast)
    else:
        quoted = Quote(ZERO if call.estimate is None and intent not in rules.MODEL_RUNS else call.estimate)
    row, facts = lock_run(ref)
    return (
        _check_brakes(row, facts, intent, call)
        or _check_consent(row, facts, intent, call, report, policy, acting=acting)
        or _reserve(row, facts, ref, intent, call, quoted, acting=acting)
    )


def _check_brakes(row: LockedRun, facts: RunFacts, intent: Intent, call: Call) -> Refused | None:
    """R5 and R6."""
    if code := rules.check_running(facts):
        # This refusal is where the run notices the request, which completes the halt.
        if row.halt_state == HaltState.HALT_REQUESTED:
            GuardedRun.objects.filter(pk=row.pk).update(halt_state=HaltState.HALTED)
        reason = "external_halt" if code is RefusalCode.HALTED else code.value
        record(AuditEvent.HALTED, subject=f"run:{row.pk}", data={"reason": reason})
        return _refusal(code)
    if code := rules.check_grant(
        facts, intent=intent, tool=call.tool, access=call.access, access_until=call.access_until
    ):
        _record_refused_call(row, intent, call, CallState.REFUSED, code)
        return _refusal(code)
    return None


def _check_consent(
    row: LockedRun,
    facts: RunFacts,
    intent: Intent,
    call: Call,
    report: GateReport,
    policy: Policy | None,
    *,
    acting: bool,
) -> Refused | NeedsApproval | None:
    """Marks, the intent's policy, gates, egress, safety and approval: what people and the company's rules decide."""

    def deny(code: RefusalCode, reason: str = "", gate: str | None = None) -> Refused:
        _record_refused_call(row, intent, call, CallState.DENIED, code)
        return Refused(code, reason or str(code.label), gate)

    approval = facts.approval
    is_approved = approval is not None and rules.check_approval(facts, call.digest) is None
    # No standing approval counts after the models read instructions to the assistant, and no trusted address.
    # An acting call in a run without any approval is refused below, where a person is asked for one.
    if rules.needs_own_approval(facts, intent=intent, acting=call.acting, leaves=call.leaves) and not (
        is_approved and is_for_these_calls(approval.token) if approval else call.acting
    ):
        return deny(RefusalCode.CONTENT_MARKED)
    if objection := policy() if policy else None:
        return deny(RefusalCode.GATE_BLOCKED, objection[1], objection[0])
    for event, data in report.audit:
        record(AuditEvent(event), subject=f"run:{row.pk}", data=data)
    if report.blocked is not None:
        return deny(RefusalCode.GATE_BLOCKED, report.blocked.reason, report.blocked.gate_name)
    # A person approves acting calls, values included; what a reading call sends to another host is decided here.
    is_sending = not call.acting and (call.leaves or intent in rules.OUTSIDE_INTENTS)
    if is_sending and (code := egress.egress_refusal(call.args, call.shown)):
        return deny(code)
    principal = f"deployment:{row.deployment_id}" if row.deployment_id else f"tenant:{row.tenant_id}"
    if acting and judge_internal_call(
        principal, name=str(facts.origin), intent=Intent(intent).value, tool=call.tool, args=call.args
    ):
        return deny(RefusalCode.SAFETY_BLOCKED)
    holds = {"tool": call.tool, "args": dict(call.args)}
    asking = tuple(
        result
        for result in report.asking
        if not has_passed_gate(call.passes, trigger=GateTrigger.ON_TOOL_CALL, gate=result.gate_name, holds=holds)
    )
    if asking or (call.acting and approval is None):
        _record_refused_call(row, intent, call, CallState.DENIED, CallOutcomeLabel.APPROVAL_REQUIRED)
        if asking:
            return NeedsApproval(asking[0].reason or _APPROVAL_NEEDED, asking[0].gate_name, asking, call.args)
        return NeedsApproval(_APPROVAL_NEEDED)
    if call.acting and not is_approved:
        return deny(RefusalCode.APPROVAL_MISSING)
    # A run keeps the approval that it was opened with; a token that was revoked since then must not act.
    if call.acting and approval and approval.token and is_revoked(approval.token):
        return deny(RefusalCode.APPROVAL_VOID)
    return None


def _reserve(
    row: LockedRun, facts: RunFacts, ref: RunRef, intent: Intent, call: Call, quoted: Quote, *, acting: bool
) -> Admitted | Refused:
    """R4: check the run's limits and every budget, then open the call with its price and model tokens reserved."""
    estimate = None if quoted.estimate is None else round_up(quoted.estimate)
    tokens = 0
    if call.forecast is not None and not rules.uses_no_tokens(call.model):
        tokens = call.forecast.input_tokens + call.forecast.output_tokens
    under_way = 0
    if tokens and facts.limits.tokens is not None:
        # A call that was given up keeps its reservation.
        open_calls = ToolCall.objects.filter(run_id=row.pk, state__in=(CallState.ADMITTED, CallState.UNCERTAIN))
        under_way = open_calls.aggregate(total=Sum("tokens_reserved"))["total"] or 0
    code = rules.check_run_limits(facts, estimate, tokens=under_way + tokens)
    if code is not None or estimate is None:
        code = code or RefusalCode.PRICE_UNKNOWN
        return _over_budget(row, facts, call, code, estimate or ZERO, closes=rules.run_is_exhausted(facts, code))

    # The holders of the budgets that pay.
    refs = tuple(filter(None, (row.tenant_id, row.deployment_id, row.task_ref, ref.visitor)))
    budgets: list[BudgetFacts] = []
    if estimate:
        budgets, platform = lock_budgets(
            refs, estimate, day=facts.day, visitor=ref.visitor, visitor_limit=row.visitor_daily_usd
        )
        refusing = rules.refusing_budgets(facts, budgets, estimate)
        if code := rules.check_budgets(refusing, platform):
            _record_limits_reached(refusing)
            gone = bool(platform) or any(budget.is_paused or rules.is_exhausted(budget) for budget in refusing)
            return _over_budget(row, facts, call, code, estimate, latch=False, closes=gone)

    call_id, approval = uuid4(), facts.approval if acting else None
    admitted = Admitted(
        call_id=call_id,
        run=ref,
        deployment_id=row.deployment_id,
        seq=row.seq + 1,
        intent=intent,
        call=replace(call, patience_seconds=rules.call_timeout(facts, call.patience_seconds)),
        acting=acting,
        # An approved call has the approval's own effect key, so that it starts only once.
        effect_key=f"{approval.nonce}:{call.digest}" if approval else str(call_id),
        reserved=estimate,
        day=facts.day if estimate else None,
        platform_day=platform_day(facts.now) if estimate else None,
        budget_refs=refs,
        rates=quoted.rates,
        windows=tuple((budget.budget_id, budget.window) for budget in budgets),
    )
    values = {
        "seq": admitted.seq,
        "effect_key": admitted.effect_key,
        "digest": call.digest,
        "tokens": tokens,
        "patience": admitted.call.patience_seconds + _GRACE_SECONDS,
    }
    # The unique effect key decides between two calls with one approval, not a read before it: both could read nothing.
    if write_call(OPEN_CALL, values, admitted, SpendKind.RESERVE, budgets):
        record_call(admitted, CallOutcomeLabel.STARTED)
        # If the process dies before here, the call was never admitted: the COMMIT follows.
        fault_points.reach("guard.admitted")
        return admitted
    # The approval has started a call before. If that one's end is unknown, it must not be repeated either.
    is_done = ToolCall.objects.get(effect_key=admitted.effect_key).state == CallState.EXECUTED
    code = RefusalCode.APPROVAL_SPENT if is_done else RefusalCode.EFFECT_UNCERTAIN
    _record_refused_call(row, intent, call, CallState.DENIED, code)
    return _refusal(code)


def _record_limits_reached(refusing: list[BudgetFacts]) -> None:
    """Record and alert, once in its window, that a limit has nothing left, which pauses what the tenant chose."""
    for budget in refusing:
        if budget.alerted < rules.LIMIT and budget.holder != Holder.VISITOR and rules.is_exhausted(budget):
            reached = replace(budget, alerted=rules.LIMIT)
            Budget.objects.filter(pk=budget.budget_id).update(
                reserved=budget.reserved,
                spent=budget.spent,
                alerted=rules.LIMIT,
                paused_in=budget.window,
                window_start=budget.window,
            )
            send_alerts(reached, above=rules.NEARLY_ALL)


def _over_budget(
    row: LockedRun,
    facts: RunFacts,
    call: Call,
    code: RefusalCode,
    estimate: Decimal,
    *,
    latch: bool = True,
    closes: bool = True,
) -> Refused:
    """Refuse by R4 and record its event. `latch`: the run's own cap is reached, which no new day resets. `closes`:
    nothing is left for a smaller call, which ends an unattended run."""
    latched = latch and closes and code is RefusalCode.COST_CAP_REACHED
    changes: dict[str, object] = {"cost_cap_reached": True} if latched else {}
    if closes and rules.limit_ends_run(facts.origin) and not call.optional:
        changes["halt_state"] = HaltState.HALTED
    if changes:
        GuardedRun.objects.filter(pk=row.pk).update(**changes)
    event, data = AuditEvent.BUDGET_REACHED, {"reason": code.value}
    if code in _MONEY:
        event, data["projected_usd"] = AuditEvent.COST_CAP_REACHED, rules.format_amount(facts.committed + estimate)
    record(event, subject=f"run:{row.pk}", data=data)
    return replace(_refusal(code), too_large=not closes)


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
    row: LockedRun, intent: Intent, call: Call, state: CallState, outcome: RefusalCode | CallOutcomeLabel
) -> None:
    """Record a call that was not admitted: a row and an audit entry. It counts towards no limit."""
    seq = row.seq + 1
    GuardedRun.objects.filter(pk=row.pk).update(seq=seq)
    ToolCall.objects.create(
        run_id=row.pk,
        seq=seq,
        effect_key=str(uuid4()),
        intent=intent,
        tool=call.tool[:120],
        args_digest=call.digest,
        state=state,
        error_code=outcome.value,
    )
    data = {"intent": Intent(intent).value, "outcome": outcome.value, "seq": seq}
    record(AuditEvent.TOOL_CALL, subject=f"run:{row.pk}", data=data)


def _refusal(code: RefusalCode) -> Refused:
    return Refused(code, str(code.label))
