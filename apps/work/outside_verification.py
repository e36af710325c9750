"""Verify calls that no check of a skill proves: those of outside tools by asking a reading tool of the same server,
where an owner configured one as proof.

The question is a guarded call of the item's own run, made after the attempt: no model chooses or sees it. A server that
is briefly unavailable is asked again: the tool only reads. Without a configured proof, or when it cannot be asked, the
result is unknown: the work is handed over and not done (ADR 75). Outside of every scope.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from apps.gates.rules import meets
from apps.gates.schemas import Expectation
from apps.guard import services as guard
from apps.guard.enums import Intent
from apps.guard.schemas import Call, CallOutcome, Done, Failed, call_digest
from apps.skills.schemas import OutsideToolSpec
from apps.toolservers.rules import proof_args, strip_echo
from apps.work.attempt_jobs import AttemptJob
from apps.work.checks import checks_of
from apps.work.ledger import Ledger
from apps.work.schemas import CheckResult
from apps.work.verification import OUTPUT_CHARS
from kernel.provenance import Origin, Source, Sources, Traced, as_text
from kernel.unicode_safety import replace_unstorable
from llm.calls import PlannedCall

PAUSES = (2.0, 10.0)  # seconds, before it is asked again
_TRANSIENT = frozenset({"no_answer", "too_slow", "server_error"})


@dataclass(frozen=True)
class OutsideResults:
    """Results for calls of outside tools: `results` are check results; `unverified` names the tools that could not be
    verified."""

    results: tuple[CheckResult, ...] = ()
    unverified: tuple[str, ...] = ()


async def verify_outside_calls(job: AttemptJob, ledger: Ledger) -> OutsideResults:
    """Verify every acting call of an outside tool, and of an executor without a check of its skill's. A plan with
    checks of its own is proved by those: a person approved them."""
    declared = checks_of(job.tools)
    if any(check not in declared for check in job.spec.verify):
        return OutsideResults()
    tools = {tool.name: tool for tool in job.tools if tool.acting and not tool.verify}
    made = {line.digest for line in ledger.lines if not line.error}
    results, unverified = list[CheckResult](), list[str]()
    for call in job.spec.calls:
        tool = tools.get(call.tool)
        if tool is None:
            continue
        provable = tool if isinstance(tool, OutsideToolSpec) and tool.proof else None
        result = await _verify_call(job, provable, call) if provable else None
        if result is not None:
            results.append(result)
        elif provable or call_digest(call.tool, call.args) in made:
            unverified.append(tool.name)
        else:
            results.append(CheckResult(tool.name, False, "this call was not made", "", None))
    return OutsideResults(tuple(results), tuple(unverified))


async def _verify_call(job: AttemptJob, tool: OutsideToolSpec, planned: PlannedCall) -> CheckResult | None:
    """Return the check result; None if the reading tool could not be asked."""
    reader = next(
        (
            candidate
            for candidate in job.readers
            if candidate.name == tool.proof["tool"] and candidate.server == tool.server
        ),
        None,
    )
    if reader is None:
        return None
    args = proof_args(tool.proof["args"], planned.args)
    # The question repeats only values that a person approved with the call.
    approved = Sources((Source(Traced(Origin.AUTHOR), f"{as_text(planned.args)}\n{as_text(args)}"),))
    access = frozenset({reader.name})
    call = Call(tool=reader.name, args=args, access=access, estimate=reader.estimate, shown=approved)
    outcome = await _call_reader(job, call)
    for pause in PAUSES:
        # A refusal of the guard stays the same however often it is asked.
        if not isinstance(outcome, Failed) or outcome.code not in _TRANSIENT:
            break
        await asyncio.sleep(pause)
        outcome = await _call_reader(job, call)
    if not isinstance(outcome, Done):
        return None
    answer = outcome.value if isinstance(outcome.value, Mapping) else {}
    return _compare(tool, planned.args, str(answer.get("text") or answer.get("data") or ""))


async def _call_reader(job: AttemptJob, call: Call) -> CallOutcome:
    context = {"customer": job.customer, "skills": tuple(job.spec.skills)}
    return await guard.guarded_call(job.run, Intent.CALL_MCP_TOOL, call, context=context)


def _compare(tool: OutsideToolSpec, args: Mapping[str, object], text: str) -> CheckResult:
    """Compare the answer with the expectation. Values of the call itself are removed first: an echo proves nothing."""
    expect = Expectation.model_validate(tool.proof["expect"])
    passed = meets(expect, output=strip_echo(text, args), exit_code=0)
    expected = expect.model_dump(exclude_none=True)
    reason = "passed" if passed else f"{tool.proof['tool']} was expected to say {expected}"
    return CheckResult(
        f"{tool.name}, as {tool.proof['tool']} says", passed, reason, replace_unstorable(text[:OUTPUT_CHARS]), 0
    )
