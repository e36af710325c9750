"""What does a card of each kind carry? Shapes of its payload, which the yes binds, and of what is shown beside it.

Whatever a person reads of an action stands in the payload or is checked against it, so that nobody approves something
else than is shown. Unknown fields are refused (spec 8.1, 8.2, 0.5.3; contract silas 12 and 13). Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit
from uuid import UUID

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from apps.approvals.enums import ApprovalScope, Risk
from apps.approvals.schemas import Fact, Frozen, UtcDatetime

Key = Annotated[str, Field(min_length=1, max_length=120)]
Line = Annotated[str, Field(min_length=1, max_length=300)]
Prose = Annotated[str, Field(max_length=20_000)]
Share = Annotated[float, Field(ge=0, le=1)]
_LOOPBACK = {"127.0.0.1", "localhost", "::1"}


def _safe_address(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK):
        return value
    raise ValueError("not an https address")


Address = Annotated[str, Field(max_length=2000), AfterValidator(_safe_address)]


@dataclass(frozen=True)
class About:
    """The row that a card is about, where that came from, and who asks: `user:<id>` when a member, or an agent acting
    for them, does."""

    kind: str
    id: UUID
    deployment_id: UUID | None = None
    session_id: UUID | None = None
    requested_by: str = ""


@dataclass(frozen=True)
class Binding:
    """What a yes would bind, how grave that is, and how far the yes reaches. `destroys`: it deletes or revokes
    something outside. `declared_risk`: what a skill or plan says. `lifted`: an outsider or the model decided where
    something goes. `token_seconds`: how long the yes holds. `reads`: the records whose state the card shows, by book,
    key and revision; the yes counts while they stay so."""

    scope: ApprovalScope
    payload: Mapping[str, Any]
    reversible: bool
    destroys: bool = False
    declared_risk: Risk = Risk.LOW
    lifted: bool = False
    max_executions: int = 1
    token_seconds: int | None = None
    reads: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True)
class CardText:
    """What every card says in words (spec 0.5.3). `consequence`: what each button does, by its answer."""

    intent: str
    rationale: str
    consequence: Mapping[str, str]
    affected: str = ""
    facts: Sequence[Fact] = ()
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def fact_lines(self) -> list[str]:
        return [line for fact in self.facts for line in astuple(fact) if line]


class Nothing(Frozen):
    """A kind whose payload says all that there is to show."""


class Bound(Frozen):
    """A payload with exactly the keys that its scope binds (contract silas 8); here only what a card shows of it."""

    model_config = ConfigDict(frozen=True, extra="allow")


class Plan(Bound):
    id: Key
    title: Line
    body: str


class Action(Bound):
    """One call with its arguments."""

    tool: Key
    args: dict[str, Any]

    @property
    def texts(self) -> list[str]:
        """Every text among the arguments."""
        return [value for value in self.args.values() if isinstance(value, str)]


class GateReason(Frozen):
    """A gate that wants a person to look, and why."""

    name: Key
    reason: Annotated[str, Field(max_length=300)] = ""


class GatePayload(Bound):
    """What gates hold back: the text of a message or an answer, a call with its arguments, or a step with its call."""

    pause_id: Key
    trigger: Key
    gates: Annotated[list[GateReason], Field(min_length=1, max_length=32)]
    holds: Annotated[dict[str, Any], Field(min_length=1)]


class BatchPayload(Frozen):
    """The batch binding of contract silas 8; the order of the items is part of it."""

    goal_id: Key
    action: Key
    item_ids: Annotated[list[Key], Field(min_length=1, max_length=200)]
    count: int

    @model_validator(mode="after")
    def _counts(self) -> BatchPayload:
        if self.count != len(self.item_ids) or len(set(self.item_ids)) != self.count:
            raise ValueError("count and item_ids do not agree")
        return self


class LineFact(Frozen):
    """One line about a record: what is there now and what would be, or a text."""

    label: Annotated[str, Field(max_length=300)]
    text: Annotated[str, Field(max_length=310)] | None = None
    before: Annotated[str, Field(max_length=310)] | None = None
    after: Annotated[str, Field(max_length=310)] | None = None


class BatchItem(Frozen):
    item_id: Key
    title: Line
    actor: Annotated[str, Field(max_length=120)] = ""
    occurred_at: UtcDatetime | None = None
    reason: Annotated[str, Field(max_length=500)] = ""
    confidence: Share | None = None
    unusual: bool = False
    facts: Annotated[list[LineFact], Field(max_length=40)] = Field(default_factory=list)


class BatchBody(Frozen):
    """The lines of a batch. `unusual`: it does not look like the others, is marked and not ticked (spec 0.5.4)."""

    items: list[BatchItem]
    reason_summary: Annotated[str, Field(max_length=1000)] = ""
    confidence_min: Share | None = None


class DraftBody(Frozen):
    """What it answers, the words to send as they stand in the payload, and what else is known: to whom and how."""

    context: Prose = ""
    draft: Annotated[str, Field(min_length=1, max_length=20_000)]
    metadata: dict[str, Any] = Field(default_factory=dict)


class Option(Frozen):
    label: Annotated[str, Field(min_length=1, max_length=80)]
    value: Annotated[str, Field(min_length=1, max_length=60, pattern=r"^[\w.:-]+$")]
    approval_tier: Literal["tap"] = "tap"


def _distinct(options: list[Option]) -> list[Option]:
    values = [option.value for option in options]
    if len(set(values)) != len(values) or {"approve", "decline"} & set(values):
        raise ValueError("options need values of their own")
    return options


Options = Annotated[list[Option], Field(max_length=8), AfterValidator(_distinct)]


class DecisionPayload(Frozen):
    question: Annotated[str, Field(min_length=1, max_length=500)]
    options: Annotated[Options, Field(min_length=1)]
    allow_freetext: bool = False


class SuggestionPayload(Frozen):
    suggestion_id: Key
    scope_id: Key
    source: Literal["idle_heartbeat", "post_execution", "goal_monitor", "connection_check"]
    proposed_work_item_id: str | None = None
    cooldown_key: Key
    options: Options = Field(default_factory=list)


class Change(Frozen):
    key: Literal[
        "standing.scope",
        "standing.max_executions",
        "standing.expires_at",
        "batch_review.default_size",
        "batch_review.confidence.high_min",
    ]
    current_value: Annotated[str, Field(max_length=200)]
    proposed_value: Annotated[str, Field(max_length=200)]
    direction: Literal["widen", "tighten"]


class AutonomyPayload(Frozen):
    """The six bound keys of contract silas 8."""

    changes: Annotated[list[Change], Field(min_length=1, max_length=10)]
    scope_id: Key
    goal_id: str | None
    sample_size: Annotated[int, Field(ge=0)]
    correction_rate: Share
    evidence_window: Line


class Outcome(Frozen):
    title: Line
    outcome: Annotated[str, Field(max_length=300)] = ""
    ok: bool = True


class PostExecutionBody(Frozen):
    """What ran and what came of it; the payload is the batch of reverse actions that undoing would run."""

    results: Annotated[list[Outcome], Field(min_length=1, max_length=200)]
    proof: Annotated[str, Field(max_length=300)] = ""


class SkillPayload(Bound):
    """A version of a skill, bound by the hash of its content and of the report about it."""

    skill: Key
    content_hash: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class SourceFile(Frozen):
    path: Annotated[str, Field(min_length=1, max_length=200)]
    text: Prose


class SkillBody(Frozen):
    """What a person reads of a version: its instructions, its scripts, and what differs from the one in use."""

    version: Annotated[str, Field(max_length=40)] = ""
    description: Annotated[str, Field(max_length=1024)] = ""
    source: Annotated[str, Field(max_length=300)] = ""
    scripts: list[Key] = Field(default_factory=list)
    tools: list[Key] = Field(default_factory=list)
    report: Annotated[list[Line], Field(max_length=100)] = Field(default_factory=list)
    instructions: Prose = ""
    files: Annotated[list[SourceFile], Field(max_length=20)] = Field(default_factory=list)
    diff: Annotated[str, Field(max_length=60_000)] = ""


class BudgetPayload(Bound):
    """Room to spend: each limit before and after."""

    before: dict[Key, Any]
    after: Annotated[dict[Key, Any], Field(min_length=1, max_length=12)]


class RightsPayload(Bound):
    """What a connection may do, before and after."""

    connection_id: Key
    before: list[Key]
    after: Annotated[list[Key], Field(min_length=1, max_length=40)]


class ConnectionBody(Frozen):
    service: Key
    provider: Annotated[str, Field(max_length=120)] = ""
    skill: Key
    auth_strategy: Literal["device_code", "browser_redirect", "secure_input"]


class PermissionBody(Frozen):
    connection_name: Line
    reason: Annotated[str, Field(min_length=1, max_length=500)]


class Recovery(Frozen):
    """A way out of a failed connection; its `action` is the answer's value."""

    action: Annotated[str, Field(min_length=1, max_length=60, pattern=r"^[\w.:-]+$")]
    label: Annotated[str, Field(min_length=1, max_length=80)]
    description: Annotated[str, Field(max_length=300)] = ""
    risk_level: Literal["low", "medium", "high"] = "low"


class FailurePayload(Frozen):
    failure_type: Literal[
        "enterprise_policy_block",
        "consent_denied",
        "mfa_required",
        "rate_limited",
        "service_unavailable",
        "token_revoked",
        "unknown",
    ]
    service: Key
    message: Annotated[str, Field(min_length=1, max_length=500)]
    recovery_options: Annotated[list[Recovery], Field(max_length=6)]


class Guidance(Frozen):
    instructions: Annotated[str, Field(max_length=1000)]
    help_url: Address | None = None
