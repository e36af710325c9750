"""What is a message made of, and what does its holder hold? (spec 19.2.1; contract silas 15)

Everything here is frozen. A message refers to its work item and approval token by id: their rows are the truth, and a
copy on a queue would be a second one (ADR 0017). Which parts a kind must have, `rules` says.
"""

from __future__ import annotations

import json
import re
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict
from uuid import UUID

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from apps.bus.enums import ErrorCode, ExecutionStatus, Kind, Queue, Sender, Urgency
from kernel.errors import SilasError
from kernel.taint import Taint

if TYPE_CHECKING:
    from apps.bus.models import QueueMessage


Agent = Literal[Sender.PROXY, Sender.PLANNER, Sender.EXECUTOR, Sender.RUNTIME]
ResearchTool = Literal["web_search", "read_file", "memory_search"]
RESEARCH_TOOLS: tuple[ResearchTool, ...] = ("web_search", "read_file", "memory_search")
MAX_TEXT, MAX_JSON = 64_000, 256_000
_NUL_IN_JSON = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")


def storable(text: str) -> str:
    """Raises `ValueError` for what PostgreSQL keeps in no text: NUL, and halves of characters."""
    text.encode()
    if "\0" in text:
        raise ValueError("NUL in a text")
    return text


def storable_json(value: dict[str, Any]) -> dict[str, Any]:
    """Raises `ValueError` for what is no JSON, too much of it, or not to be stored."""
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False)
    except (TypeError, RecursionError) as error:
        raise ValueError("not JSON") from error
    if len(text.encode()) > MAX_JSON or _NUL_IN_JSON.search(text):
        raise ValueError("JSON that cannot be stored")
    return value


Word = Annotated[str, AfterValidator(storable)]
Text = Annotated[str, Field(max_length=MAX_TEXT), AfterValidator(storable)]
Json = Annotated[dict[str, Any], AfterValidator(storable_json)]


class Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class UserMessage(Frozen):
    """Which entry of the scope's chronicle asks for an answer; its text stays there. `overheard`: it was said to a
    person, and is owed a look of the gates alone. `pause`: what its turn waited for has ended."""

    seq: int = Field(ge=1)
    overheard: bool = False
    pause: UUID | None = None


class StatusPayload(Frozen):
    """How a work item stands (19.2.1). Amounts are what is left of its budget."""

    status: ExecutionStatus
    detail: Text | None = None
    attempt_number: int | None = Field(default=None, ge=0)
    budget_remaining_tokens: int | None = Field(default=None, ge=0)
    budget_remaining_usd: float | None = Field(default=None, ge=0)


class ErrorPayload(Frozen):
    """What went wrong, on any message but a status (19.2.1)."""

    error_code: ErrorCode
    retryable: bool
    origin_agent: Agent
    attempt_number: int = Field(ge=0)
    detail: Text


class ResearchConstraints(Frozen):
    """Within what a question is looked into; the executor clamps the tools again when it runs."""

    return_format: str = Field(min_length=1, max_length=2000)
    max_tokens: int = Field(default=500, ge=1, le=8000)
    tools_allowed: tuple[ResearchTool, ...] = RESEARCH_TOOLS


class PlanRequest(Frozen):
    """A plan is wanted for what `content` says; `seq` is the chronicle entry that asked."""

    seq: int | None = Field(default=None, ge=1)
    goal_id: UUID | None = None


class PlanResult(Frozen):
    """The plan stands in `plan_markdown`; `depth` says how often it was made anew."""

    depth: int = Field(default=0, ge=0)


class ResearchRequest(Frozen):
    """The question stands in `content`; `key`, the hash of task, format and length, makes a repeated one known."""

    key: str = Field(min_length=1, max_length=64)
    round: int = Field(default=1, ge=1)


class ResearchResult(Frozen):
    """The answer stands in `content`; `key` is the request's."""

    key: str = Field(min_length=1, max_length=64)
    tokens: int = Field(default=0, ge=0)


class Guidance(Frozen):
    """The advice stands in `content`; `answers` is the `message_id` of the question."""

    answers: str = Field(min_length=1, max_length=128)


class ReplanRequest(Frozen):
    """What was tried stands in `content`; `depth` is that of the plan that is wanted."""

    depth: int = Field(ge=1)


class ExecutionRequest(Frozen):
    """An approved item, resumed with guidance where `resumes` names the message that gave it."""

    resumes: str | None = Field(default=None, max_length=128)


class AutonomousRun(Frozen):
    """A session of the autonomy room that was let in; what it is to do stands in its row."""

    session: UUID


class ReviewOwed(Frozen):
    """Something of the autonomy room that only a web process can do: to ask a person, or to write a memory."""

    event: str
    subject: UUID | None = None


class ConnectionOwed(Frozen):
    """A card about a connection that only a web process can open."""

    event: str
    subject: UUID
    permissions: list[str] = Field(default_factory=list, max_length=40)


class Message(Frozen):
    """One message as its sender means it. `payload` is checked against its kind's schema by `rules`."""

    queue: Queue
    kind: Kind
    message_id: Word = Field(min_length=1, max_length=128)
    trace_id: Word = Field(min_length=1, max_length=64)
    scope_id: Word = Field(min_length=1, max_length=64)
    sender: Sender
    content: Text = ""
    taint: Taint = Taint.EXTERNAL
    task_id: UUID | None = None
    parent_task_id: UUID | None = None
    payload: Json | None = None
    error_code: ErrorCode | None = None
    retryable: bool | None = None
    origin_agent: Agent | None = None
    attempt_number: int | None = Field(default=None, ge=0, le=32_767)
    urgency: Urgency = Urgency.INFORMATIONAL
    plan_markdown: Text | None = None
    approval_token: UUID | None = None
    artifacts: Json | None = None
    constraints: ResearchConstraints | None = None


class MessageFields(TypedDict, total=False):
    """What a sender may say beside queue, kind, scope, sender, payload and ids."""

    content: str
    taint: str
    task_id: UUID | None
    parent_task_id: UUID | None
    error_code: str | None
    retryable: bool | None
    origin_agent: str | None
    attempt_number: int | None
    urgency: str
    plan_markdown: str | None
    approval_token: UUID | None
    artifacts: dict[str, Any] | None
    constraints: ResearchConstraints | None


class MessageRefused(SilasError):
    """No queue takes this message; `code` says what is wrong with it. A bug of the sender."""

    def __init__(self, code: str, fault: str) -> None:
        super().__init__(code, f"This message cannot be queued: {fault}.", status=422)


@dataclass(frozen=True)
class LeaseRef:
    """A lease by name: the message's row and the fence it was taken under."""

    message_pk: UUID
    fence: int


@dataclass(frozen=True)
class Lease:
    """One delivery of one message. `fence` grows with every delivery, so a former holder's word no longer counts."""

    message: QueueMessage
    fence: int
    processed: bool = False
    taken_at: float = field(default_factory=time.monotonic, compare=False)

    @property
    def held_for(self) -> float:
        """Seconds since it was taken."""
        return time.monotonic() - self.taken_at

    @property
    def ref(self) -> LeaseRef:
        return LeaseRef(self.message.pk, self.fence)


class LeaseLost(SilasError):
    """The message was given to somebody else, returned or buried in the meantime; roll back what was done for it."""

    def __init__(self) -> None:
        super().__init__("lease_lost", "This delivery is no longer ours.", status=409)


class AlreadyProcessed(SilasError):
    """Another delivery of the message has had its effect; roll back, then ack (spec 19.2.3)."""

    def __init__(self) -> None:
        super().__init__("already_processed", "This message has already had its effect.", status=409)
