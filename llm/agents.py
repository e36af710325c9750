"""Run the proxy, the planner or the executor: each one run of one model (spec 5.1.0, 7.1 to 7.3).

A run always ends with an output: a model whose output is invalid twice gives the fixed answer of its role, a provider
that fails or stalls gives the answer of `builtin:grounded`. Called by the turn and by work; tools run through
`toolset` only.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from kernel import tracing
from kernel.tracing import SpanName
from llm import prompts
from llm.briefing import Briefing
from llm.calls import PlannedCall, is_plain_json
from llm.citations import drop_unverified
from llm.credentials import split_model
from llm.enums import InteractionMode, InteractionRegister, Role
from llm.failures import ProviderFailed
from llm.loading import loaded
from llm.models import GROUNDED, is_builtin, open_model
from llm.output_repair import RepairedOutput, fallback_output
from llm.runs import AgentRun, Limits, Timeouts, Usage
from llm.schemas import AgentResponse, ExecutorAgentOutput, RouteDecision

if TYPE_CHECKING:
    from pydantic_ai.toolsets import AbstractToolset

    from llm.attempts import Answer, Attempts
    from llm.streaming import OnDelta

__all__ = ["AgentRun", "Limits", "Timeouts", "Usage", "run_executor", "run_planner", "run_proxy"]

_HARNESS = "harness"
_MOST_WISHES = 10
_LIMITS, _PATIENCE = Limits(), Timeouts()
_EXECUTOR_LIMITS = Limits(requests=24, tool_calls=24)


async def run_proxy(
    model_name: str,
    briefing: Briefing,
    *,
    on_delta: OnDelta | None = None,
    toolset: AbstractToolset[Any] | None = None,
    key: str | None = None,
    base_url: str | None = None,
    limits: Limits = _LIMITS,
    patience: Timeouts = _PATIENCE,
) -> AgentRun[RouteDecision]:
    """Answer the visitor or hand on to the planner.

    A call of an acting tool ends the run with route `planner` and the call in `requested`. `on_delta` gets the
    growing answer.
    """
    briefing = replace(briefing, role=Role.PROXY)
    run = await _run(model_name, await _attempts(briefing, on_delta, toolset, limits, patience), key, base_url)
    decision = run.output if isinstance(run.output, RouteDecision) else _to_planner(briefing)
    if decision.response is not None:
        # The proxy only answers: a plan of its own would pass the planner by.
        answer = drop_unverified(decision.response, briefing.quotable).model_copy(update={"plan_action": None})
        decision = decision.model_copy(update={"response": answer})
    return replace(run, output=decision)


async def run_planner(
    model_name: str,
    briefing: Briefing,
    *,
    on_delta: OnDelta | None = None,
    toolset: AbstractToolset[Any] | None = None,
    key: str | None = None,
    base_url: str | None = None,
    patience: Timeouts = _PATIENCE,
) -> AgentRun[AgentResponse]:
    """Prepare a plan for the conversation and `briefing.requested`.

    A planner that calls an acting tool instead of planning it gets its plan written by `builtin:grounded` from these
    calls.
    """
    briefing = replace(briefing, role=Role.PLANNER)
    run = await _run(model_name, await _attempts(briefing, on_delta, toolset, _LIMITS, patience), key, base_url)
    if not isinstance(run.output, AgentResponse):
        retry = replace(briefing, requested=run.requested or briefing.requested)
        written = await _run(GROUNDED, await _attempts(retry, None, None, _LIMITS, patience), None, None)
        run = replace(run, output=written.output, answered_by=GROUNDED, reason=run.reason or "plan_from_calls")
    return replace(run, output=drop_unverified(run.output, briefing.quotable))


async def run_executor(
    model_name: str,
    briefing: Briefing,
    *,
    toolset: AbstractToolset[Any] | None = None,
    key: str | None = None,
    base_url: str | None = None,
    limits: Limits = _EXECUTOR_LIMITS,
    patience: Timeouts = _PATIENCE,
) -> AgentRun[ExecutorAgentOutput]:
    """Carry out `briefing.work_body` with the tools that `briefing.tools` names. Never a measure of success."""
    briefing = replace(briefing, role=Role.EXECUTOR)
    run = await _run(model_name, await _attempts(briefing, None, toolset, limits, patience), key, base_url)
    if not isinstance(run.output, ExecutorAgentOutput):
        stopped = ExecutorAgentOutput(summary="Stopped: a call needs an approval that this work item does not have.")
        return replace(run, output=stopped, last_error="approval_required")
    return replace(run, last_error=run.reason if run.answered_by == _HARNESS else "")


async def _attempts(
    briefing: Briefing,
    on_delta: OnDelta | None,
    toolset: AbstractToolset[Any] | None,
    limits: Limits,
    patience: Timeouts,
) -> Attempts:
    await loaded()
    from llm.attempts import Attempts

    return Attempts(briefing, on_delta, toolset, limits, patience)


async def _run(model_name: str, attempts: Attempts, key: str | None, base_url: str | None) -> AgentRun[Any]:
    answered_by, reason = model_name, ""
    provider, model = split_model(model_name)
    role = attempts.briefing.role.value
    with tracing.span(SpanName.AGENT, label=role, agent=role, provider=provider, model=model) as span:
        try:
            result = await _try_model(model_name, attempts, key, base_url)
        except ProviderFailed as failure:
            answered_by, reason = GROUNDED, failure.reason
            result = await _fall_back(model_name, attempts)
        if result.output is None:
            answered_by = _HARNESS
            reason = reason or f"{attempts.briefing.role}_structured_output_invalid"
        usage = attempts.usage
        span.set(answered_by=answered_by, input_tokens=usage.input_tokens, output_tokens=usage.output_tokens)
        if reason:
            span.fail(reason)
    return AgentRun(
        output=_answer(result, attempts.briefing),
        usage=usage,
        model_name=model_name,
        answered_by=answered_by,
        repaired=result.repaired,
        fell_back=answered_by != model_name,
        reason=reason,
        requested=_requested_calls(result.output),
        wishes=tuple(dict.fromkeys(attempts.wishes))[:_MOST_WISHES],
        prompt="" if is_builtin(model_name) else prompts.current(attempts.briefing.role).name,
    )


async def _try_model(
    model_name: str, attempts: Attempts, key: str | None, base_url: str | None
) -> RepairedOutput[Answer]:
    if is_builtin(model_name):
        return await attempts.run_grounded()
    async with open_model(model_name, key=key, base_url=base_url) as model:
        return await attempts.run(model)


async def _fall_back(model_name: str, attempts: Attempts) -> RepairedOutput[Answer]:
    """The answer of `builtin:grounded`, or none if that exceeded its own limits."""
    if is_builtin(model_name):
        return RepairedOutput(None, repaired=False)
    try:
        return await attempts.run_grounded()
    except ProviderFailed:
        return RepairedOutput(None, repaired=False)


def _answer(result: RepairedOutput[Answer], briefing: Briefing) -> Answer:
    if result.output is None:
        return fallback_output(briefing.role, context_profile=briefing.context_profiles[0])
    return result.output


def _requested_calls(output: Answer | None) -> tuple[PlannedCall, ...]:
    from pydantic_ai import DeferredToolRequests

    if not isinstance(output, DeferredToolRequests):
        return ()
    calls = (PlannedCall(part.tool_name, part.args_as_dict()) for part in (*output.approvals, *output.calls))
    # NaN and infinity come through some providers' readers and could not be hashed.
    return tuple(call for call in calls if is_plain_json(call.args))


def _to_planner(briefing: Briefing) -> RouteDecision:
    return RouteDecision(
        route="planner",
        reason="acting_tool_requested",
        interaction_register=InteractionRegister.EXECUTION,
        interaction_mode=InteractionMode.CONFIRM_ONLY_WHEN_REQUIRED,
        context_profile=briefing.context_profiles[0],
    )
