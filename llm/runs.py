"""Inputs and results of a run: frozen values shared by the entry points in `agents` and their callers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from llm.calls import PlannedCall
from llm.loading import load

if TYPE_CHECKING:
    from pydantic_ai.usage import RunUsage

OutputT = TypeVar("OutputT")


def new_usage() -> RunUsage:
    """Return what a run adds its usage to."""
    load()
    from pydantic_ai.usage import RunUsage

    return RunUsage()


@dataclass(frozen=True)
class Usage:
    """Provider tokens over all tries of a run; `unmeasured` counts requests whose provider reported none.

    Tokens read from and written to a provider's cache are part of `input_tokens` (as genai-prices counts).
    """

    input_tokens: int = 0
    output_tokens: int = 0
    requests: int = 0
    unmeasured: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0

    @classmethod
    def of(cls, spent: RunUsage) -> Usage:
        return cls(
            spent.input_tokens,
            spent.output_tokens,
            spent.requests,
            spent.unmeasured_requests,
            spent.cache_read_tokens,
            spent.cache_write_tokens,
        )


@dataclass(frozen=True)
class Limits:
    """Per try: the repair and the fallback get the same (spec 5.1.0, rule 2). `max_tokens` bounds one model answer."""

    requests: int = 8
    tool_calls: int = 8
    total_tokens: int | None = None
    max_tokens: int = 2000


@dataclass(frozen=True)
class Timeouts:
    """Seconds: until the first token, between two tokens, and for one whole model request. Tools are not timed here."""

    first_token: float = 12.0
    between_tokens: float = 12.0
    request: float = 90.0


@dataclass(frozen=True)
class AgentRun(Generic[OutputT]):
    """The result of a run.

    `model_name` is the requested model (price `usage` with it), `answered_by` the one that produced `output`. `prompt`
    names the prompt version ("" for the built-in model, which reads none). `reason` is a short code, never text.
    `requested` are acting calls the model wanted: none of them was made. `wishes` are tools that the model called and
    was not offered: nothing was done. `last_error` is set when an executor's try failed as a whole.
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
    prompt: str = ""
    wishes: tuple[str, ...] = ()
