"""Did somebody else's tool do what was approved? Asked of a reading tool of the same server, where an owner named one.

The question is a guarded call of the item's own run, made by us after the attempt: no model chooses it or sees it, and
it is never told what to answer. A server that is away for a moment is asked again a little later: the tool only reads.
Without a named proof, or when it cannot be asked, nothing is known: the work is handed over and not done (ADR 76).
Outside of every scope.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

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
from kernel.llm.calls import PlannedCall
from kernel.provenance import Origin, Source, Sources, Traced, as_text
from kernel.unicode_safety import replace_unstorable

PAUSES = (2.0, 10.0)  # seconds, before it is asked again
_FOR_A_MOMENT = frozenset({"no_answer", "too_slow", "server_error"})


@dataclass(frozen=True)
class OutsideResults:
    """What was found of calls of outside tools: `results` are checks like any other; `unproved` the tools that nobody
    could look at."""

    results: tuple[CheckResult, ...] = ()
    unproved: tuple[str, ...] = ()


async def verify_outside_calls(job: AttemptJob, ledger: Ledger) -> OutsideResults:
    """Every acting call of the plan that somebody else carries out. A plan with checks of its own is proved by those:
    a person has said yes to them."""
    known = checks_of(job.tools)
    if any(check not in known for check in job.spec.verify):
        return OutsideResults()
    tools = {tool.name: tool for tool in job.tools if isinstance(tool, OutsideToolSpec) and tool.acting}
    made = {line.digest for line in ledger.lines if not line.error}
    results, unproved = list[CheckResult](), list[str]()
    for call in job.spec.calls:
        tool = tools.get(call.tool)
        if tool is None:
            continue
        result = await _proved(job, tool, call) if tool.proof else None
        if result is not None:
            results.append(result)
        elif tool.proof or call_digest(call.tool, call.args) in made:
            unproved.append(tool.name)
        else:
            results.append(CheckResult(tool.name, False, "this call was not made", "", None))
    return OutsideResults(tuple(results), tuple(unproved))


async def _proved(job: AttemptJob, tool: OutsideToolSpec, planned: PlannedCall) -> CheckResult | None:
    """None when it could not be asked."""
    reader = next(
        (each for each in job.readers if each.name == tool.proof["tool"] and each.server == tool.server), None
    )
    if reader is None:
        return None
    args = proof_args(tool.proof["args"], planned.args)
    approved = Sources((Source(Traced(Origin.AUTHOR), f"{as_text(planned.args)}\n{as_text(args)}"),))
    access = frozenset({reader.name})
    call = Call(tool=reader.name, args=args, access=access, estimate=reader.estimate, shown=approved)
    outcome = await _asked(job, call)
    for pause in PAUSES:
        if not isinstance(outcome, Failed) or outcome.code not in _FOR_A_MOMENT:
            break
        await asyncio.sleep(pause)
        outcome = await _asked(job, call)
    if not isinstance(outcome, Done):
        return None
    return _held_against(tool, planned.args, _text(outcome.value))


async def _asked(job: AttemptJob, call: Call) -> CallOutcome:
    context = {"customer": job.customer, "skills": tuple(job.spec.skills)}
    return await guard.guarded_call(job.run, Intent.CALL_MCP_TOOL, call, context=context)


def _held_against(tool: OutsideToolSpec, given: Mapping[str, Any], text: str) -> CheckResult:
    """What comes back of the visitor's own words proves nothing: it is taken out before anything is looked for."""
    expect = Expectation.model_validate(tool.proof["expect"])
    passed = meets(expect, output=strip_echo(text, given), exit_code=0)
    wanted = expect.model_dump(exclude_none=True)
    reason = "passed" if passed else f"{tool.proof['tool']} was expected to say {wanted}"
    return CheckResult(
        f"{tool.name}, as {tool.proof['tool']} says", passed, reason, replace_unstorable(text[:OUTPUT_CHARS]), 0
    )


def _text(value: Any) -> str:
    """The words of an answer; a server that gives data alone says them in its data."""
    said = value if isinstance(value, Mapping) else {}
    return str(said.get("text") or said.get("data") or "")
