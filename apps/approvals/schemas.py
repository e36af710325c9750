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

from apps.approvals.enums import (
    ApprovalScope,
    ApprovalState,
    ApprovalStrength,
    ApprovalVerdict,
    Deciders,
    PasskeyRule,
    Reason,
)


def _to_utc(value: datetime) -> datetime:
    return value.astimezone(UTC)


def _from_base64(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        return base64.b64decode(value, validate=True)
    except binascii.Error as error:
        raise ValueError("not base64") from error


def from_base64(text: str) -> bytes:
    """Decode base64. Anything that cannot be decoded becomes no bytes, which no signature check accepts."""
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        return b""


def to_base64(value: bytes) -> str:
    return base64.b64encode(value).decode("ascii")


UtcDatetime = Annotated[AwareDatetime, AfterValidator(_to_utc)]
Signature = Annotated[bytes, BeforeValidator(_from_base64), PlainSerializer(to_base64, when_used="json")]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class FrozenModel(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=False)


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


class Policy(FrozenModel):
    """What a tenant requires of an approval; the defaults apply without a row. A blank scope or risk means all."""

    scope: str = ""
    risk: str = ""
    who: Deciders = Deciders.APPROVERS
    people: int = Field(default=1, ge=1)
    passkey: PasskeyRule = PasskeyRule.REGISTERED
    own_requests: bool = False


class AnswerClaims(FrozenModel):
    """What a person signs when they approve. `face` is the hash of everything that the card showed; it is blank in
    answers signed before it was part of them. `step_up` is the hash of the passkey's assertion, if any."""

    card_id: str
    payload_hash: Sha256
    face: str = ""
    user_id: str
    verdict: ApprovalVerdict
    approval_strength: ApprovalStrength = ApprovalStrength.TAP
    conditions: dict[str, Any] = Field(default_factory=dict)
    said: dict[str, Any] = Field(default_factory=dict)
    answered_at: UtcDatetime
    step_up: str = ""


class StepUp(FrozenModel):
    """A passkey's assertion with everything needed to verify it again. Binary values are base64url."""

    passkey_id: str
    credential_id: str
    public_key: str
    client_data: str
    authenticator_data: str
    signature: str
    nonce: str
    rp_id: str
    origin: str


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
class AnswerRefused:
    """An answer was not accepted. The refusal is recorded in the audit log, so the caller's transaction should
    commit."""

    code: str
    message: str


@dataclass(frozen=True)
class ApprovalRequirements:
    """What the next approval needs: a passkey, and how many approvals are missing, this one included."""

    step_up: bool = False
    missing: int = 1


@dataclass(frozen=True)
class KeyFacts:
    """An approver's public key, when it was retired, and whether everything that it signed is void."""

    public_key: bytes
    retired_at: datetime | None = None
    void: bool = False


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


@dataclass(frozen=True)
class Fact:
    """One line of a card: a change has `before` and `after`, anything else a `text`."""

    label: str
    text: str | None = None
    before: str | None = None
    after: str | None = None
