"""Messages, their payloads, and leases; all frozen (spec 19.2.1; contract silas 15).

A message refers to its work item and approval token by id: their rows are the truth, and a copy on a queue would be a
second one (ADR 115). `rules` defines which parts a kind must have.
"""

from __future__ import annotations

import json
import re
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict
from uuid import UUID

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from apps.bus.enums import ExecutionStatus, FailureCode, Kind, Queue, Sender, Urgency
from kernel.error_codes import ErrorCode
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
    """Return the text. Raises `ValueError` for what PostgreSQL cannot store: NUL, and lone surrogates."""
    text.encode()
    if "\0" in text:
        raise ValueError("NUL in a text")
    return text


def storable_json(value: dict[str, Any]) -> dict[str, Any]:
    """Return the value. Raises `ValueError` when it is no JSON, too large, or cannot be stored."""
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
    """The entry of the scope's chronicle that needs an answer; its text stays there.

    `overheard`: a person handles it, so only the gates evaluate it. `pause`: what its turn waited for has ended.
    """

    seq: int = Field(ge=1)
    overheard: bool = False
    pause: UUID | None = None


class StatusPayload(Frozen):
    """How a work item stands (19.2.1)."""

    status: ExecutionStatus
    detail: Text | None = None
    attempt_number: int | None = Field(default=None, ge=0)


class ErrorPayload(Frozen):
    """What went wrong, on any message but a status (19.2.1)."""

    error_code: FailureCode
    retryable: bool
    origin_agent: Agent
    attempt_number: int = Field(ge=0)
    detail: Text


class ResearchConstraints(Frozen):
    """Limits of a research question; the executor restricts the tools again when it runs."""

    return_format: str = Field(min_length=1, max_length=2000)
    max_tokens: int = Field(default=500, ge=1, le=8000)
    tools_allowed: tuple[ResearchTool, ...] = RESEARCH_TOOLS


class PlanResult(Frozen):
    """The plan is in `plan_markdown`; `depth` counts replanning."""

    depth: int = Field(default=0, ge=0)


class ResearchRequest(Frozen):
    """The question is in `content`; `key`, the hash of task, format and length, identifies repeated ones."""

    key: str = Field(min_length=1, max_length=64)
    round: int = Field(default=1, ge=1)


class ResearchResult(Frozen):
    """The answer is in `content`; `key` is the request's."""

    key: str = Field(min_length=1, max_length=64)
    tokens: int = Field(default=0, ge=0)


class Guidance(Frozen):
    """The advice is in `content`; `answers` is the `message_id` of the question."""

    answers: str = Field(min_length=1, max_length=128)


class ReplanRequest(Frozen):
    """The attempts so far are in `content`; `depth` is that of the requested plan."""

    depth: int = Field(ge=1)


class ExecutionRequest(Frozen):
    """An approved item, resumed with guidance where `resumes` names the message that gave it."""

    resumes: str | None = Field(default=None, max_length=128)


class AutonomousRun(Frozen):
    """An admitted autonomous session; its row says what it does."""

    session: UUID


class ReviewOwed(Frozen):
    """Work of an autonomous session that only the trusted worker may do: ask a person, or write a memory."""

    event: str
    subject: UUID | None = None


class ConnectionOwed(Frozen):
    """A card about a connection that only the trusted worker may open."""

    event: str
    subject: UUID
    permissions: list[str] = Field(default_factory=list, max_length=40)


class Message(Frozen):
    """One message as it is sent. `payload` is checked against its kind's schema by `rules`."""

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
    error_code: FailureCode | None = None
    retryable: bool | None = None
    origin_agent: Agent | None = None
    attempt_number: int | None = Field(default=None, ge=0, le=32_767)
    urgency: Urgency = Urgency.INFORMATIONAL
    plan_markdown: Text | None = None
    approval_token: UUID | None = None
    constraints: ResearchConstraints | None = None


class MessageFields(TypedDict, total=False):
    """Optional fields of a message besides queue, kind, scope, sender, payload and ids."""

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
    constraints: ResearchConstraints | None


class MessageRefused(SilasError):
    """The message is invalid; `code` says why. Always a bug of the sender."""

    def __init__(self, code: ErrorCode, fault: str) -> None:
        super().__init__(code, f"This message cannot be queued: {fault}.")


@dataclass(frozen=True)
class LeaseRef:
    """Reference to a lease: the message's row and the lease's fence."""

    message_pk: UUID
    fence: int


@dataclass(frozen=True)
class Lease:
    """One delivery of one message. `fence` grows with every delivery, so that a former holder can no longer write."""

    message: QueueMessage
    fence: int
    processed: bool = False
    taken_at: float = field(default_factory=time.monotonic, compare=False)

    @property
    def held_for(self) -> float:
        """Seconds since it was leased."""
        return time.monotonic() - self.taken_at

    @property
    def ref(self) -> LeaseRef:
        return LeaseRef(self.message.pk, self.fence)


class LeaseLost(SilasError):
    """The message was leased again, returned or buried in the meantime; roll back what was done for it."""

    def __init__(self) -> None:
        super().__init__(ErrorCode.LEASE_LOST, "This delivery is no longer ours.")


class AlreadyProcessed(SilasError):
    """Another delivery of the message already had its effect; roll back, then ack (spec 19.2.3)."""

    def __init__(self) -> None:
        super().__init__(ErrorCode.ALREADY_PROCESSED, "This message has already had its effect.")
