"""Shapes that an approval is made of: the signed claims, the token on the wire, what is asked to run.

All frozen. Datetimes are aware and UTC, a signature is bytes in memory and base64 in JSON (contract
silas 0 and 8). No rule and no row lives here.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    model_validator,
)

from apps.approvals.enums import ApprovalScope, ApprovalStrength, ApprovalVerdict, Reason


def _to_utc(value: datetime) -> datetime:
    return value.astimezone(UTC)


def _from_base64(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        return base64.b64decode(value, validate=True)
    except binascii.Error as error:
        raise ValueError("not base64") from error


def to_base64(value: bytes) -> str:
    return base64.b64encode(value).decode("ascii")


UtcDatetime = Annotated[AwareDatetime, AfterValidator(_to_utc)]
Signature = Annotated[bytes, BeforeValidator(_from_base64), PlainSerializer(to_base64, when_used="json")]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=False)


class TokenClaims(Frozen):
    """The ten signed fields of an approval token, and nothing else."""

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
    def _ends_after_it_begins(self) -> TokenClaims:
        if self.expires_at <= self.issued_at:
            raise ValueError("expires_at must be after issued_at")
        return self


class SignedToken(TokenClaims):
    """Claims with their signature. `token_id` is a name for people and is not signed."""

    token_id: str
    signature: Signature

    @classmethod
    def of_row(cls, row: object) -> SignedToken:
        """What a stored token claims. Raises `ValidationError` when the row is not even shaped like one."""
        claims = {name: getattr(row, name) for name in (*TokenClaims.model_fields, "signature")}
        return cls(token_id=str(getattr(row, "pk", "")), **claims)


class SpawnPolicy(Frozen):
    """What a standing approval fixes about the tasks that a goal may spawn (spec 3.6, 5.11)."""

    failure_context: str | None = None
    skills: tuple[str, ...] = ()
    gates: tuple[dict[str, Any], ...] = ()
    verify: tuple[dict[str, Any], ...] = ()
    on_failure: str = "report"
    escalation: dict[str, dict[str, Any]] = Field(default_factory=dict)


@dataclass(frozen=True)
class Approvable:
    """Something that asks to run. `goal` is the parent whose standing approval may cover it."""

    id: str
    plan_hash: str
    parent_id: str | None = None
    body: str = ""
    policy: SpawnPolicy = field(default_factory=SpawnPolicy)
    goal: Approvable | None = None


@dataclass(frozen=True)
class Verdict:
    """The answer of `verify` and `check`."""

    ok: bool
    reason: Reason

    @classmethod
    def of(cls, reason: Reason) -> Verdict:
        return cls(ok=reason is Reason.OK, reason=reason)


@dataclass(frozen=True)
class Fact:
    """One line of a card: a change has `before` and `after`, anything else a `text`."""

    label: str
    text: str | None = None
    before: str | None = None
    after: str | None = None
