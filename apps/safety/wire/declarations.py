"""Declarations of the seven operations, from which routing, validation and introspection are derived."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from apps.safety import services
from apps.safety.enums import Endpoint, StepOutcome
from apps.safety.locks import MAX_NAME_LENGTH
from apps.safety.schemas import MAX_HINT_LENGTH, Principal, Reply


@dataclass(frozen=True)
class Param:
    """A parameter by its published name; `alias` is an older spelling that is accepted too."""

    name: str
    type: str
    description: str
    required: bool = False
    alias: str = ""
    enum: tuple[str, ...] = ()
    max_length: int = 0

    def describe(self) -> dict[str, Any]:
        """Describe the parameter for introspection."""
        description: dict[str, Any] = {"name": self.name, "type": self.type, "required": self.required}
        description["description"] = self.description + (f" Also taken as '{self.alias}'." if self.alias else "")
        if self.enum:
            description["enum"] = list(self.enum)
        if self.max_length:
            description["maxLength"] = self.max_length
        return description


Handler = Callable[[Principal, Mapping[str, Any]], Reply]


@dataclass(frozen=True)
class Operation:
    name: str
    endpoint: Endpoint
    category: str
    description: str
    params: tuple[Param, ...]
    returns: tuple[str, str]
    handler: Handler | None = None


_AGENT = Param("element_name", "string", "The agent's own name for itself.", required=True, max_length=MAX_NAME_LENGTH)
_EXECUTION = Param(
    "execution_id", "string", "Which execution; the newest that runs when left out.", alias="executionId", max_length=36
)


def _execution_id(given: Mapping[str, Any]) -> UUID | None:
    try:
        return UUID(given["execution_id"]) if given.get("execution_id") else None
    except ValueError:
        return UUID(int=0)


def _execute(principal: Principal, given: Mapping[str, Any]) -> Reply:
    return services.execute_agent(principal, name=given["element_name"])


def _record(principal: Principal, given: Mapping[str, Any]) -> Reply:
    return services.record_step(
        principal,
        name=given["element_name"],
        hint=given["next_action_hint"],
        description=given.get("step_description", ""),
        outcome=given.get("outcome", ""),
        execution_id=_execution_id(given),
    )


def _complete(principal: Principal, given: Mapping[str, Any]) -> Reply:
    outcome = given.get("outcome", "success")
    return services.complete_execution(
        principal, name=given["element_name"], outcome=outcome, execution_id=_execution_id(given)
    )


def _abort(principal: Principal, given: Mapping[str, Any]) -> Reply:
    return services.abort_execution(principal, name=given["element_name"], execution_id=_execution_id(given))


def _confirm(principal: Principal, given: Mapping[str, Any]) -> Reply:
    token = given.get("confirmation_token", "")
    return services.confirm_operation(
        principal, operation=given["operation"], token=token, execution_id=_execution_id(given)
    )


def _verify(principal: Principal, given: Mapping[str, Any]) -> Reply:
    return services.verify_challenge(principal, challenge_id=given["challenge_id"], code=given["code"])


_OPERATIONS = (
    Operation(
        "introspect",
        Endpoint.READ,
        "READ",
        "Discover the operations and types. Begin here: introspect with query 'operations'.",
        (
            Param("query", "string", "What to tell of.", required=True, enum=("operations", "types")),
            Param("name", "string", "One operation or type in detail.", max_length=120),
        ),
        ("Introspection", "object"),
    ),
    Operation(
        "execute_agent",
        Endpoint.EXECUTE,
        "EXECUTE",
        "Open the loop for one stretch of work. Report every intended action before you act.",
        (_AGENT, Param("parameters", "object", "What the work is about; it is not kept.")),
        ("ExecutionState", "object"),
        _execute,
    ),
    Operation(
        "record_execution_step",
        Endpoint.CREATE,
        "CREATE",
        "Report the next intended action, with its target and detail, and read the directive: stopped means cease"
        " everything, continue false means do not act and tell the user, continue true means go on. After 20 steps,"
        " or as many as the policy says, a person has to confirm.",
        (
            _AGENT,
            Param(
                "next_action_hint",
                "string",
                "The intended action in words a person understands: what is done, to what, with which tool.",
                required=True,
                alias="nextActionHint",
                max_length=MAX_HINT_LENGTH,
            ),
            Param("step_description", "string", "What the step before did.", alias="stepDescription", max_length=4000),
            Param("outcome", "string", "What came of the step before.", enum=tuple(StepOutcome.values)),
            Param("findings", "string", "What was found; it is not kept.", max_length=MAX_HINT_LENGTH),
            _EXECUTION,
        ),
        ("StepResult", "object"),
        _record,
    ),
    Operation(
        "complete_execution",
        Endpoint.EXECUTE,
        "EXECUTE",
        "End the execution normally.",
        (
            _AGENT,
            Param("outcome", "string", "What came of it all.", enum=("success", "failure", "partial")),
            Param("summary", "string", "What was done; it is not kept.", max_length=4000),
            _EXECUTION,
        ),
        ("ExecutionState", "object"),
        _complete,
    ),
    Operation(
        "abort_execution",
        Endpoint.EXECUTE,
        "EXECUTE",
        "End the execution early. A stopped agent stays stopped.",
        (_AGENT, Param("reason", "string", "Why; it is not kept.", max_length=4000), _EXECUTION),
        ("ExecutionState", "object"),
        _abort,
    ),
    Operation(
        "confirm_operation",
        Endpoint.EXECUTE,
        "EXECUTE",
        "Lift a pause that a person may confirm: with a confirmation token that a person handed out, never by the agent"
        " itself. 'operation' is the hint that was paused, and travels inside params.",
        (
            Param("operation", "string", "The paused hint.", required=True, max_length=MAX_HINT_LENGTH),
            Param(
                "confirmation_token",
                "string",
                "The token, conf_...",
                alias="confirmationToken",
                max_length=80,
            ),
            _EXECUTION,
        ),
        ("Confirmation", "object"),
        _confirm,
    ),
    Operation(
        "verify_challenge",
        Endpoint.CREATE,
        "CREATE",
        "Submit the code that a person read at the console. It works once and for a few minutes.",
        (
            Param("challenge_id", "string", "From the directive.", required=True, alias="challengeId", max_length=80),
            Param("code", "string", "What the person read.", required=True, max_length=80),
        ),
        ("Verification", "object"),
        _verify,
    ),
)
OPERATIONS: dict[str, Operation] = {operation.name: operation for operation in _OPERATIONS}
