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
    """A parameter by its published name; `alias` is an older spelling that is accepted too.

    `argument`: the service's name for it, "" where it is not passed on.
    """

    name: str
    type: str
    description: str
    argument: str = ""
    required: bool = False
    alias: str = ""
    enum: tuple[str, ...] = ()
    max_length: int = 0
    parse: Callable[[str], Any] = str

    def describe(self) -> dict[str, Any]:
        """Describe the parameter for introspection."""
        description: dict[str, Any] = {"name": self.name, "type": self.type, "required": self.required}
        description["description"] = self.description + (f" Also taken as '{self.alias}'." if self.alias else "")
        if self.enum:
            description["enum"] = list(self.enum)
        if self.max_length:
            description["maxLength"] = self.max_length
        return description


@dataclass(frozen=True)
class Operation:
    """`service` carries it out; `introspect` has none, because it reads these declarations."""

    name: str
    endpoint: Endpoint
    description: str
    params: tuple[Param, ...]
    returns: tuple[str, str]
    service: Callable[..., Reply] | None = None

    def run(self, principal: Principal, given: Mapping[str, Any]) -> Reply:
        passed = [param for param in self.params if param.argument and param.name in given]
        assert self.service is not None
        return self.service(principal, **{param.argument: param.parse(given[param.name]) for param in passed})


def _execution_id(given: str) -> UUID | None:
    """None for a blank text, which is left out. What is no id is the id of no execution."""
    try:
        return UUID(given) if given else None
    except ValueError:
        return UUID(int=0)


_AGENT = Param(
    "element_name",
    "string",
    "The agent's own name for itself.",
    argument="name",
    required=True,
    max_length=MAX_NAME_LENGTH,
)
_EXECUTION = Param(
    "execution_id",
    "string",
    "Which execution; the newest that runs when left out.",
    argument="execution_id",
    alias="executionId",
    max_length=36,
    parse=_execution_id,
)


_OPERATIONS = (
    Operation(
        "introspect",
        Endpoint.READ,
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
        "Open the loop for one stretch of work. Report every intended action before you act.",
        (_AGENT, Param("parameters", "object", "What the work is about; it is not kept.")),
        ("ExecutionState", "object"),
        services.execute_agent,
    ),
    Operation(
        "record_execution_step",
        Endpoint.CREATE,
        "Report the next intended action, with its target and detail, and read the directive: stopped means cease"
        " everything, continue false means do not act and tell the user, continue true means go on. After 20 steps,"
        " or as many as the policy says, a person has to confirm.",
        (
            _AGENT,
            Param(
                "next_action_hint",
                "string",
                "The intended action in words a person understands: what is done, to what, with which tool.",
                argument="hint",
                required=True,
                alias="nextActionHint",
                max_length=MAX_HINT_LENGTH,
            ),
            Param(
                "step_description",
                "string",
                "What the step before did.",
                "description",
                alias="stepDescription",
                max_length=4000,
            ),
            Param("outcome", "string", "What came of the step before.", "outcome", enum=tuple(StepOutcome.values)),
            Param("findings", "string", "What was found; it is not kept.", max_length=MAX_HINT_LENGTH),
            _EXECUTION,
        ),
        ("StepResult", "object"),
        services.record_step,
    ),
    Operation(
        "complete_execution",
        Endpoint.EXECUTE,
        "End the execution normally.",
        (
            _AGENT,
            Param("outcome", "string", "What came of it all.", "outcome", enum=("success", "failure", "partial")),
            Param("summary", "string", "What was done; it is not kept.", max_length=4000),
            _EXECUTION,
        ),
        ("ExecutionState", "object"),
        services.complete_execution,
    ),
    Operation(
        "abort_execution",
        Endpoint.EXECUTE,
        "End the execution early. A stopped agent stays stopped.",
        (_AGENT, Param("reason", "string", "Why; it is not kept.", max_length=4000), _EXECUTION),
        ("ExecutionState", "object"),
        services.abort_execution,
    ),
    Operation(
        "confirm_operation",
        Endpoint.EXECUTE,
        "Lift a pause that a person may confirm: with a confirmation token that a person handed out, never by the agent"
        " itself. 'operation' is the hint that was paused, and travels inside params.",
        (
            Param("operation", "string", "The paused hint.", "operation", required=True, max_length=MAX_HINT_LENGTH),
            Param(
                "confirmation_token",
                "string",
                "The token, conf_...",
                "token",
                alias="confirmationToken",
                max_length=80,
            ),
            _EXECUTION,
        ),
        ("Confirmation", "object"),
        services.confirm_operation,
    ),
    Operation(
        "verify_challenge",
        Endpoint.CREATE,
        "Submit the code that a person read at the console. It works once and for a few minutes.",
        (
            Param(
                "challenge_id",
                "string",
                "From the directive.",
                "challenge_id",
                required=True,
                alias="challengeId",
                max_length=80,
            ),
            Param("code", "string", "What the person read.", "code", required=True, max_length=80),
        ),
        ("Verification", "object"),
        services.verify_challenge,
    ),
)
OPERATIONS: dict[str, Operation] = {operation.name: operation for operation in _OPERATIONS}
