"""The door as a model sees it: real pydantic-ai agents with scripted models."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.tools import DeferredToolRequests

from apps.gates.schemas import GateSpec
from apps.guard.schemas import ApprovedCalls, CallContext, CallFailed, HandlerResult, call_digest
from apps.guard.toolset import GuardedToolset, OfferedTool
from kernel.clock import now
from tests.factories.guard import answer, audited, change_run, make_run

Handle = Callable[..., None]
SCHEMA = {
    "type": "object",
    "properties": {"n": {"type": "integer"}},
    "required": ["n"],
    "additionalProperties": False,
}
LOOK_UP = OfferedTool("look_up", "Looks something up", SCHEMA)
ACT = OfferedTool("act", "Does something", SCHEMA, acting=True)


def toolset(run: Any, *, access: frozenset[str] = frozenset({"look_up", "act"}), **more: Any) -> GuardedToolset:
    return GuardedToolset(run.ref, (LOOK_UP, ACT), access, **more)


def ask(tools: GuardedToolset, name: str = "look_up", args: Any = None) -> tuple[Any, Any, list[str]]:
    """One model turn that calls one tool: (what came back to it, the agent's output, the tools it was shown)."""
    shown: list[str] = []

    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        shown[:] = [tool.name for tool in info.function_tools]
        returned = [part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]
        if returned:
            return ModelResponse(parts=[TextPart(json.dumps(returned[-1].content))])
        return ModelResponse(parts=[ToolCallPart(name, {"n": 1} if args is None else args)])

    agent = Agent(FunctionModel(model), output_type=[str, DeferredToolRequests], toolsets=[tools])
    output = asyncio.run(agent.run("go")).output
    return json.loads(output) if isinstance(output, str) else None, output, shown


def never(_: CallContext) -> HandlerResult:
    raise AssertionError("dispatched")


def test_result_of_a_tool_reaches_the_model(tenant: Any, handle: Handle) -> None:
    handle(answer({"claim": "open"}))
    assert ask(toolset(make_run(tenant)))[0] == {"claim": "open"}


def test_tool_above_the_level_is_not_shown(tenant: Any, handle: Handle) -> None:
    handle(answer())
    assert ask(toolset(make_run(tenant), access=frozenset({"look_up"})))[2] == ["look_up"]


def test_tool_of_a_level_that_ended_during_the_turn_is_refused(tenant: Any, handle: Handle) -> None:
    handle(never)
    tools = toolset(make_run(tenant), access_until=now() - timedelta(seconds=1))
    assert ask(tools)[0]["refused"] == "tool_not_granted"


def test_refusal_is_a_sentence_for_the_model(tenant: Any, handle: Handle) -> None:
    handle(never)
    run = make_run(tenant, allow=[])
    assert ask(toolset(run))[0] == {"refused": "tool_not_granted", "reason": "This tool cannot be used here."}


def test_halted_run_tells_the_model(tenant: Any, handle: Handle) -> None:
    handle(never)
    run = make_run(tenant)
    change_run(run, halt_state="halt_requested")
    assert ask(toolset(run))[0]["refused"] == "halted"


def test_failure_is_a_sentence_for_the_model(tenant: Any, handle: Handle) -> None:
    def fails(_: CallContext) -> HandlerResult:
        raise CallFailed("no_such_claim", "There is no such claim.")

    handle(fails)
    told = {"failed": "no_such_claim", "reason": "There is no such claim.", "uncertain": False}
    assert ask(toolset(make_run(tenant)))[0] == told


@pytest.mark.parametrize("args", [{}, {"n": "one"}, {"n": 1, "more": 2}])
def test_wrong_arguments_do_not_reach_the_door(tenant: Any, handle: Handle, args: dict[str, Any]) -> None:
    handle(never)
    run = make_run(tenant)
    assert (ask(toolset(run), args=args)[0]["refused"], audited(run)) == ("invalid_arguments", [])


def test_acting_tool_in_a_conversation_is_deferred(tenant: Any, handle: Handle) -> None:
    handle(never)
    run = make_run(tenant)
    _, output, _ = ask(toolset(run), "act")
    assert isinstance(output, DeferredToolRequests) and [call.tool_name for call in output.approvals] == ["act"]
    assert audited(run) == []


def test_gate_that_asks_defers_the_call(tenant: Any, handle: Handle) -> None:
    handle(never)
    gates = (GateSpec(name="ask", on="on_tool_call", type="approval_always"),)
    _, output, _ = ask(toolset(make_run(tenant), gates=gates))
    assert isinstance(output, DeferredToolRequests) and next(iter(output.metadata.values()))["gate"] == "ask"


def test_approved_acting_tool_is_made_where_the_run_carries_the_yes(tenant: Any, handle: Handle) -> None:
    handle(answer("done"))
    yes = ApprovedCalls(nonce="n-1", calls=frozenset({call_digest("act", {"n": 1})}))
    run = make_run(tenant, approval=yes)
    assert ask(toolset(run, defer_acting=False), "act")[0] == "done"


def test_unapproved_acting_tool_is_refused_where_nobody_can_be_asked(tenant: Any, handle: Handle) -> None:
    handle(never)
    assert ask(toolset(make_run(tenant), defer_acting=False), "act")[0]["refused"] == "approval_missing"


def test_observer_hears_of_every_outcome(tenant: Any, handle: Handle) -> None:
    handle(answer("found"))
    heard: list[Any] = []
    ask(toolset(make_run(tenant), observe=lambda name, args, outcome: heard.append((name, args, outcome.value))))
    assert heard == [("look_up", {"n": 1}, "found")]


def test_context_reaches_the_handler_and_not_the_audit(tenant: Any, handle: Handle) -> None:
    seen: list[Any] = []
    handle(lambda context: seen.append(context.context) or HandlerResult(None))  # type: ignore[func-returns-value]
    run = make_run(tenant)
    ask(toolset(run, context={"subject": "c-42"}))
    assert (seen, "c-42" in str(audited(run))) == ([{"subject": "c-42"}], False)
