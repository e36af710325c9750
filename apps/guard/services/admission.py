"""R5 → R6 → marks → gates → safety → approval → R4 → admit: one short transaction, in which a refusal is committed too.

Runs under the run's row lock inside the caller's scope. What a brake changes and writes down is in the same transaction
as the answer, so a caller that ignores a refusal, or fails later, loses nothing (contract autonomy A4, C, D).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from decimal import Decimal
from uuid import uuid4

from django.db.models import Sum

from apps.approvals.payloads import let_through
from apps.approvals.queries import is_for_these_calls, is_void
from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.gates.enums import GateTrigger
from apps.gates.schemas import GateReport, GateResult
from apps.guard import rules, sending
from apps.guard.alerts import tell
from apps.guard.enums import CallOutcomeLabel, CallState, HaltState, Holder, Intent, RefusalCode
from apps.guard.estimates import Quote, quote, rounded
from apps.guard.ledger import write_admission, write_reached
from apps.guard.locks import LockedRun, lock_budgets, lock_run, platform_day
from apps.guard.models import GuardedRun, ToolCall
from apps.guard.rules import LIMIT
from apps.guard.schemas import ZERO, Admitted, BudgetAlert, BudgetFacts, BudgetRow, Call, NeedsApproval, Refused, RunRef
from apps.safety.services import judge_internal_call
from kernel import fault_points

# In a code and a sentence, or None.
Policy = Callable[[], tuple[str, str] | None]
_ASK_A_PERSON = "A person has to approve this first."
_MONEY = frozenset({RefusalCode.COST_CAP_REACHED, RefusalCode.GLOBAL_DAILY, RefusalCode.GLOBAL_MONTHLY})


def knock(ref: RunRef, intent: Intent, call: Call) -> Refused | None:
    """R5 and R6 alone, before gates may run: a stopped run starts no script. Writes the refusal down."""
    run = lock_run(ref)
    return _stopped(run) or _not_granted(run, intent, call)


def refuse_wish(ref: RunRef, intent: Intent, tool: str) -> None:
    """A model asked for a tool that it was not offered: nothing is done, and the wish leaves its row and its entry."""
    named = re.sub(r"[^\w.-]", "_", tool[:120])
    _write_no(lock_run(ref), intent, Call(tool=named), CallState.REFUSED, CallOutcomeLabel.TOOL_NOT_GRANTED)


def admit_call(
    ref: RunRef,
    intent: Intent,
    call: Call,
    report: GateReport | None = None,
    *,
    policy: Policy | None = None,
) -> Admitted | Refused | NeedsApproval:
    """Decide in the contract's order, and reserve. `report` is what the call's gates said, if it has any;
    `policy`: what the room that carries the intent out may have against it."""
    acting, quoted = _needs_yes(call, report), _quoted(intent, call)
    run = lock_run(ref)
    return (
        _stopped(run)
        or _not_granted(run, intent, call)
        or _lowered(run, intent, call)
        or _forbidden(run, intent, call, policy)
        or _gated(run, intent, call, report)
        or _gives_away(run, intent, call)
        or _unsafe(run, intent, call, report)
        or _not_approved(run, intent, call, report)
        or _admitted_or_over_budget(run, ref, intent, call, quoted, acting=acting)
    )


def _stopped(run: LockedRun) -> Refused | None:
    code = rules.r5(run.facts)
    if code is None:
        return None
    if run.row.halt_state == HaltState.HALT_REQUESTED:
        GuardedRun.objects.filter(pk=run.row.pk).update(halt_state=HaltState.HALTED)
    reason = "external_halt" if code is RefusalCode.HALTED else code.value
    record(AuditEvent.HALTED, subject=f"run:{run.row.pk}", data={"reason": reason})
    return _refusal(code)


def _not_granted(run: LockedRun, intent: Intent, call: Call) -> Refused | None:
    code = rules.r6(run.facts, intent=intent, tool=call.tool, access=call.access, access_until=call.access_until)
    if code is None:
        return None
    _write_no(run, intent, call, CallState.REFUSED, CallOutcomeLabel.TOOL_NOT_GRANTED)
    return _refusal(code)


def _lowered(run: LockedRun, intent: Intent, call: Call) -> Refused | None:
    """After its models read instructions to the assistant, what acts or leaves needs a person's approval of exactly
    this call: no standing one counts, and no address that the customer or the company named (ADR 107). What acts in a
    run without any approval is put before a person as ever."""
    if not rules.is_lowered(run.facts, intent=intent, acting=call.acting, leaves=call.leaves):
        return None
    given = run.facts.approval
    if given is None and call.acting:
        return None
    if given is not None and rules.approval(run.facts, call.digest) is None and is_for_these_calls(given.token):
        return None
    _write_no(run, intent, call, CallState.DENIED, CallOutcomeLabel.CONTENT_MARKED)
    return _refusal(RefusalCode.CONTENT_MARKED)


def _gated(run: LockedRun, intent: Intent, call: Call, report: GateReport | None) -> Refused | None:
    if report is None:
        return None
    for event, data in report.audit:
        record(AuditEvent(event), subject=f"run:{run.row.pk}", data=data)
    if report.blocked is None:
        return None
    _write_no(run, intent, call, CallState.DENIED, CallOutcomeLabel.GATE_BLOCKED)
    reason = report.blocked.reason or str(RefusalCode.GATE_BLOCKED.label)
    return Refused(RefusalCode.GATE_BLOCKED, reason, report.blocked.gate_name)


def _forbidden(run: LockedRun, intent: Intent, call: Call, policy: Policy | None) -> Refused | None:
    """Written down as a gate's no; nothing is reserved for it."""
    said = policy() if policy else None
    if said is None:
        return None
    _write_no(run, intent, call, CallState.DENIED, CallOutcomeLabel.GATE_BLOCKED)
    return Refused(RefusalCode.GATE_BLOCKED, said[1], said[0])


