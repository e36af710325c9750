"""What a gate provider is, and what its evaluation gets and answers.

Values of the context reach a script as environment variables only, never as part of a command.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from apps.gates import rules
from apps.gates.allowance import AskModel
from apps.gates.detectors.normalise import Spellings
from apps.gates.enums import GateAction, GateCode, GateProvider, GateTrigger
from apps.gates.schemas import GateResult, GateSpec
from apps.gates.settings_checks import Problems
from kernel.canonical import canonical_json
from sandbox.spec import Mount

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise


@dataclass(frozen=True)
class Request:
    """Input of one evaluation. `files` are a script's read-only mounts. `is_level_gate`: some access level requires
    this gate, so without a claim it only withholds the level (contract silas 16). `ask` is the model, if there is one.
    `spellings` are shared by the run."""

    gate: GateSpec
    context: Mapping[str, Any]
    files: Mapping[str, Mount]
    is_level_gate: bool = False
    ask: AskModel | None = None
    spellings: Spellings = field(default_factory=Spellings)


class Provider(ABC):
    """One way to check something. Registered once, in `apps.gates.providers`."""

    kind: ClassVar[GateProvider]
    label: ClassVar[StrOrPromise]
    # Waits for another program or a model: never evaluated in an event loop, or while rows are locked.
    is_slow: ClassVar[bool] = False
    # Sends what it checks to a model, which costs.
    asks_model: ClassVar[bool] = False
    # Reads mounted files besides the value.
    reads_files: ClassVar[bool] = False
    # Whether the gate's `type` says how it decides.
    has_condition: ClassVar[bool] = False

    @abstractmethod
    def problems(self, gate: GateSpec) -> Problems:
        """What is wrong with the settings of a gate of this provider."""

    @abstractmethod
    def evaluate(self, request: Request) -> GateResult:
        """Decide. Any exception blocks."""

    @property
    def reads_only_text(self) -> bool:
        """Decides from the value alone, so that it can check content, and an answer while it grows."""
        return not (self.asks_model or self.reads_files)


def extract_value(gate: GateSpec, context: Mapping[str, object]) -> object:
    """The variable that the gate names, or the text of its trigger."""
    if gate.extract:
        return rules.lookup(context, gate.extract)
    if gate.on == GateTrigger.ON_TOOL_CALL:
        return canonical_json(context.get("tool_args") or {})
    if gate.on == GateTrigger.ON_CONTENT:
        return context.get("content")
    return context.get("message" if gate.on == GateTrigger.EVERY_USER_MESSAGE else "response")


def changes_of(gate: GateSpec, changed: object) -> dict[str, object]:
    if gate.on == GateTrigger.ON_TOOL_CALL:
        return {"tool_args": {gate.extract: changed}} if gate.extract else {}
    if gate.on == GateTrigger.ON_CONTENT:
        return {}
    return {"message" if gate.on == GateTrigger.EVERY_USER_MESSAGE else "response": changed}


def stored_value(value: object) -> str | float | None:
    """The part of the value that is stored with the result: a number, or a short text."""
    number = None if isinstance(value, str) else rules.as_number(value)
    return number if number is not None else value[:200] if isinstance(value, str) else None


def result_of(gate: GateSpec, action: GateAction, code: GateCode, reason: str = "", **more: Any) -> GateResult:
    return GateResult(gate.name, gate.lane, action, code, reason, gate.on_block, **more)
