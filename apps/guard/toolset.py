"""Offer tools to a model through a chain of pydantic-ai's toolsets (spec 5.1 step 6), with ours innermost.

Guarded → Prepared (tools that fit the prompt) → Filtered (tools that the access level allows) → ApprovalRequired
(acting tools that a person has to approve first). Each link only removes tools, and the innermost makes every call a
guarded call, so that security depends on no link. `apps.sessions` and `apps.work` pass the chain to `llm`, which
dispatches nothing itself."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any, assert_never

from jsonschema import Draft202012Validator
from pydantic_ai.exceptions import ApprovalRequired
from pydantic_ai.tools import RunContext, ToolDefinition
from pydantic_ai.toolsets.abstract import AbstractToolset, ToolsetTool
from pydantic_core import SchemaValidator, core_schema

from apps.approvals.tokens.schemas import GatePass
from apps.gates.allowance import Allowance
from apps.gates.schemas import GateSpec
from apps.guard.enums import RefusalCode
from apps.guard.offered_tools import OfferedTool, source_of_result
from apps.guard.schemas import Call, CallOutcome, Done, Failed, NeedsApproval, Refused, RunRef
from apps.guard.services import guarded_call
from kernel.provenance import Source, Sources

# A model reads at most so much of one result, so that a tool that returns a book does not make the next request cost
# one.
MAX_RESULT_CHARS = 50_000
_ARGUMENTS = SchemaValidator(core_schema.dict_schema(core_schema.str_schema(), core_schema.any_schema()))

Observer = Callable[[str, Mapping[str, object], CallOutcome], None]


@dataclass
class GuardedToolset(AbstractToolset[Any]):
    """The innermost toolset: all tools of one run, each call a guarded call. A model gets it `chained`.

    `access` are the tools of the visitor's level, until `access_until`. `observe` is called with every call and its
    outcome, in order; `context` goes to the handlers. `allowance` limits what the gates of one call may ask a model.
    `sources` returns what the model has been shown up to a call; by default that is `asked` and the results of its
    calls. `passes` are people's approvals at gates. A refusal is returned as a sentence that the model can read.
    """

    run: RunRef
    tools: tuple[OfferedTool, ...]
    access: frozenset[str]
    gates: tuple[GateSpec, ...] = ()
    context: Mapping[str, Any] = field(default_factory=dict)
    access_until: datetime | None = None
    defer_acting: bool = True
    observe: Observer | None = None
    allowance: Callable[[], Allowance] = Allowance
    sources: Callable[[], Sources] | None = None
    asked: tuple[Source, ...] = ()
    brought: list[Source] = field(default_factory=list)
    passes: tuple[GatePass, ...] = ()

    @property
    def patience_seconds(self) -> float:
        return Call.patience_seconds

    @property
    def id(self) -> str | None:
        return "guarded"

    def chained(self, *, names: Collection[str] | None = None) -> AbstractToolset[Any]:
        """Return the toolset for a model. `names` are the tools that fit its prompt, None for all."""
        prepared = self.prepared(lambda _, tools: [tool for tool in tools if names is None or tool.name in names])
        filtered = prepared.filtered(lambda _, tool: tool.name in self.access)
        return filtered.approval_required(lambda _, tool, args: self._must_wait(tool.name, args))

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        return {tool.name: self._toolset_tool(tool) for tool in self.tools}

    async def call_tool(
        self, name: str, tool_args: dict[str, object], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> object:
        offered = self._by_name.get(name)
        if offered is None:
            code = RefusalCode.TOOL_NOT_GRANTED
            return {"refused": code.value, "reason": str(code.label)}
        # Before the guard: arguments that fit no schema can neither be approved nor run, and cost the model only a
        # retry.
        if errors := _argument_errors(offered, tool_args):
            return {"refused": "invalid_arguments", "reason": errors}
        call = Call(
            tool=name,
            args=tool_args,
            access=self.access,
            access_until=self.access_until,
            acting=offered.acting,
            gates=self.gates,
            passes=self.passes,
            estimate=offered.estimate,
            patience_seconds=self.patience_seconds,
            leaves=offered.leaves,
            shown=self.sources() if self.sources is not None else Sources((*self.asked, *self.brought)),
        )
        outcome = await guarded_call(self.run, offered.intent, call, context=self.context, allowance=self.allowance())
        if self.sources is None and isinstance(outcome, Done):
            source = source_of_result(
                offered.intent, outcome.value, leaves=offered.leaves, outside=offered.is_outside, args=tool_args
            )
            self.brought.append(source)
        if self.observe is not None:
            self.observe(name, tool_args, outcome)
        return self._result_for_model(outcome)

    @cached_property
    def _by_name(self) -> dict[str, OfferedTool]:
        return {tool.name: tool for tool in self.tools}

    def _must_wait(self, name: str, args: dict[str, object]) -> bool:
        """True for an acting call that a person has to approve; one with invalid arguments is refused first."""
        offered = self._by_name[name]
        return self.defer_acting and offered.acting and not _argument_errors(offered, args)

    def _toolset_tool(self, tool: OfferedTool) -> ToolsetTool[Any]:
        definition = ToolDefinition(
            name=tool.name,
            description=tool.description,
            parameters_json_schema=tool.parameters,
            sequential=tool.acting,
        )
        return ToolsetTool(toolset=self, tool_def=definition, max_retries=1, args_validator=_ARGUMENTS)

    def _result_for_model(self, outcome: CallOutcome) -> object:
        """Return the outcome as the model reads it. Where a person can still approve, the run is paused instead."""
        match outcome:
            case Done(value=value):
                return _truncated(value)
            case Refused(code=code, reason=reason):
                return {"refused": code.value, "reason": reason}
            case NeedsApproval(reason=reason, gate=gate):
                if self.defer_acting:
                    raise ApprovalRequired(metadata={"reason": reason, "gate": gate})
                return {"refused": "approval_missing", "reason": reason}
            case Failed(code=code, reason=reason, uncertain=uncertain):
                return {"failed": code, "reason": reason, "uncertain": uncertain}
        assert_never(outcome)


def _truncated(value: object) -> Any:
    """Return the result whole, or its beginning with a note that there was more."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    if len(text) <= MAX_RESULT_CHARS:
        return value
    return {"cut": f"The first {MAX_RESULT_CHARS} of {len(text)} characters.", "beginning": text[:MAX_RESULT_CHARS]}


def _argument_errors(tool: OfferedTool, args: Mapping[str, object]) -> str:
    """Return what is wrong with the arguments, for the model to correct; "" if nothing is."""
    errors = Draft202012Validator(tool.parameters).iter_errors(args)
    return "; ".join(f"{error.json_path}: {error.message}" for error in errors)[:500]
