"""Shapes of an approval: what is asked to run, the signed claims, the token on the wire, and what is known of one.

A signature is bytes in memory and base64 in JSON (contract silas 0 and 8). No rule and no row lives here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pydantic import Field, model_validator

from apps.approvals.enums import ApprovalScope, ApprovalState, ApprovalStrength, ApprovalVerdict, Reason
from apps.approvals.keys.schemas import KeyFacts
from apps.approvals.schemas import FrozenModel, Sha256, Signature, UtcDatetime


class TokenClaims(FrozenModel):
    """The ten signed fields of an approval token."""

    plan_hash: Sha256
    work_item_id: str = Field(min_length=1)
    scope: ApprovalScope
    verdict: ApprovalVerdict
    issued_at: UtcDatetime
    expires_at: UtcDatetime
    nonce: str = Field(min_length=1)
    approval_strength: ApprovalStrength = ApprovalStrength.TAP
    conditions: dict[str, Any] = Field(default_factory=dict)
    max_executions: int = Field(default=1, ge=1)

    @model_validator(mode="after")
    def _require_end_after_start(self) -> TokenClaims:
        if self.expires_at <= self.issued_at:
            raise ValueError("expires_at must be after issued_at")
        return self


class SignedToken(TokenClaims):
    """Claims with their signature. `token_id` is for people to refer to and is not signed."""

    token_id: str
    signature: Signature

    @classmethod
    def of_row(cls, row: object) -> SignedToken:
        """Read a stored token. Raises `ValidationError` if the row does not have the shape of one."""
        claims = {name: getattr(row, name) for name in (*TokenClaims.model_fields, "signature")}
        return cls(token_id=str(getattr(row, "pk", "")), **claims)


class SpawnPolicy(FrozenModel):
    """What a standing approval fixes about the tasks that its goal may start (spec 3.6, 5.11)."""

    failure_context: str | None = None
    skills: tuple[str, ...] = ()
    gates: tuple[dict[str, Any], ...] = ()
    verify: tuple[dict[str, Any], ...] = ()
    on_failure: str = "report"
    escalation: dict[str, dict[str, Any]] = Field(default_factory=dict)


@dataclass(frozen=True)
class Approvable:
    """Something that needs an approval to run. `goal` is the parent whose standing approval may cover it;
    `rendered_hash` the hash of what that goal's template makes of this item's values, computed by `apps.work`."""

    id: str
    plan_hash: str
    parent_id: str | None = None
    body: str = ""
    policy: SpawnPolicy = field(default_factory=SpawnPolicy)
    goal: Approvable | None = None
    rendered_hash: str = ""


@dataclass(frozen=True)
class GatePass:
    """A person's approval to pass these gates, at this trigger, with content of this hash."""

    trigger: str
    gates: frozenset[str]
    content_hash: str


@dataclass(frozen=True)
class TokenVerdict:
    """The result of `verify_token` and `check_token`."""

    ok: bool
    reason: Reason

    @classmethod
    def of(cls, reason: Reason) -> TokenVerdict:
        return cls(ok=reason is Reason.OK, reason=reason)


@dataclass(frozen=True)
class TokenFacts:
    """What the database knows of a token: its key, whether it was revoked, how often it was used, and whether one use
    was for exactly the content in question."""

    key: KeyFacts | None
    revoked: bool
    used: int
    used_for_subject: bool


@dataclass(frozen=True)
class Approval:
    """An approval for display: its token, how often it was used, and whether it is still valid."""

    token: Any
    used: int
    state: ApprovalState

    @property
    def is_valid(self) -> bool:
        return self.state is ApprovalState.HOLDS
