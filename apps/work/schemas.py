"""Work items as approved, and the results of running them (contract silas 5.5).

A `WorkItemSpec` is exactly what an approval binds; everything that changes while it runs lives on rows. All frozen.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Any, Self
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from apps.approvals.tokens.payloads import approvable_plan, plan_hash
from apps.approvals.tokens.schemas import Approvable
from apps.gates.schemas import AccessLevel, EscalationSpec, Expectation, GateSpec
from apps.work.budgets import Budget
from apps.work.enums import Lane, WorkItemType
from kernel.canonical import canonical_json
from llm.calls import PlannedCall, parse_calls
from llm.enums import InteractionMode

ALWAYS_ON = "always_on"


class Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_enum_values=True)


class VerificationCheck(Frozen):
    """A command that decides independently whether the work is done. Run as an argument list, never by a shell."""

    name: str = Field(min_length=1, max_length=120)
    run: str = Field(min_length=1, max_length=2000)
    expect: Expectation
    timeout: int = Field(default=60, gt=0, le=600)
    network: bool = False

    @field_validator("run")
    @classmethod
    def _is_an_argument_list(cls, run: str) -> str:
        if not shlex.split(run):
            raise ValueError("the command is empty")
        return run


class WorkItemSpec(Frozen):
    """One task, project or goal as approved."""

    id: str = Field(min_length=1, max_length=64)
    type: WorkItemType
    title: str = Field(min_length=1, max_length=300)
    parent: str | None = None
    spawned_by: str | None = None
    follow_up_of: str | None = None
    domain: str | None = None
    agent: Lane = Lane.EPHEMERAL
    budget: Budget = Budget()
    body: str
    interaction_mode: InteractionMode = InteractionMode.CONFIRM_ONLY_WHEN_REQUIRED
    input_artifacts_from: list[str] = Field(default_factory=list)
    verify: list[VerificationCheck] = Field(default_factory=list)
    gates: list[GateSpec] = Field(default_factory=list)
    skills: list[str] = Field(default_factory=list)
    access_levels: dict[str, AccessLevel] = Field(default_factory=dict)
    escalation: dict[str, EscalationSpec] = Field(default_factory=dict)
    schedule: str | None = None
    on_failure: str = "report"
    on_stuck: str = "consult_planner"
    failure_context: str | None = None
    tasks: list[str] = Field(default_factory=list)
    depends_on: list[str] = Field(default_factory=list)

    @model_validator(mode="before")
    @classmethod
    def _always_on_goal_is_a_stream(cls, fields: Any) -> Any:
        """Default the lane of an always-on goal; an explicit lane is kept (contract silas 5.5, gap)."""
        if not isinstance(fields, dict) or "agent" in fields:
            return fields
        standing = fields.get("type") == WorkItemType.GOAL and fields.get("schedule") == ALWAYS_ON
        return {**fields, "agent": Lane.STREAM} if standing else fields

    @model_validator(mode="after")
    def _lane_fits(self) -> Self:
        if self.agent == Lane.STREAM and self.type != WorkItemType.GOAL:
            raise ValueError("only a goal may run in the stream lane")
        return self

    def as_plan(self) -> dict[str, Any]:
        """Return the 23 fields in JSON mode, nulls included: what is hashed, shown and stored."""
        return self.model_dump(mode="json")

    def as_text(self) -> str:
        return canonical_json(self.as_plan())

    @property
    def plan_hash(self) -> str:
        return plan_hash(self.as_plan())

    def approvable(self, goal: WorkItemSpec | None = None) -> Approvable:
        """Return what an approval of this item binds; `goal`: the goal whose standing approval is used, if any."""
        return approvable_plan(self.as_plan(), goal=goal.approvable() if goal else None)

    @property
    def calls(self) -> tuple[PlannedCall, ...]:
        """The concrete calls of the body, in order. Raises `SilasError("bad_call_block")`."""
        return parse_calls(self.body)


@dataclass(frozen=True)
class CheckResult:
    """Result of one verification check (contract silas 5.3); `output` has at most 1000 characters."""

    name: str
    passed: bool
    reason: str
    output: str
    exit_code: int | None


@dataclass(frozen=True)
class VerificationReport:
    results: tuple[CheckResult, ...]

    @property
    def all_passed(self) -> bool:
        return all(result.passed for result in self.results)

    @property
    def failed(self) -> tuple[CheckResult, ...]:
        return tuple(result for result in self.results if not result.passed)

    def explain(self) -> str:
        """Return one line for each failed check, for the next attempt's briefing."""
        return "\n".join(f"- {result.name}: {result.reason}" for result in self.failed)


@dataclass(frozen=True)
class Proposal:
    """Outcome of a proposed plan: `card` waits for a person, `dispatched` runs, `refused` was rejected, with the reason
    and the `gate` if one rejected it."""

    outcome: str
    work_item_id: UUID | None = None
    reason: str = ""
    code: str = ""
    gate: str = ""
