"""Moves of `builtin:grounded`: say something, or call one tool. Values only; `model` turns them into a response."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from llm.briefing import Briefing
from llm.enums import InteractionMode, InteractionRegister
from llm.schemas import AgentResponse, ModelAnswer, RouteDecision


@dataclass(frozen=True)
class Say:
    output: ModelAnswer


@dataclass(frozen=True)
class CallTool:
    tool: str
    args: dict[str, Any]


@dataclass(frozen=True)
class ToolResult:
    """What a call of this run came to. `content` is JSON, or the reason when it `failed`."""

    tool: str
    content: Any
    failed: bool = False


Move = Say | CallTool

_MODES = {
    InteractionRegister.EXPLORATION: InteractionMode.DEFAULT_AND_OFFER,
    InteractionRegister.STATUS: InteractionMode.ACT_AND_REPORT,
    InteractionRegister.EXECUTION: InteractionMode.CONFIRM_ONLY_WHEN_REQUIRED,
    InteractionRegister.REVIEW: InteractionMode.CONFIRM_ONLY_WHEN_REQUIRED,
}


def direct(briefing: Briefing, response: AgentResponse, reason: str, register: InteractionRegister) -> Say:
    return Say(_decision(briefing, "direct", reason, register, response))


def to_planner(briefing: Briefing, reason: str) -> Say:
    return Say(_decision(briefing, "planner", reason, InteractionRegister.EXECUTION, None))


def _decision(
    briefing: Briefing, route: str, reason: str, register: InteractionRegister, response: AgentResponse | None
) -> RouteDecision:
    return RouteDecision.model_validate(
        {
            "route": route,
            "reason": reason,
            "interaction_register": register,
            "interaction_mode": _MODES[register],
            "context_profile": briefing.context_profiles[0],
            "response": response,
        }
    )