def _gives_away(run: LockedRun, intent: Intent, call: Call) -> Refused | None:
    """A read that goes to another host is an act of sending. What acts is approved with its values before people."""
    if call.acting or not (call.leaves or intent in rules.OUTSIDE):
        return None
    code = sending.refusal(call.args, call.shown)
    if code is None:
        return None
    _write_no(run, intent, call, CallState.DENIED, CallOutcomeLabel(code.value))
    return _refusal(code)


def _unsafe(run: LockedRun, intent: Intent, call: Call, report: GateReport | None) -> Refused | None:
    """The safety loop is asked about what acts, and stops it; a pause is the approval's own business, one prompt for
    one action. What only reads is not asked about."""
    if not _needs_yes(call, report):
        return None
    chatbot = run.row.deployment_id
    principal = f"deployment:{chatbot}" if chatbot else f"tenant:{run.row.tenant_id}"
    why = judge_internal_call(
        principal, name=str(run.facts.origin), intent=Intent(intent).value, tool=call.tool, args=call.args
    )
    if not why:
        return None
    _write_no(run, intent, call, CallState.DENIED, CallOutcomeLabel.SAFETY_BLOCKED)
    return _refusal(RefusalCode.SAFETY_BLOCKED)


def _needs_yes(call: Call, report: GateReport | None) -> bool:
    return call.acting or bool(report and report.needs_approval)


