"""How does a model reach a tool? Through a pydantic-ai toolset whose every call goes through the guard's door.

It shows only what the visitor's level allows; an answer that is no result is a sentence the model can read. Acting
tools are deferred where a person has to say yes first (chat), and made where the run carries an approval (work).
Sessions and work give it to the LLM room, which dispatches nothing itself (contract silas 4.24).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, assert_never

from jsonschema import Draft202012Validator
from pydantic_ai.exceptions import ApprovalRequired
from pydantic_ai.tools import RunContext, ToolDefinition
from pydantic_ai.toolsets.abstract import AbstractToolset, ToolsetTool
from pydantic_core import SchemaValidator, core_schema

from apps.gates.schemas import GateSpec
from apps.guard.enums import Intent
from apps.guard.schemas import Call, CallOutcome, Done, Failed, NeedsApproval, Refused, RunRef
from apps.guard.services import guarded_call

_ARGUMENTS = SchemaValidator(core_schema.dict_schema(core_schema.str_schema(), core_schema.any_schema()))

Observer = Callable[[str, Mapping[str, Any], CallOutcome], None]


@dataclass(frozen=True)
class OfferedTool:
    """A tool as a model sees it, and the intent under which the guard lets it pass. `parameters` is a JSON schema."""

    name: str
    description: str
    parameters: dict[str, Any]
    intent: Intent = Intent.RUN_SKILL
    acting: bool = False


@dataclass
class GuardedToolset(AbstractToolset[Any]):
    """The tools of one run. `observe` hears of every call and its outcome, in order; `context` goes to the handlers."""

    run: RunRef
    tools: tuple[OfferedTool, ...]
    access: frozenset[str]
    gates: tuple[GateSpec, ...] = ()
    context: Mapping[str, Any] = field(default_factory=dict)
    access_until: datetime | None = None
    defer_acting: bool = True
    observe: Observer | None = None

    @property
    def id(self) -> str | None:
        return "guarded"

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        return {tool.name: self._shown(tool) for tool in self.tools if tool.name in self.access}

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        offered = next(each for each in self.tools if each.name == name)
        if wrong := _wrong_arguments(offered, tool_args):
            return {"refused": "invalid_arguments", "reason": wrong}
        if offered.acting and self.defer_acting:
            raise ApprovalRequired(metadata={"reason": "acting"})
        call = Call(
            tool=name,
            args=tool_args,
            access=self.access,
            access_until=self.access_until,
            acting=offered.acting,
            gates=self.gates,
        )
        outcome = await guarded_call(self.run, offered.intent, call, context=self.context)
        if self.observe is not None:
            self.observe(name, tool_args, outcome)
        return self._told(outcome)

    def _shown(self, tool: OfferedTool) -> ToolsetTool[Any]:
        definition = ToolDefinition(
            name=tool.name,
            description=tool.description,
            parameters_json_schema=tool.parameters,
            sequential=tool.acting,
        )
        return ToolsetTool(toolset=self, tool_def=definition, max_retries=1, args_validator=_ARGUMENTS)

    def _told(self, outcome: CallOutcome) -> Any:
        """The outcome for the model. Where a person can still say yes, the run is paused instead."""
        match outcome:
            case Done(value=value):
                return value
            case Refused(code=code, reason=reason):
                return {"refused": code.value, "reason": reason}
            case NeedsApproval(reason=reason, gate=gate):
                if self.defer_acting:
                    raise ApprovalRequired(metadata={"reason": reason, "gate": gate})
                return {"refused": "approval_missing", "reason": reason}
            case Failed(code=code, reason=reason, uncertain=uncertain):
                return {"failed": code, "reason": reason, "uncertain": uncertain}
        assert_never(outcome)


def _wrong_arguments(tool: OfferedTool, args: Mapping[str, Any]) -> str:
    """What is wrong with the arguments, for the model to mend; empty when nothing is."""
    errors = Draft202012Validator(tool.parameters).iter_errors(args)
    return "; ".join(f"{error.json_path}: {error.message}" for error in errors)[:500]
