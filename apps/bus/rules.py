"""Routes that messages may take, and retries of failed deliveries. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from pydantic import BaseModel, ValidationError

from apps.bus.enums import FAILING, QUEUE_OF, Kind, Queue, Sender
from apps.bus.schemas import (
    AutonomousRun,
    ConnectionOwed,
    ErrorPayload,
    ExecutionRequest,
    Guidance,
    Message,
    MessageRefused,
    PlanResult,
    ReplanRequest,
    ResearchRequest,
    ResearchResult,
    ReviewOwed,
    StatusPayload,
    UserMessage,
)
from kernel.error_codes import ErrorCode


@dataclass(frozen=True)
class Route:
    """Queues, senders and required content of a kind (spec 19.2.4).

    `payload` None takes any JSON object. With `errors` it may carry an `ErrorPayload` instead, which lifts `needs`
    except for a question to the planner.
    """

    queues: Collection[Queue]
    senders: Collection[Sender]
    payload: type[BaseModel] | None = None
    optional: bool = False
    errors: bool = False
    needs: tuple[str, ...] = ()


_PAYLOADS: Mapping[Kind, type[BaseModel]] = {Kind.REVIEW_OWED: ReviewOwed, Kind.CONNECTION_OWED: ConnectionOwed}
_HARNESS = {Sender.EXECUTOR, Sender.RUNTIME}
ROUTES: Mapping[Kind, Route] = {
    Kind.USER_MESSAGE: Route({Queue.PROXY}, {Sender.USER}, UserMessage),
    Kind.PLAN_RESULT: Route(
        {Queue.TRUSTED, Queue.RUNTIME},
        {Sender.PLANNER},
        PlanResult,
        optional=True,
        errors=True,
        needs=("plan_markdown",),
    ),
    Kind.RESEARCH_REQUEST: Route({Queue.EXECUTOR}, {Sender.PLANNER}, ResearchRequest, needs=("content", "constraints")),
    Kind.RESEARCH_RESULT: Route({Queue.PLANNER}, {Sender.EXECUTOR}, ResearchResult, errors=True),
    Kind.EXECUTION_STATUS: Route({Queue.TRUSTED, Queue.RUNTIME}, _HARNESS, StatusPayload, needs=("task_id",)),
    Kind.CONSULT_PLANNER: Route(
        {Queue.PLANNER}, _HARNESS, ErrorPayload, optional=True, errors=True, needs=("task_id", "attempt_number")
    ),
    Kind.PLANNER_GUIDANCE: Route(
        {Queue.RUNTIME}, {Sender.PLANNER}, Guidance, errors=True, needs=("task_id", "content")
    ),
    Kind.REPLAN_REQUEST: Route({Queue.PLANNER}, _HARNESS, ReplanRequest, needs=("task_id",)),
    Kind.EXECUTION_REQUEST: Route(
        {Queue.EXECUTOR}, {Sender.RUNTIME}, ExecutionRequest, optional=True, needs=("task_id",)
    ),
    Kind.AUTONOMOUS_SESSION: Route({Queue.EXECUTOR}, {Sender.RUNTIME}, AutonomousRun),
    Kind.SYSTEM_EVENT: Route(Queue, {Sender.RUNTIME}, optional=True, errors=True),
    **{kind: Route({queue}, {Sender.RUNTIME}, _PAYLOADS.get(kind), optional=True) for kind, queue in QUEUE_OF.items()},
}


def fault_of(message: Message) -> MessageRefused | None:
    """Return what is wrong with the combination of the message's fields, or None."""
    kind, payload, route = message.kind, message.payload, ROUTES[message.kind]
    if message.queue not in route.queues:
        return MessageRefused(ErrorCode.KIND_NOT_ON_QUEUE, f"{kind} does not belong on {message.queue}")
    if message.sender not in route.senders:
        return MessageRefused(ErrorCode.KIND_NOT_FROM_SENDER, f"{kind} is not for {message.sender} to send")
    if is_error(message):
        if not (route.errors and _fits(ErrorPayload, payload or {})):
            return MessageRefused(ErrorCode.PAYLOAD_WRONG, f"{kind} carries no such error")
    elif payload is None and not route.optional:
        return MessageRefused(ErrorCode.PAYLOAD_MISSING, f"{kind} needs a payload")
    elif payload is not None and route.payload is not None and not _fits(route.payload, payload):
        return MessageRefused(ErrorCode.PAYLOAD_WRONG, f"its payload is not a {route.payload.__name__}")
    for name in () if is_error(message) and kind != Kind.CONSULT_PLANNER else route.needs:
        if getattr(message, name) in (None, ""):
            return MessageRefused(ErrorCode(f"{name}_missing"), f"{kind} needs {name}")

    # An error must be in the headers, and error headers must be complete (19.2.1).
    is_failing = kind == Kind.EXECUTION_STATUS and (payload or {}).get("status") in FAILING
    if message.error_code is None:
        missing = is_failing or is_error(message)
        return MessageRefused(ErrorCode.ERROR_CODE_MISSING, "a failure says why") if missing else None
    if message.retryable is None or message.origin_agent is None or message.attempt_number is None:
        words = "an error says whether to try again, who saw it and in which attempt"
        return MessageRefused(ErrorCode.ERROR_HEADERS_MISSING, words)
    if kind != Kind.EXECUTION_STATUS and not is_error(message):
        return MessageRefused(ErrorCode.PAYLOAD_WRONG, "an error is explained in its payload")
    return None


def is_error(message: Message) -> bool:
    """True when the payload is an `ErrorPayload`, or was meant to be one."""
    return message.payload is not None and "error_code" in message.payload


def _fits(schema: type[BaseModel], payload: Mapping[str, object]) -> bool:
    try:
        schema.model_validate(payload)
    except ValidationError:
        return False
    return True


def scope_of(kind: Kind, subject: object) -> str:
    """Scope of a job. Each kind has its own, so that none waits behind another kind's about the same thing."""
    return f"{kind}:{subject}"


# Failed deliveries (nack) and expired leases both count (contract silas 15).
MAX_ATTEMPTS = 5
MAX_WAIT_SECONDS = 60
# A recurring job whose deliveries all failed is retried after this, because its work stays due.
RECURRING_RETRY_SECONDS = 3600
