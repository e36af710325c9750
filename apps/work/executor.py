"""Carry out an approved item: one attempt after another until the independent checks pass or the budget is used up.

Slow and outside of every transaction: the model, the tools, the sandboxes. Short scopes begin and conclude an attempt
(`services.attempts`). `execute` handles `execution_request`, in a worker (spec 5.2.1).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from apps.bus import deadlines
from apps.bus.deliveries import Delivery
from apps.gates.allowance import Allowance
from apps.gates.enums import GateTrigger
from apps.gates.schemas import AuditNote, GateResult
from apps.gates.services import check_gates
from apps.guard import services as guard
from apps.guard.enums import Intent, RefusalCode
from apps.guard.schemas import Admitted, Call, Refused
from apps.work import attempt_jobs, outside_verification, rules
from apps.work.attempt_jobs import AttemptJob
from apps.work.budgets import BudgetUsed
from apps.work.checks import check_rounds
from apps.work.enums import WorkReason
from apps.work.ledger import EffectUncertain, Ledger
from apps.work.meter import BudgetExhausted, Meter
from apps.work.schemas import VerificationReport
from apps.work.services import attempts
from apps.work.services.attempts import AttemptOutcome
from apps.work.step_gates import ReviewRequired, StepGates, StepStopped
from apps.work.verification import run_checks
from kernel import fault_points, tracing
from kernel.provenance import Origin, Source, Traced, as_text
from kernel.tenancy import in_scope
from kernel.tracing import SpanName
from llm.agents import AgentRun, Limits, run_executor
from llm.loading import loaded
from llm.pricing import estimate_usage
from llm.schemas import ExecutorAgentOutput

_LIMITS = Limits(requests=24, tool_calls=24)
# A worker that exceeds its item's time by this much, or spends this long on checks, is considered hung and is ended.
_GRACE_SECONDS, _VERIFICATION_SECONDS = 60.0, 1800.0


async def execute(delivery: Delivery) -> None:
    """Handle one `execution_request`: make attempts until the item is over or waits."""
    fault_points.reach("work.leased")
    while not await _attempt(delivery):
        pass


async def _attempt(delivery: Delivery) -> bool:
    """Make one attempt; True when the delivery is over."""
    job = await in_scope(delivery.tenant_id, attempt_jobs.next_job, delivery)
    if job is None:
        return True
    fault_points.reach("work.begun")
    outcome = await _run_attempt(job)
    over = await in_scope(delivery.tenant_id, attempts.conclude_attempt, delivery, job.attempt, outcome)
    fault_points.reach("work.after_ack")
    return over


async def _run_attempt(job: AttemptJob) -> AttemptOutcome:
    meter, ledger = Meter(job.spec.budget, job.used), Ledger(job.earlier_results, job.files)
    effects = frozenset(tool.name for tool in job.offered if tool.acting or tool.leaves)
    steps = StepGates(job.gates, _allowances(job), job.passes, effects)
    deadlines.set_deadline(meter.seconds_left + _GRACE_SECONDS)
    outcome = await _run_agent(job, ledger, meter, steps)
    deadlines.set_deadline(_VERIFICATION_SECONDS)
    outcome = replace(outcome, notes=(*steps.notes, *outcome.notes))
    if outcome.review is None and outcome.stop in (WorkReason.NONE, WorkReason.UNCERTAIN):
        with tracing.span(SpanName.VERIFICATION) as span:
            outcome = await _verify(job, ledger, outcome)
            if outcome.report is not None:
                span.set(checks=len(outcome.report.results), passed=outcome.report.all_passed)
    used = outcome.used.merge(BudgetUsed(wall_time_seconds=meter.seconds))
    outcome = replace(
        outcome, used=used, artifacts=tuple(ledger.artifacts), result=ledger.messages, lines=tuple(ledger.lines)
    )
    # Gates may run scripts and models, which would hold the event loop.
    return await asyncio.to_thread(_filter_messages, job, outcome, _allowances(job))


async def _run_agent(job: AttemptJob, ledger: Ledger, meter: Meter, steps: StepGates) -> AttemptOutcome:
    """Steps b to c: one model run between admit and settle, its tools guarded, within the remaining budget."""
    call = Call(tool="executor", forecast=estimate_usage(job.briefing), model=job.model_name)
    admitted = await in_scope(job.tenant_id, guard.admit, job.run, Intent.CONVERSE, call)
    if not isinstance(admitted, Admitted):
        code = admitted.code if isinstance(admitted, Refused) else RefusalCode.APPROVAL_MISSING
        return AttemptOutcome("", BudgetUsed(), error=code.value, stop=rules.stop_reason_for(code))
    try:
        run = await meter.in_time(_call_model(job, ledger, meter, steps))
    # Not repeated: whether the call took effect is unknown.
    except EffectUncertain:
        return await _cut_short(job, admitted, "effect_uncertain", WorkReason.UNCERTAIN)
    except ReviewRequired as wanted:
        outcome = await _cut_short(job, admitted, "person_wanted", WorkReason.NONE)
        asking = {result.gate_name for result in wanted.review.asking}
        named = [gate.wait_seconds for gate in job.gates if gate.name in asking and gate.wait_seconds]
        return replace(outcome, review=replace(wanted.review, seconds=min(named, default=None)))
    except StepStopped as stopped:
        return await _cut_short(job, admitted, f"gate {stopped.gate}", WorkReason.GATE)
    except BudgetExhausted as gone:
        return await _cut_short(job, admitted, f"{WorkReason.BUDGET.value} {gone.counter}", WorkReason.NONE)
    return await _charge(job, admitted, run)


async def _call_model(job: AttemptJob, ledger: Ledger, meter: Meter, steps: StepGates) -> AgentRun[ExecutorAgentOutput]:
    context = {**job.context, "elapsed": ledger.elapsed}
    await loaded()
    from apps.work.work_toolset import WorkToolset

    toolset = WorkToolset(
        job.run,
        job.offered,
        job.access,
        job.gates,
        context,
        ledger=ledger,
        meter=meter,
        allowance=steps.allowances,
        steps=steps,
        asked=tuple(Source(Traced(Origin.AUTHOR), as_text(call.args)) for call in job.spec.calls),
        passes=job.passes,
    )
    # What is left for this attempt, so that one run cannot use the budget of all.
    limits = replace(_LIMITS, total_tokens=meter.tokens_left)
    key = job.keys.of(job.model_name)
    return await run_executor(job.model_name, job.briefing, toolset=toolset.chained(), key=key, limits=limits)


async def _cut_short(job: AttemptJob, admitted: Admitted, error: str, stop: WorkReason) -> AttemptOutcome:
    """Settle with the estimate: what the model had used by then is not known."""
    await in_scope(job.tenant_id, guard.settle, admitted, cost=None, failed=error.split()[0])
    return AttemptOutcome("", BudgetUsed(), error=error, stop=stop)


async def _charge(job: AttemptJob, admitted: Admitted, run: AgentRun[ExecutorAgentOutput]) -> AttemptOutcome:
    usage = run.usage
    charged = await in_scope(job.tenant_id, guard.charge, admitted, usage)
    return AttemptOutcome(
        summary=run.output.summary,
        used=BudgetUsed(tokens=usage.input_tokens + usage.output_tokens, cost_usd=charged),
        next_steps=tuple(run.output.next_steps),
        claimed_artifacts=tuple(run.output.artifact_refs),
        model_name=run.answered_by,
        prompt=run.prompt,
        error=run.last_error,
    )


async def _verify(job: AttemptJob, ledger: Ledger, outcome: AttemptOutcome) -> AttemptOutcome:
    """Steps d to f. Passing checks outrank the reports of the agent and its tools. Without checks, one attempt in
    which every call succeeded counts; calls of outside tools without proof are handed over instead (ADR 75)."""
    blocked, notes = await asyncio.to_thread(_check_report_gates, job, ledger, outcome, _allowances(job))
    outcome = replace(outcome, notes=(*outcome.notes, *notes))
    if blocked is not None:
        return replace(outcome, error=f"gate {blocked.gate_name}", stop=WorkReason.GATE)
    outside = await outside_verification.verify_outside_calls(job, ledger)
    report = VerificationReport((*(await _run_checks(job, ledger)).results, *outside.results))
    failure = ledger.last_failure
    if report.all_passed and outside.unverified and outcome.stop is WorkReason.NONE and not failure:
        error = f"We can't check what was done by {', '.join(outside.unverified)}."
        return replace(outcome, report=report, error=error, stop=WorkReason.HANDED_OVER)
    if report.all_passed and not outside.unverified and (report.results or not (failure or outcome.error)):
        return replace(outcome, report=report, error="", stop=WorkReason.NONE)
    stop = outcome.stop or (rules.stop_reason_for(failure.refusal) if failure else WorkReason.NONE)
    return replace(outcome, report=report, error=failure.error if failure else outcome.error, stop=stop)


async def _run_checks(job: AttemptJob, ledger: Ledger) -> VerificationReport:
    fault_points.reach("work.before_verification")
    rounds = await in_scope(job.tenant_id, check_rounds, job.spec, job.tools, job.customer, ledger.artifacts)
    reports = [
        await asyncio.to_thread(run_checks, check_round.checks, mounts=check_round.mounts) for check_round in rounds
    ]
    fault_points.reach("work.after_verification")
    return VerificationReport(tuple(result for report in reports for result in report.results))


def _allowances(job: AttemptJob) -> Callable[[], Allowance]:
    """Return a factory of gate allowances. In work each step and text has its own, where a turn has one for all."""
    loop = asyncio.get_running_loop()
    return partial(Allowance, ask=guard.GateJudge(job.run, job.model_name, loop, keys=job.keys))


def _check_report_gates(
    job: AttemptJob, ledger: Ledger, outcome: AttemptOutcome, allowances: Callable[[], Allowance]
) -> tuple[GateResult | None, tuple[AuditNote, ...]]:
    """Step d: ask the step gates that look at the agent's report, now that there is one.

    Gates that look at a step's result ran right after it, and those that may ask a person ran before their step
    (`step_gates`). Returns the blocking result, and what to audit.
    """
    notes: tuple[AuditNote, ...] = ()
    late = [gate for gate in job.gates if gate.checks_report]
    for step, line in enumerate(ledger.lines, start=1):
        context = {"step": step, "values": dict(line.value), "response": outcome.summary}
        report = check_gates(late, GateTrigger.AFTER_STEP, context, allowance=allowances())
        notes += report.audit
        if report.blocked:
            return report.blocked, notes
    return None, notes


def _filter_messages(job: AttemptJob, outcome: AttemptOutcome, allowances: Callable[[], Allowance]) -> AttemptOutcome:
    """Let the response gates filter what tools and agent said before the visitor reads it."""
    result, notes = _filter_text(job, outcome.result, allowances())
    steps, more = _filter_text(job, "\n".join(outcome.next_steps), allowances())
    # All or none: a gate rewrites the text as a whole, which cannot be taken apart into steps again.
    next_steps = outcome.next_steps if steps == "\n".join(outcome.next_steps) else ()
    return replace(outcome, result=result, next_steps=next_steps, notes=outcome.notes + notes + more)


def _filter_text(job: AttemptJob, text: str, allowance: Allowance) -> tuple[str, tuple[AuditNote, ...]]:
    """Return what the response gates leave of a text, "" if one holds it back; and what to audit."""
    if not text:
        return "", ()
    report = check_gates(job.gates, GateTrigger.EVERY_AGENT_RESPONSE, {"response": text}, allowance=allowance)
    held_back = report.blocked or report.needs_approval
    return "" if held_back else str(report.context["response"]), report.audit