def _not_approved(
    run: LockedRun, intent: Intent, call: Call, report: GateReport | None
) -> Refused | NeedsApproval | None:
    """What acts needs the run's approval; a gate that asks needs a person who has let exactly this call through it."""
    asking = _still_asking(call, report)
    if asking:
        _write_no(run, intent, call, CallState.DENIED, CallOutcomeLabel.APPROVAL_REQUIRED)
        first = asking[0]
        return NeedsApproval(first.reason or _ASK_A_PERSON, first.gate_name, asking, call.args)
    code = _approval_lacks(run, call) if call.acting else None
    if code is None:
        return None
    if run.facts.approval is not None:
        _write_no(run, intent, call, CallState.DENIED, CallOutcomeLabel(code.value))
        return _refusal(code)
    _write_no(run, intent, call, CallState.DENIED, CallOutcomeLabel.APPROVAL_REQUIRED)
    return NeedsApproval(_ASK_A_PERSON)


def _still_asking(call: Call, report: GateReport | None) -> tuple[GateResult, ...]:
    """The gates that want a person to look, and for which nobody has."""
    holds = {"tool": call.tool, "args": dict(call.args)}
    return tuple(
        result
        for result in (report.asking if report else ())
        if not let_through(call.passes, trigger=GateTrigger.ON_TOOL_CALL, gate=result.gate_name, holds=holds)
    )


def _approval_lacks(run: LockedRun, call: Call) -> RefusalCode | None:
    """Nobody said yes to exactly this, or the yes was taken back since the run began."""
    code = rules.approval(run.facts, call.digest)
    given = run.facts.approval
    if code is None and given is not None and given.token and is_void(given.token):
        return RefusalCode.APPROVAL_VOID
    return code


def _admitted_or_over_budget(
    run: LockedRun, ref: RunRef, intent: Intent, call: Call, quoted: Quote, *, acting: bool
) -> Admitted | Refused:
    estimate = None if quoted.estimate is None else rounded(quoted.estimate)
    tokens = _tokens_of(call)
    reserved = tokens_reserved(run.row) if tokens and run.facts.limits.tokens is not None else 0
    code = rules.r4_run(run.facts, estimate, tokens=reserved + tokens)
    if code is not None or estimate is None:
        code = code or RefusalCode.PRICE_UNKNOWN
        return _over_budget(run, call, code, estimate or ZERO, closes=rules.is_used_up(run.facts, code))
    admitted = _admission(run, ref, intent, call, estimate, acting=acting)
    admitted = replace(admitted, rates=quoted.rates)
    budgets: tuple[BudgetRow, ...] = ()
    if estimate:
        locked = lock_budgets(run, ref, estimate)
        refusing = rules.breached(run.facts, locked.facts, estimate)
        code = rules.r4_budgets(refusing, locked.platform)
        if code is not None:
            _tell_reached(refusing)
            gone = bool(locked.platform) or any(each.paused or rules.is_reached(each) for each in refusing)
            return _over_budget(run, call, code, estimate, latch=False, closes=gone)
        budgets = locked.rows
        windows = tuple((budget.budget_id, budget.window) for budget in locked.facts)
        installations = platform_day(run.facts.now)
        admitted = replace(admitted, day=run.facts.day, platform_day=installations, windows=windows)
    return _admit(run, admitted, budgets)


def _tell_reached(refusing: Iterable[BudgetFacts]) -> None:
    """A limit that has nothing left for anybody is reached: noted and told once in its window."""
    untold = (each for each in refusing if each.told < LIMIT and each.holder != Holder.VISITOR)
    reached = [each for each in untold if rules.is_reached(each)]
    if reached:
        write_reached(reached)
        tell(
            BudgetAlert(each.budget_id, each.holder, each.ref, each.period, each.window, LIMIT, each.spent, each.limit)
            for each in reached
        )


def _quoted(intent: Intent, call: Call) -> Quote:
    """The one estimate of this call: checked, reserved, and charged where nobody can say what it really cost."""
    if call.forecast is not None:
        return quote(call.model, call.tool, call.forecast)
    if call.estimate is None:
        return Quote(None if intent in rules.MODEL_RUNS else ZERO)
    return Quote(call.estimate)


def _tokens_of(call: Call) -> int:
    """The model tokens that this call may use at most."""
    if call.forecast is None or rules.reads_nothing(call.model):
        return 0
    return call.forecast.input_tokens + call.forecast.output_tokens


