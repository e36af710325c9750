"""How is an approved item carried out? Attempt after attempt until the outside checks pass or the budget is used up.

Slow, and outside of every transaction: the model, the tools, the sandboxes. What begins and concludes an attempt are
short scopes (`services.running`). Called by `tasks.execute` only, in a worker (spec 5.2.1).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from uuid import UUID

from django.db import DatabaseError

from apps.bus import services as bus
from apps.bus.enums import Queue
from apps.bus.schemas import Lease, LeaseLost
from apps.gates.enums import GateTrigger
from apps.gates.schemas import AuditNote, GateResult
from apps.gates.services import check_gates
from apps.guard import services as guard
from apps.guard.enums import Intent, RefusalCode
from apps.guard.schemas import Admitted, Call, Refused
from apps.work import jobs, rules
from apps.work.budgets import BudgetUsed
from apps.work.enums import WorkReason
from apps.work.jobs import Job
from apps.work.ledger import EffectUncertain, Ledger, WorkToolset
from apps.work.schemas import VerificationReport
from apps.work.services import running
from apps.work.services.running import AttemptOutcome
from apps.work.verification import run_checks
from kernel.llm.agents import AgentRun, run_executor
from kernel.llm.models import environment_key
from kernel.llm.pricing import estimate, price
from kernel.llm.schemas import ExecutorAgentOutput
from kernel.tenancy import in_scope, in_scope_patiently

_log = logging.getLogger(__name__)
LEASE_SECONDS = 120.0
_HEARTBEAT_SECONDS = LEASE_SECONDS / 3


async def drain(tenant_id: UUID, *, consumer: str) -> None:
    """Carry out what is owed to this tenant's executor queue until nothing more may be delivered now."""
    while True:
        lease = await in_scope(tenant_id, bus.lease, Queue.EXECUTOR, consumer=consumer, seconds=LEASE_SECONDS)
        if lease is None:
            return
        await deliver(tenant_id, lease)


async def deliver(tenant_id: UUID, lease: Lease) -> None:
    """One delivery, to its end: done, stopped, given back after a fault of ours, or taken from us; then nothing more of
    it is ours to write."""
    try:
        async with _kept_alive(tenant_id, lease):
            while not await _attempt(tenant_id, lease):
                pass
    except LeaseLost:
        return
    except Exception as error:  # noqa: BLE001 (whatever it was, the item is owed again)
        _log.exception("work_delivery_failed task=%s", lease.message.task_id)
        with suppress(LeaseLost, DatabaseError):
            await in_scope_patiently(tenant_id, LEASE_SECONDS, bus.nack, lease, reason=type(error).__name__)


async def _attempt(tenant_id: UUID, lease: Lease) -> bool:
    """One attempt; True when the delivery is over."""
    job = await in_scope(tenant_id, jobs.next_job, lease)
    if job is None:
        return True
    outcome = await _carry_out(job)
    return await in_scope(tenant_id, running.conclude, lease, job.attempt, outcome)


async def _carry_out(job: Job) -> AttemptOutcome:
    started, ledger = time.monotonic(), Ledger()
    outcome = await _run_agent(job, ledger)
    if outcome.stop in (WorkReason.NONE, WorkReason.UNCERTAIN):
        outcome = await _verified(job, ledger, outcome)
    used = outcome.used.merge(BudgetUsed(wall_time_seconds=round(time.monotonic() - started, 3)))
    outcome = replace(outcome, used=used, artifacts=tuple(ledger.artifacts), result=ledger.said)
    return await asyncio.to_thread(_fit_to_tell, job, outcome)


async def _run_agent(job: Job, ledger: Ledger) -> AttemptOutcome:
    """Steps b to c: one model run between admit and settle, its tools through the door."""
    asked = Call(tool="executor", estimate=estimate(job.model_name, job.briefing), model=job.model_name)
    admitted = await in_scope(job.tenant_id, guard.admit, job.run, Intent.CONVERSE, asked)
    if not isinstance(admitted, Admitted):
        code = admitted.code if isinstance(admitted, Refused) else RefusalCode.APPROVAL_MISSING
        return AttemptOutcome("", BudgetUsed(), error=code.value, stop=rules.stop_for(code))
    toolset = WorkToolset(job.run, job.offered, job.access, job.gates, job.context, observe=ledger.observe)
    try:
        run = await run_executor(job.model_name, job.briefing, toolset=toolset, key=environment_key(job.model_name))
    except EffectUncertain:
        await in_scope(job.tenant_id, guard.settle, admitted, cost=None, failed="effect_uncertain")
        return AttemptOutcome("", BudgetUsed(), error="effect_uncertain", stop=WorkReason.UNCERTAIN)
    return await _settled(job, admitted, run)


