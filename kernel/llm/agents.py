"""Who answers? The doors of this room: proxy, planner and executor, each one run of one model (spec 5.1.0, 7.1 to 7.3).

A run always ends with an output: a model that breaks its shape twice gives the deterministic fallback of its role, a provider
that fails or stalls gives the answer of `builtin:grounded`. Called by the turn and by work; tools run through `toolset` only.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic_ai.toolsets import AbstractToolset

from kernel.llm.briefing import Briefing
from kernel.llm.calls import PlannedCall
from kernel.llm.schemas import AgentResponse, ExecutorAgentOutput, RouteDecision

OutputT = TypeVar("OutputT")
OnDelta = Callable[[str], Awaitable[None]]


@dataclass(frozen=True)
class Usage:
    """Provider tokens over all tries of a run; `unmeasured` counts requests whose provider reported none."""

    input_tokens: int = 0
    output_tokens: int = 0
    requests: int = 0
    unmeasured: int = 0


@dataclass(frozen=True)
class Limits:
    """Per try: the repair and the fallback get the same (spec 5.1.0, rule 2). `max_tokens` bounds one model answer."""

    requests: int = 8
    tool_calls: int = 8
    total_tokens: int | None = None
    max_tokens: int = 2000


@dataclass(frozen=True)
class Patience:
    """Seconds: until the first token, between two tokens, and for one whole model request. Tools are not timed here."""

    first_token: float = 12.0
    between_tokens: float = 12.0
    request: float = 90.0


@dataclass(frozen=True)
class AgentRun(Generic[OutputT]):
    """What came of a run.

    `model_name` is the model that was asked (price `usage` with it), `answered_by` the one whose words `output` holds.
    `reason` is a short code, never text. `requested` are acting calls the model wanted: none of them was made.
    `last_error` is set when an executor's try failed as a whole.
    """

    output: OutputT
    usage: Usage
    model_name: str
    answered_by: str
    repaired: bool = False
    fell_back: bool = False
    reason: str = ""
    requested: tuple[PlannedCall, ...] = ()
    last_error: str = ""


async def run_proxy(
    model_name: str,
    briefing: Briefing,
    *,
    on_delta: OnDelta | None = None,
    toolset: AbstractToolset[Any] | None = None,
    key: str | None = None,
    base_url: str | None = None,
    limits: Limits = Limits(),
    patience: Patience = Patience(),
) -> AgentRun[RouteDecision]: ...


async def run_planner(
    model_name: str,
    briefing: Briefing,
    *,
    on_delta: OnDelta | None = None,
    toolset: AbstractToolset[Any] | None = None,
    key: str | None = None,
    base_url: str | None = None,
    limits: Limits = Limits(),
    patience: Patience = Patience(),
) -> AgentRun[AgentResponse]: ...


async def run_executor(
    model_name: str,
    briefing: Briefing,
    *,
    on_delta: OnDelta | None = None,
    toolset: AbstractToolset[Any] | None = None,
    key: str | None = None,
    base_url: str | None = None,
    limits: Limits = Limits(),
    patience: Patience = Patience(),
) -> AgentRun[ExecutorAgentOutput]: ...
