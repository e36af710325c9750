"""How does a model reach a tool? Through a chain of pydantic-ai's own toolsets (spec 5.1 step 6), ours innermost.

Guarded → Prepared (what was told of) → Filtered (what the level allows) → ApprovalRequired (acting tools, where a
person has to say yes first). Each link only takes away, and the innermost asks the guard's door about every call, so
that nothing rests on a link. Sessions and work give the chain to the LLM room, which dispatches nothing itself.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from functools import cached_property
from typing import Any, assert_never

from jsonschema import Draft202012Validator
from pydantic_ai.exceptions import ApprovalRequired
from pydantic_ai.tools import RunContext, ToolDefinition
from pydantic_ai.toolsets.abstract import AbstractToolset, ToolsetTool
from pydantic_core import SchemaValidator, core_schema

from apps.approvals.schemas import GatePass
from apps.gates.allowance import Allowance
from apps.gates.schemas import GateSpec
from apps.guard.enums import Intent, RefusalCode
from apps.guard.rules import OUTSIDE
from apps.guard.schemas import Call, CallOutcome, Done, Failed, NeedsApproval, Refused, RunRef
from apps.guard.services import guarded_call
from kernel.provenance import Origin, Source, Sources, Traced, as_text

# What a model is told of one result; a tool that returns a book must not make the next question cost one.
MAX_TOLD_CHARS = 50_000
_ARGUMENTS = SchemaValidator(core_schema.dict_schema(core_schema.str_schema(), core_schema.any_schema()))

Observer = Callable[[str, Mapping[str, Any], CallOutcome], None]


@dataclass(frozen=True)
class OfferedTool:
    """A tool as a model sees it, and the intent under which the guard lets it pass. `parameters` is a JSON schema,
    `estimate` what one call costs, None for nothing; `leaves`: it goes to a host outside; `is_outside`: what it answers
    was written elsewhere than in the company's records."""

    name: str
    description: str
    parameters: dict[str, Any]
    intent: Intent = Intent.RUN_SKILL
    acting: bool = False
    estimate: Decimal | None = None
    leaves: bool = False
    is_outside: bool = False


@dataclass
class GuardedToolset(AbstractToolset[Any]):
    """The chain's first link: the whole catalogue of one run, each call through the door. A model gets it `chained`.

    `access` are the tools of the visitor's level, until `access_until`. `observe` hears of every call and its outcome,
    in order; `context` goes to the handlers. An answer that is no result is a sentence the model can read.
    `allowance`: what the gates of one call may ask. `sources`: what the model has been shown, at the moment
    of a call; left out, it is `asked` and what its calls brought.
    `passes`: what people have let through gates that ask.
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
        """How long one call may take."""
        return Call.patience_seconds

    @property
    def id(self) -> str | None:
        return "guarded"

    def chained(self, *, told: Collection[str] | None = None) -> AbstractToolset[Any]:
        """What a model gets. `told`: the tools that its briefing has room for, None for all."""
        prepared = self.prepared(lambda _, tools: [tool for tool in tools if told is None or tool.name in told])
        filtered = prepared.filtered(lambda _, tool: tool.name in self.access)
        return filtered.approval_required(lambda _, tool, args: self._has_to_wait(tool.name, args))

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        return {tool.name: self._shown(tool) for tool in self.tools}

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        offered = self._by_name.get(name)
        if offered is None:
            code = RefusalCode.TOOL_NOT_GRANTED
            return {"refused": code.value, "reason": str(code.label)}
        if wrong := _wrong_arguments(offered, tool_args):
            return {"refused": "invalid_arguments", "reason": wrong}
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
            brought = brought_by(
                offered.intent, outcome.value, leaves=offered.leaves, outside=offered.is_outside, args=tool_args
            )
            self.brought.append(brought)
        if self.observe is not None:
            self.observe(name, tool_args, outcome)
        return self._told(outcome)

    @cached_property
    def _by_name(self) -> dict[str, OfferedTool]:
        return {tool.name: tool for tool in self.tools}

    def _has_to_wait(self, name: str, args: dict[str, Any]) -> bool:
        """An acting call that a person has to decide; with wrong arguments the model is told first."""
        offered = self._by_name[name]
        return self.defer_acting and offered.acting and not _wrong_arguments(offered, args)

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
                return _told_of(value)
            case Refused(code=code, reason=reason):
                return {"refused": code.value, "reason": reason}
            case NeedsApproval(reason=reason, gate=gate):
                if self.defer_acting:
                    raise ApprovalRequired(metadata={"reason": reason, "gate": gate})
                return {"refused": "approval_missing", "reason": reason}
            case Failed(code=code, reason=reason, uncertain=uncertain):
                return {"failed": code, "reason": reason, "uncertain": uncertain}
        assert_never(outcome)


def brought_by(intent: Intent, value: Any, *, leaves: bool, outside: bool, args: Mapping[str, Any]) -> Source:
    """What a call brought, as a source of later values. What stands in an account of the company's (a mailbox) is
    private like its records, and written by anybody."""
    origin = Origin.TOOL if leaves or outside or intent in OUTSIDE else Origin.RECORDS
    origin = Origin.DOCUMENT if intent is Intent.RETRIEVE_CHUNKS else origin
    return Source(Traced(origin), as_text(value), as_text(args), is_private=outside and not leaves)


def _told_of(value: Any) -> Any:
    """The result as the model gets it: whole, or its beginning with a word that there was more."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    if len(text) <= MAX_TOLD_CHARS:
        return value
    return {"cut": f"The first {MAX_TOLD_CHARS} of {len(text)} characters.", "beginning": text[:MAX_TOLD_CHARS]}


def _wrong_arguments(tool: OfferedTool, args: Mapping[str, Any]) -> str:
    """What is wrong with the arguments, for the model to mend; empty when nothing is."""
    errors = Draft202012Validator(tool.parameters).iter_errors(args)
    return "; ".join(f"{error.json_path}: {error.message}" for error in errors)[:500]