async def _settled(job: Job, admitted: Admitted, run: AgentRun[ExecutorAgentOutput]) -> AttemptOutcome:
    usage = run.usage
    cost = price(job.model_name, input_tokens=usage.input_tokens, output_tokens=usage.output_tokens)
    charged = await in_scope(
        job.tenant_id,
        guard.settle,
        admitted,
        cost=None if usage.unmeasured else cost,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
    )
    return AttemptOutcome(
        summary=run.output.summary,
        used=BudgetUsed(tokens=usage.input_tokens + usage.output_tokens, cost_usd=charged),
        next_steps=tuple(run.output.next_steps),
        claimed_artifacts=tuple(run.output.artifact_refs),
        model_name=run.answered_by,
        error=run.last_error,
    )


async def _verified(job: Job, ledger: Ledger, outcome: AttemptOutcome) -> AttemptOutcome:
    """Steps d to f. Passing checks outrank everything the agent or its tools said; without checks one attempt in which
    every call went well counts."""
    blocked, notes = await asyncio.to_thread(_gates_say, job, ledger, outcome)
    outcome = replace(outcome, notes=notes)
    if blocked is not None:
        return replace(outcome, error=f"gate {blocked.gate_name}", stop=WorkReason.GATE)
    report = await _report(job, ledger)
    failure = ledger.last_failure
    if report.all_passed and (report.results or not failure):
        return replace(outcome, report=report, error="", stop=WorkReason.NONE)
    stop = outcome.stop or (rules.stop_for(failure.refusal) if failure else WorkReason.NONE)
    return replace(outcome, report=report, error=failure.error if failure else outcome.error, stop=stop)


async def _report(job: Job, ledger: Ledger) -> VerificationReport:
    rounds = await in_scope(job.tenant_id, jobs.rounds, job, ledger.artifacts)
    reports = [await asyncio.to_thread(run_checks, each.checks, mounts=each.mounts) for each in rounds]
    return VerificationReport(tuple(result for report in reports for result in report.results))


def _gates_say(job: Job, ledger: Ledger, outcome: AttemptOutcome) -> tuple[GateResult | None, tuple[AuditNote, ...]]:
    """Step d: each call is a step, its values pass that step's gates or the item stops; and what to write down."""
    notes: tuple[AuditNote, ...] = ()
    for step, entry in enumerate(ledger.entries, start=1):
        context = {"step": step, "values": dict(entry.value), "response": outcome.summary}
        report = check_gates(job.gates, GateTrigger.AFTER_STEP, context)
        notes += report.audit
        if report.blocked or report.needs_approval:
            return report.blocked or report.needs_approval, notes
    return None, notes


def _fit_to_tell(job: Job, outcome: AttemptOutcome) -> AttemptOutcome:
    """What tools and agent said reaches the visitor beside our own sentence, as far as the response gates let it."""
    result, notes = _through_gates(job, outcome.result)
    steps, more = _through_gates(job, "\n".join(outcome.next_steps))
    next_steps = outcome.next_steps if steps == "\n".join(outcome.next_steps) else ()
    return replace(outcome, result=result, next_steps=next_steps, notes=outcome.notes + notes + more)


def _through_gates(job: Job, text: str) -> tuple[str, tuple[AuditNote, ...]]:
    """What the response gates leave of a text, "" when one of them holds it back; and what to write down."""
    if not text:
        return "", ()
    report = check_gates(job.gates, GateTrigger.EVERY_AGENT_RESPONSE, {"response": text})
    held_back = report.blocked or report.needs_approval
    return "" if held_back else str(report.context["response"]), report.audit


@asynccontextmanager
async def _kept_alive(tenant_id: UUID, lease: Lease) -> AsyncIterator[None]:
    """Renew the lease while the block runs; once it is lost somebody else has the item, and the block is cancelled."""
    worker = asyncio.current_task()
    lost = False

    async def beat() -> None:
        nonlocal lost
        while True:
            await asyncio.sleep(_HEARTBEAT_SECONDS)
            try:
                await in_scope(tenant_id, bus.heartbeat, lease, LEASE_SECONDS)
            except LeaseLost:
                lost = True
                assert worker is not None
                worker.cancel()
                return
            except DatabaseError:
                _log.warning("work_heartbeat_failed task=%s", lease.message.task_id, exc_info=True)

    heart = asyncio.create_task(beat())
    try:
        yield
    except asyncio.CancelledError:
        if lost:
            raise LeaseLost from None
        raise
    finally:
        heart.cancel()
