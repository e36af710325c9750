"""Requests to the guard and their outcomes.

A refusal is a value: callers match `CallOutcome` exhaustively. Amounts are US dollars as Decimal with nine digits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from apps.approvals.tokens.payloads import tool_call_payload
from apps.approvals.tokens.schemas import GatePass
from apps.bus.schemas import LeaseRef
from apps.gates.content import ContentMark
from apps.gates.schemas import GateResult, GateSpec
from apps.guard.enums import Intent, RefusalCode
from kernel.canonical import sha256_hex
from kernel.provenance import NOTHING_READ, Sources
from llm.pricing import Rates
from llm.runs import Usage

ZERO = Decimal(0)


class Limits(BaseModel):
    """A run's own caps, frozen when it opens. None is no cap; 0 is a cap."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    cost_usd: Decimal | None = Field(default=None, ge=0, max_digits=18, decimal_places=9)
    calls: int | None = Field(default=None, ge=0)
    tokens: int | None = Field(default=None, ge=0)
    wall_seconds: int | None = Field(default=None, ge=0)


class ApprovedCalls(BaseModel):
    """The exact calls that a person approved, by digest.

    `nonce` is unique to the approval (for a standing approval, to this use of it), because each digest is carried out
    once under it. `token` is the signed nonce of the approval token, which is checked again at every dispatch, because
    an approval can be revoked.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    nonce: str = Field(min_length=1, max_length=100)
    calls: frozenset[str]
    expires_at: AwareDatetime | None = None
    token: str = Field(default="", max_length=64)


def call_digest(tool: str, args: Mapping[str, Any]) -> str:
    """Return what an approval names: SHA-256 of the canonical JSON of tool and arguments."""
    return sha256_hex(tool_call_payload(tool, args))


@dataclass(frozen=True)
class RunRef:
    """The run that makes a call.

    With `lease` the call also needs the lease to be still held (R5). `visitor` is a tenant-wide id of the visitor it is
    for, whose budget pays too. `turn` is the turn that makes the call, of a run that many turns share. `approval` has
    been verified by the caller; the approval stored on the run's row is never trusted.
    """

    tenant_id: UUID
    run_id: UUID
    lease: LeaseRef | None = None
    visitor: UUID | None = None
    turn: UUID | None = None
    approval: ApprovedCalls | None = None


@dataclass(frozen=True)
class Call:
    """One call.

    `access` are the tools that the visitor's level allows, until `access_until` if the level expires. `gates` are the
    frozen gates of the turn or item, `passes` people's approvals at them. `estimate` may be left out if the call is
    free. A model run has a `forecast` instead, the tokens that it may use at most, from which the guard computes the
    price; an unknown price is refused. For a model run `tool` is its purpose (proxy, planner, executor…). `optional`:
    the caller can go on without it, so a refusal ends no run. `patience_seconds` limits the dispatch. `leaves`: it goes
    to an outside host; `shown` is what the author of its arguments had been shown (`guard.egress`)."""

    tool: str
    args: Mapping[str, Any] = field(default_factory=dict)
    access: frozenset[str] = frozenset()
    access_until: datetime | None = None
    acting: bool = False
    gates: tuple[GateSpec, ...] = ()
    passes: tuple[GatePass, ...] = ()
    estimate: Decimal | None = None
    forecast: Usage | None = None
    model: str = ""
    optional: bool = False
    patience_seconds: float = 300
    leaves: bool = False
    shown: Sources = field(default=NOTHING_READ, repr=False)

    @property
    def digest(self) -> str:
        return call_digest(self.tool, self.args)


@dataclass(frozen=True)
class RunFacts:
    """What the rules need to know of a run, read under its lock. `limit_paused` is the period whose limit was reached
    in its current window, or "". `marked`: its models read instructions to the assistant."""

    origin: str
    critical: bool
    phase: str
    status: str
    halt_state: str
    lease_held: bool
    pauses: frozenset[str]
    limit_paused: str
    on_limit: str
    allow: frozenset[str] | None
    deny: frozenset[str]
    limits: Limits
    approval: ApprovedCalls | None
    calls: int
    tokens: int
    committed: Decimal
    seconds: float
    now: datetime
    day: date
    marked: bool = False


@dataclass(frozen=True)
class BudgetFacts:
    """A budget in one of its windows. `ref` is the id of its holder, `alerted` the highest threshold (percent) that was
    alerted in the window, `paused_in` the window whose reached limit pauses."""

    budget_id: UUID
    holder: str
    ref: UUID
    window: date
    period: str
    limit: Decimal | None
    spent: Decimal = ZERO
    reserved: Decimal = ZERO
    alerted: int = 0
    paused_in: date | None = None

    @property
    def committed(self) -> Decimal:
        return self.spent + self.reserved

    @property
    def is_paused(self) -> bool:
        return self.paused_in == self.window

    @property
    def left(self) -> Decimal:
        return max((self.limit or ZERO) - self.committed, ZERO)

    @property
    def share(self) -> float:
        """How much of the limit is charged and reserved; 1 for a limit of 0."""
        return float(self.committed / self.limit) if self.limit else 1.0


@dataclass(frozen=True)
class Admitted:
    """A call that may be carried out, until it is settled.

    `windows` are the budgets that it reserved from, on the tenant's `day` and the installation's `platform_day`; a call
    that reserved nothing has none of these. `budget_refs` are the ids of the holders that pay, `rates` the tenant's own
    price of its model at that time.
    """

    call_id: UUID
    run: RunRef
    deployment_id: UUID | None
    seq: int
    intent: Intent
    call: Call
    acting: bool
    effect_key: str
    reserved: Decimal
    day: date | None = None
    platform_day: date | None = None
    budget_refs: tuple[UUID, ...] = ()
    rates: Rates | None = None
    windows: tuple[tuple[UUID, date], ...] = ()


@dataclass(frozen=True)
class Done:
    """The call was carried out. `mark`: a gate found instructions to the assistant in the result, which is read
    anyway."""

    value: Any
    cost: Decimal
    call_id: UUID
    mark: ContentMark | None = None


@dataclass(frozen=True)
class Refused:
    """Nothing was done. `gate` names the gate that refused. `too_large`: the limit that refused has something left, so
    a smaller call may pass."""

    code: RefusalCode
    reason: str
    gate: str | None = None
    too_large: bool = False


@dataclass(frozen=True)
class NeedsApproval:
    """Nothing was done; a person may approve exactly this call. `asking` are the gates that require it, `args` the
    arguments as the gates left them."""

    reason: str
    gate: str | None = None
    asking: tuple[GateResult, ...] = ()
    args: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Failed:
    """The call failed. `uncertain`: it is unknown whether it had its effect. `mark`: a gate found instructions to the
    assistant in the reason, which may be a tool's own words."""

    code: str
    reason: str
    uncertain: bool = False
    mark: ContentMark | None = None


CallOutcome = Done | Refused | NeedsApproval | Failed


@dataclass(frozen=True)
class CallContext:
    """The argument of a handler. `context` is the caller's own (levels, verified subject…) and is never stored."""

    tenant_id: UUID
    run_id: UUID
    call_id: UUID
    tool: str
    args: Mapping[str, Any]
    effect_key: str
    context: Mapping[str, Any]


@dataclass(frozen=True)
class HandlerResult:
    """The result of a handler. `on_settle` runs inside the settling transaction: effects on our own rows belong there,
    so that they happen with the settlement or not at all. `cost` None charges the estimate."""

    value: Any
    cost: Decimal | None = ZERO
    on_settle: Callable[[], None] | None = None


class CallFailed(Exception):
    """A handler's coded failure. `effect_free` promises that it had no effect: an approved call may then be
    repeated."""

    def __init__(self, code: str, reason: str, *, cost: Decimal | None = ZERO, effect_free: bool = False) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason
        self.cost = cost
        self.effect_free = effect_free
