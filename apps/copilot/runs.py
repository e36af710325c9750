"""One guarded run of assistance: what it is about, frozen when it begins, and how it asks a model.

The run has no tools, a limit of its own, and pays from the budgets of the chatbot and of the company. Outside of any
scope, as a turn's steps between its transactions.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import TypeVar
from uuid import UUID

from pydantic import BaseModel

from apps.access.rules import AccessController
from apps.copilot.schemas import AssistanceRequest
from apps.guard import services as guard
from apps.guard.schemas import Call, RunRef
from apps.persona.schemas import Tone
from apps.releases.schemas import ServedSettings
from apps.sessions.enums import Sender
from apps.sessions.models import ChatSession
from apps.sessions.queries import Said
from apps.sessions.state import Policy
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.language import gettext
from llm import structured_output
from llm.enums import Role
from llm.failures import ProviderFailed, ShapeBroken
from llm.models import is_builtin
from llm.runs import Usage, new_usage
from llm.structured_output import StructuredRequest

Output = TypeVar("Output")
Shape = TypeVar("Shape", bound=BaseModel)
PURPOSE = "assistance"
MOST_USD = Decimal("0.50")
_PATIENCE_SECONDS = 120.0
_NAMES = {Sender.VISITOR: "customer", Sender.BOT: "bot", Sender.HUMAN: "agent", Sender.SYSTEM: "system"}


@dataclass(frozen=True)
class Job:
    """`said` are the newest messages, oldest first, as the gates let models read them; `draft` is the request's text as
    the gates left it."""

    tenant_id: UUID
    assistance_id: UUID
    session: ChatSession
    request: AssistanceRequest
    policy: Policy
    settings: ServedSettings
    access: AccessController
    said: tuple[Said, ...]
    run: RunRef
    tone: Tone | None = None
    draft: str = ""

    @property
    def model(self) -> str:
        return self.settings.model_for(Role.PROXY)

    @property
    def has_model(self) -> bool:
        return not is_builtin(self.model)

    @cached_property
    def key(self) -> str | None:
        return self.session.deployment.keys.of(self.model)

    @property
    def last_message(self) -> Said | None:
        """What the customer wrote last."""
        return next((one for one in reversed(self.said) if one.sender == Sender.VISITOR), None)

    def readable_message(self) -> Said:
        """What the customer wrote last. Raises 409 `assistance_nothing` when there is none that a model may read."""
        message = self.last_message
        if message is None:
            raise SilasError(ErrorCode.ASSISTANCE_NOTHING, gettext("The customer hasn't written anything yet."))
        if message.kept_out:
            text = gettext("One of your rules held back the customer's last message, so no model reads it.")
            raise SilasError(ErrorCode.ASSISTANCE_NOTHING, text)
        return message


def as_lines(said: tuple[Said, ...]) -> str:
    """The messages as a model reads them, each with its number and who wrote it."""
    return "\n".join(f"[{one.seq}] {_NAMES[Sender(one.sender)]}: {one.shown}" for one in said)


async def call_model(job: Job, ask: Callable[[], Awaitable[tuple[Output, Usage]]], forecast: Usage) -> Output:
    """Raises as `guard.call_model` does."""
    call = Call(tool=PURPOSE, model=job.model, forecast=forecast, patience_seconds=_PATIENCE_SECONDS, optional=True)
    return await guard.call_model(job.tenant_id, job.run, call, ask)


async def request_output(job: Job, inquiry: StructuredRequest, shape: type[Shape]) -> Shape:
    """One structured output of the chatbot's model. Raises `ProviderFailed`, also where the guard refuses the run and
    for an output of another shape; 409 `no_model` where the chatbot has only the built-in model."""
    if not job.has_model:
        raise no_model()

    async def ask() -> tuple[Shape, Usage]:
        spent = new_usage()
        try:
            result = await structured_output.request(job.model, inquiry, shape, spent=spent, key=job.key)
        except ShapeBroken:
            raise ProviderFailed("unreadable_response") from None
        return result.answer, result.usage

    return await call_model(job, ask, structured_output.estimate_usage(inquiry))


def no_model() -> SilasError:
    text = gettext("This needs a model. Choose one in Settings › Chatbots.")  # noqa: RUF001 (as menus are named)
    return SilasError(ErrorCode.NO_MODEL, text)
