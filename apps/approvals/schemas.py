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
    ApprovalStrength,
    ApprovalVerdict,
    Deciders,
    PasskeyRule,
    Reason,
    Standing,
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
    """The bytes, or none when it is not base64: what cannot be read is no signature."""
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        return b""


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


class Policy(Frozen):
    """What a tenant asks of a yes; the defaults hold where no row says otherwise. Blank scope or risk: every."""

    scope: str = ""
    risk: str = ""
    who: Deciders = Deciders.APPROVERS
    people: int = Field(default=1, ge=1)
    passkey: PasskeyRule = PasskeyRule.REGISTERED
    own_requests: bool = False


class AnswerClaims(Frozen):
    """What a person's signature under their approval says. `face`: the hash of all that the card showed; blank in
    answers that were signed before it was part of them. `step_up`: the hash of the passkey's assertion, if any."""

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


class StepUp(Frozen):
    """A passkey's assertion with all that is needed to check it again. Binary values are base64url."""

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
    """Something that asks to run. `goal` is the parent whose standing approval may cover it; `rendered_hash` is the
    hash of what that goal makes of this item's own values, said by the room that makes such items."""

    id: str
    plan_hash: str
    parent_id: str | None = None
    body: str = ""
    policy: SpawnPolicy = field(default_factory=SpawnPolicy)
    goal: Approvable | None = None
    rendered_hash: str = ""


@dataclass(frozen=True)
class GatePass:
    """What a person let through: these gates, at this trigger, for content with this hash."""

    trigger: str
    gates: frozenset[str]
    content_hash: str


@dataclass(frozen=True)
class Verdict:
    """The answer of `verify` and `check`."""

    ok: bool
    reason: Reason

    @classmethod
    def of(cls, reason: Reason) -> Verdict:
        return cls(ok=reason is Reason.OK, reason=reason)


@dataclass(frozen=True)
class Refused:
    """A passkey's answer was not believed. It is written down, so the caller's transaction goes on and commits."""

    code: str
    message: str


@dataclass(frozen=True)
class Asked:
    """What one more yes takes: a passkey, and how many people are missing with this one."""

    step_up: bool = False
    missing: int = 1


@dataclass(frozen=True)
class KeyFacts:
    """An approver's public key, whether it has ended (models.ApproverKey), and whether all that it signed is void."""

    public_key: bytes
    retired_at: datetime | None = None
    void: bool = False


@dataclass(frozen=True)
class TokenFacts:
    """What the database knows of a token: its key, whether it was taken back, how often it was used, and whether one
    use was for exactly the content asked about. One that was never stored has no use and gets none."""

    key: KeyFacts | None
    revoked: bool
    used: int
    used_for_subject: bool


@dataclass(frozen=True)
class Yes:
    """A yes that was given, for people: its token, how often it was used, and whether it still opens anything."""

    token: Any
    used: int
    standing: Standing

    @property
    def holds(self) -> bool:
        return self.standing is Standing.HOLDS


@dataclass(frozen=True)
class Fact:
    """One line of a card: a change has `before` and `after`, anything else a `text`."""

    label: str
    text: str | None = None
    before: str | None = None
    after: str | None = None