def tokens_reserved(run: GuardedRun) -> int:
    """What calls of the run that are under way may still use. One that was given up keeps its reservation, as it keeps
    its money."""
    open_ones = ToolCall.objects.filter(run=run, state__in=(CallState.ADMITTED, CallState.UNCERTAIN))
    return int(open_ones.aggregate(total=Sum("tokens_reserved"))["total"] or 0)


def _over_budget(
    run: LockedRun, call: Call, code: RefusalCode, estimate: Decimal, *, latch: bool = True, closes: bool = True
) -> Refused:
    """Latch where the run's own cap is reached, which no new day lifts; end the run if it works alone; write down R4's
    own event. A call that is too large for what is left is refused, and changes nothing else (`closes` False)."""
    latched = latch and closes and code is RefusalCode.COST_CAP_REACHED
    changes: dict[str, object] = {"cost_cap_reached": True} if latched else {}
    if closes and rules.ends_run(run.facts.origin) and not call.optional:
        changes["halt_state"] = HaltState.HALTED
    if changes:
        GuardedRun.objects.filter(pk=run.row.pk).update(**changes)
    if code in _MONEY:
        data = {"reason": code.value, "projected_usd": rules.plain(run.facts.committed + estimate)}
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
    """The call as it is admitted. What carries an approval has the approval's own effect key, so it begins once."""
    call_id = uuid4()
    approval = run.facts.approval if acting else None
    return Admitted(
        call_id=call_id,
        run=ref,
        deployment_id=run.row.deployment_id,
        seq=run.row.seq + 1,
        intent=intent,
        call=replace(call, patience_seconds=rules.patience(run.facts, call.patience_seconds)),
        acting=acting,
        effect_key=f"{approval.nonce}:{call.digest}" if approval else str(call_id),
        reserved=estimate,
        spends_from=run.spends_from,
    )


def _admit(run: LockedRun, admitted: Admitted, budgets: Sequence[BudgetRow]) -> Admitted | Refused:
    if write_admission(admitted, budgets, tokens=_tokens_of(admitted.call)):
        record_call(admitted, CallOutcomeLabel.STARTED)
        # The last moment at which a process can die and the call was never admitted: behind it lies the COMMIT.
        fault_points.reach("guard.admitted")
        return admitted
    first = ToolCall.objects.get(effect_key=admitted.effect_key)
    done = first.state == CallState.EXECUTED
    code = RefusalCode.APPROVAL_SPENT if done else RefusalCode.EFFECT_UNCERTAIN
    _write_no(run, admitted.intent, admitted.call, CallState.DENIED, CallOutcomeLabel(code.value))
    return _refusal(code)


def record_call(admitted: Admitted, outcome: CallOutcomeLabel, *, charged: Decimal | None = None) -> None:
    """One `tool_call` row of the audit log."""
    # The digest of arguments is in it for approved calls only, where it proves what was approved; from a digest of
    # short arguments the arguments could be guessed.
    data: dict[str, object] = {"intent": admitted.intent.value, "outcome": outcome.value, "seq": admitted.seq}
    if admitted.acting:
        data["digest"] = admitted.call.digest
    if charged is not None:
        data["cost_usd"] = rules.plain(charged)
    record(AuditEvent.TOOL_CALL, subject=f"run:{admitted.run.run_id}", data=data)


def _write_no(run: LockedRun, intent: Intent, call: Call, state: CallState, outcome: CallOutcomeLabel) -> None:
    """A call that was never admitted leaves its row and one audit entry, and counts for no limit."""
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


def rewritten(call: Call, report: GateReport) -> Call:
    """The call with the arguments that its gates left: another digest, so another approval, if they changed them."""
    args = report.context.get("tool_args", call.args)
    return call if args == call.args else replace(call, args=args)
