"""Routes that messages may take, and retries of failed deliveries. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError

from apps.bus.enums import FAILING, QUEUE_OF, ExecutionStatus, Kind, Queue, Sender, State
from apps.bus.schemas import (
    AutonomousRun,
    ConnectionOwed,
    ErrorPayload,
    ExecutionRequest,
    Guidance,
    Message,
    PlanRequest,
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

    queues: frozenset[Queue]
    senders: frozenset[Sender]
    payload: type[BaseModel] | None = None
    optional: bool = False
    errors: bool = False
    needs: tuple[str, ...] = ()


def _route(queues: set[Queue], senders: set[Sender], payload: type[BaseModel] | None = None, **more: Any) -> Route:
    return Route(frozenset(queues), frozenset(senders), payload, **more)


_PAYLOADS: Mapping[Kind, type[BaseModel]] = {Kind.REVIEW_OWED: ReviewOwed, Kind.CONNECTION_OWED: ConnectionOwed}
_HARNESS = {Sender.EXECUTOR, Sender.RUNTIME}
ROUTES: Mapping[Kind, Route] = {
    Kind.USER_MESSAGE: _route({Queue.PROXY}, {Sender.USER}, UserMessage),
    Kind.PLAN_REQUEST: _route({Queue.PLANNER}, {Sender.PROXY}, PlanRequest, optional=True, needs=("content",)),
    Kind.PLAN_RESULT: _route(
        {Queue.TRUSTED, Queue.RUNTIME},
        {Sender.PLANNER},
        PlanResult,
        optional=True,
        errors=True,
        needs=("plan_markdown",),
    ),
    Kind.RESEARCH_REQUEST: _route(
        {Queue.EXECUTOR}, {Sender.PLANNER}, ResearchRequest, needs=("content", "constraints")
    ),
    Kind.RESEARCH_RESULT: _route({Queue.PLANNER}, {Sender.EXECUTOR}, ResearchResult, errors=True),
    Kind.EXECUTION_STATUS: _route({Queue.TRUSTED, Queue.RUNTIME}, _HARNESS, StatusPayload, needs=("task_id",)),
    Kind.CONSULT_PLANNER: _route(
        {Queue.PLANNER}, _HARNESS, ErrorPayload, optional=True, errors=True, needs=("task_id", "attempt_number")
    ),
    Kind.PLANNER_GUIDANCE: _route(
        {Queue.RUNTIME}, {Sender.PLANNER}, Guidance, errors=True, needs=("task_id", "content")
    ),
    Kind.REPLAN_REQUEST: _route({Queue.PLANNER}, _HARNESS, ReplanRequest, needs=("task_id",)),
    Kind.EXECUTION_REQUEST: _route(
        {Queue.EXECUTOR}, {Sender.RUNTIME}, ExecutionRequest, optional=True, needs=("task_id",)
    ),
    Kind.AUTONOMOUS_SESSION: _route({Queue.EXECUTOR}, {Sender.RUNTIME}, AutonomousRun),
    Kind.SYSTEM_EVENT: _route(set(Queue), {Sender.RUNTIME}, optional=True, errors=True),
    **{kind: _route({queue}, {Sender.RUNTIME}, _PAYLOADS.get(kind), optional=True) for kind, queue in QUEUE_OF.items()},
}


@dataclass(frozen=True)
class Fault:
    """Why a message is refused: a stable code, and its explanation for developers."""

    code: ErrorCode
    words: str


def fault_of(message: Message) -> Fault | None:
    """Return what is wrong with the combination of the message's fields, or None."""
    route = ROUTES[message.kind]
    if message.queue not in route.queues:
        return Fault(ErrorCode.KIND_NOT_ON_QUEUE, f"{message.kind} does not belong on {message.queue}")
    if message.sender not in route.senders:
        return Fault(ErrorCode.KIND_NOT_FROM_SENDER, f"{message.kind} is not for {message.sender} to send")
    return _payload_fault(message, route) or _missing(message, route) or _error_fault(message)


def _payload_fault(message: Message, route: Route) -> Fault | None:
    if is_error(message):
        fits = route.errors and _fits(ErrorPayload, message.payload or {})
        return None if fits else Fault(ErrorCode.PAYLOAD_WRONG, f"{message.kind} carries no such error")
    if message.payload is None:
        return None if route.optional else Fault(ErrorCode.PAYLOAD_MISSING, f"{message.kind} needs a payload")
    if route.payload is not None and not _fits(route.payload, message.payload):
        return Fault(ErrorCode.PAYLOAD_WRONG, f"its payload is not a {route.payload.__name__}")
    return None


def _missing(message: Message, route: Route) -> Fault | None:
    for name in () if is_error(message) and message.kind != Kind.CONSULT_PLANNER else route.needs:
        if getattr(message, name) in (None, ""):
            return Fault(ErrorCode(f"{name}_missing"), f"{message.kind} needs {name}")
    return None


def _error_fault(message: Message) -> Fault | None:
    """An error must be in the headers, and error headers must be complete (19.2.1)."""
    status = (message.payload or {}).get("status") if message.kind == Kind.EXECUTION_STATUS else None
    if status is not None and ExecutionStatus(status) in FAILING and message.error_code is None:
        return Fault(ErrorCode.ERROR_CODE_MISSING, f"a status of {status} says why")
    if message.error_code is None:
        return Fault(ErrorCode.ERROR_CODE_MISSING, "its payload is an error") if is_error(message) else None
    if message.retryable is None or message.origin_agent is None or message.attempt_number is None:
        return Fault(
            ErrorCode.ERROR_HEADERS_MISSING, "an error says whether to try again, who saw it and in which attempt"
        )
    if message.kind != Kind.EXECUTION_STATUS and not is_error(message):
        return Fault(ErrorCode.PAYLOAD_WRONG, "an error is explained in its payload")
    return None


def is_error(message: Message) -> bool:
    """True when the payload is an `ErrorPayload`, or was meant to be one."""
    return message.payload is not None and "error_code" in message.payload


def _fits(schema: type[BaseModel], payload: Mapping[str, Any]) -> bool:
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
_MAX_WAIT_SECONDS = 60
# A recurring job whose deliveries all failed is retried after this, because its work stays due.
RECURRING_RETRY_SECONDS = 3600


def state_after_failure(attempts: int) -> State:
    """`attempts` counts the failed deliveries, this one included."""
    return State.DEAD if attempts >= MAX_ATTEMPTS else State.QUEUED


def wait_after_failure(attempts: int) -> int:
    """Seconds before the next delivery: 1, 2, 4, 8, at most a minute. The scope waits too, so order holds."""
    return min(1 << (attempts - 1), _MAX_WAIT_SECONDS)
