"""Schemas of model outputs: frozen pydantic models of contract silas 4. An output that does not fit is not used.

Every field is a *request* of the model: the harness decides about approval, memory, citations and handover.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

from kernel.unicode_safety import replace_unstorable
from llm.enums import (
    InteractionMode,
    InteractionRegister,
    MemoryOpType,
    MemoryQueryStrategy,
    MemoryType,
    PlanActionType,
)

# Far more than anybody reads; less than would weigh on every screen and every replay of the conversation.
MAX_MESSAGE, MAX_LINE = 24_000, 1_000

_NEEDED_BY_OP = {
    MemoryOpType.STORE: ("content",),
    MemoryOpType.UPDATE: ("memory_id", "content"),
    MemoryOpType.DELETE: ("memory_id",),
    MemoryOpType.LINK: ("memory_id", "link_to", "link_type"),
}


class ModelAnswer(BaseModel):
    """Frozen; keys that the contract does not know are dropped, not kept, and so is what no row can keep of a text.
    Quotes stay: they are compared with what is stored."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    @field_validator("*", mode="before")
    @classmethod
    def _can_be_kept(cls, value: Any, field: ValidationInfo) -> Any:
        if isinstance(value, list):
            return [cls._can_be_kept(item, field) for item in value]
        return replace_unstorable(value) if isinstance(value, str) and field.field_name != "quote" else value


class Citation(ModelAnswer):
    """A quote from a knowledge passage or, with `is_file`, from a file that the visitor sent. A model gives `quote` and
    `document_id`; `citations.locate` fills the rest or drops it.
    """

    quote: str
    document_id: str = ""
    version_id: str = ""
    start: int = 0
    end: int = 0
    title: str = ""
    url: str = ""
    is_file: bool = False


class MemoryQuery(ModelAnswer):
    strategy: MemoryQueryStrategy
    query: str
    max_results: int = Field(default=5, ge=1)
    max_tokens: int = Field(default=2000, ge=1)


class MemoryOp(ModelAnswer):
    op: MemoryOpType
    content: str | None = None
    memory_id: str | None = None
    memory_type: MemoryType = MemoryType.EPISODE
    tags: list[str] = Field(default_factory=list)
    entity_refs: list[str] = Field(default_factory=list)
    link_to: str | None = None
    link_type: str | None = None

    @model_validator(mode="after")
    def _has_what_its_op_needs(self) -> Self:
        missing = [name for name in _NEEDED_BY_OP[self.op] if getattr(self, name) is None]
        if missing:
            raise ValueError(f"{self.op} needs {', '.join(missing)}")
        return self


class PlanAction(ModelAnswer):
    action: PlanActionType
    plan_markdown: str | None = None
    continuation_of: str | None = None
    interaction_mode_override: InteractionMode | None = None


class AgentResponse(ModelAnswer):
    """`handoff` says that the visitor wants a person; `suggestions` are up to four short things the visitor may say
    next.
    """

    message: str = Field(min_length=1, max_length=MAX_MESSAGE)
    memory_queries: Annotated[list[MemoryQuery], Field(max_length=3)] = Field(default_factory=list)
    memory_ops: list[MemoryOp] = Field(default_factory=list)
    plan_action: PlanAction | None = None
    needs_approval: bool = True
    citations: list[Citation] = Field(default_factory=list)
    suggestions: Annotated[list[Annotated[str, Field(max_length=MAX_LINE)]], Field(max_length=4)] = Field(
        default_factory=list
    )
    handoff: bool = False


class RouteDecision(ModelAnswer):
    """`route` first, so that a streamed answer is known to be direct before its text begins."""

    route: Literal["direct", "planner"]
    reason: str
    interaction_register: InteractionRegister
    interaction_mode: InteractionMode
    context_profile: str = Field(min_length=1)
    continuation_of: str | None = None
    response: AgentResponse | None = None

    @model_validator(mode="after")
    def _answers_or_hands_on(self) -> Self:
        if (self.route == "direct") != (self.response is not None):
            raise ValueError("route direct requires a response; route planner requires none")
        return self

    @model_validator(mode="after")
    def _profile_is_registered(self, info: ValidationInfo) -> Self:
        registered = (info.context or {}).get("context_profiles")
        if registered is not None and self.context_profile not in registered:
            raise ValueError(f"context_profile must be one of {', '.join(registered)}")
        return self


class ExecutorAgentOutput(ModelAnswer):
    """What an executor says of its own run. Never a measure of success: verification decides (contract silas 4)."""

    summary: str = Field(min_length=1, max_length=MAX_MESSAGE)
    artifact_refs: Annotated[list[str], Field(max_length=100)] = Field(default_factory=list)
    next_steps: Annotated[list[Annotated[str, Field(max_length=MAX_LINE)]], Field(max_length=20)] = Field(
        default_factory=list
    )


class ScorerGroup(ModelAnswer):
    """Blocks of a window that belong together, by their ids."""

    reason: str = Field(max_length=MAX_LINE)
    block_ids: list[str]


class ScorerOutput(ModelAnswer):
    """What a scorer would keep, and what it would let go, least valuable first (spec 5.7)."""

    keep_groups: list[ScorerGroup]
    evict_groups: list[ScorerGroup]
