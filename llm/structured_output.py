"""Request one structured output from a model, outside of a conversation: one request, one repair, bounded time.

For unattended work, such as the next step of an analysis. Text from others is in blocks that are marked as data.
`builtin:grounded` is not used here: callers have their own answer for it.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from pydantic import BaseModel

from llm.failures import ProviderFailed, translate_errors
from llm.loading import loaded
from llm.models import model_span, open_model
from llm.pricing import estimate_tokens
from llm.render import block
from llm.runs import Usage
from llm.usage_estimates import estimate_unreported

if TYPE_CHECKING:
    from pydantic_ai.usage import RunUsage

T = TypeVar("T", bound=BaseModel)
_STUMBLES = (AttributeError, LookupError, TypeError, ValueError)


@dataclass(frozen=True)
class StructuredRequest:
    """`task` is our instruction; `data` are (heading, text) pairs from others."""

    task: str
    data: tuple[tuple[str, str], ...] = ()
    max_tokens: int = 1500
    seconds: float = 60.0

    @property
    def prompt(self) -> str:
        return "\n\n".join(block(f"{heading} | untrusted", text) for heading, text in self.data) or "Begin."


@dataclass(frozen=True)
class StructuredResult(Generic[T]):
    answer: T
    usage: Usage


def estimate_usage(inquiry: StructuredRequest) -> Usage:
    """The most model tokens that the request and its repair may use."""
    tokens = estimate_tokens(len(inquiry.task.encode()) + len(inquiry.prompt.encode())) + inquiry.max_tokens
    return Usage(input_tokens=tokens * 2, output_tokens=inquiry.max_tokens * 2)


async def request(
    model_name: str, inquiry: StructuredRequest, shape: type[T], *, spent: RunUsage, key: str | None = None
) -> StructuredResult[T]:
    """Request an output of the type `shape`. Raises `ProviderFailed` and `ShapeBroken`.

    `spent` includes what a failed try used.
    """
    await loaded()
    from pydantic_ai import Agent, UsageLimits
    from pydantic_ai.settings import ModelSettings

    agent: Agent[None, T] = Agent(output_type=shape, retries={"output": 1}, name=shape.__name__)
    settings = ModelSettings(temperature=0.0, max_tokens=inquiry.max_tokens, max_retries=0, timeout=inquiry.seconds)
    with model_span(model_name) as span:
        try:
            async with asyncio.timeout(inquiry.seconds), open_model(model_name, key=key) as model:
                with translate_errors(), estimate_unreported(spent):
                    run = await agent.run(
                        inquiry.prompt,
                        instructions=inquiry.task,
                        model=model,
                        model_settings=settings,
                        usage_limits=UsageLimits(request_limit=2),
                        usage=spent,
                    )
                return StructuredResult(run.output, Usage.of(spent))
        except TimeoutError:
            raise ProviderFailed("request_timeout") from None
        except _STUMBLES as error:
            raise ProviderFailed("unreadable_response") from error
        finally:
            span.set(input_tokens=spent.input_tokens, output_tokens=spent.output_tokens)
