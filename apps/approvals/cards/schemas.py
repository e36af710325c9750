"""Define what a card carries: its subject, its text, the payload that an approval binds, and what is shown beside it.

Everything that a person reads about an action is in the payload or is checked against it, so that what is approved is
what is shown. Unknown fields are refused (spec 8.1, 8.2, 0.5.3; contract silas 12 and 13). Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field
from datetime import datetime
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit
from uuid import UUID

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from apps.approvals.enums import (
    ApprovalScope,
    ApprovalStrength,
    ApprovalVerdict,
    Deciders,
    DeclineReason,
    PasskeyRule,
    Risk,
)
from apps.approvals.schemas import FrozenModel, Sha256, UtcDatetime
from kernel.error_codes import ErrorCode
from kernel.stored_texts import stored_text

Key = Annotated[str, Field(min_length=1, max_length=120)]
Line = Annotated[str, Field(min_length=1, max_length=300)]
Prose = Annotated[str, Field(max_length=20_000)]
Fraction = Annotated[float, Field(ge=0, le=1)]
_LOOPBACK = {"127.0.0.1", "localhost", "::1"}


def _require_https(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK):
        return value
    raise ValueError("not an https address")


HttpsUrl = Annotated[str, Field(max_length=2000), AfterValidator(_require_https)]


# Label of a fact that quotes a text; the text is shown as it is, in its own language.
EXACT_TEXT = stored_text("Exact text")


@dataclass(frozen=True)
class Fact:
    """One line of a card: a change has `before` and `after`, anything else a `text`."""

    label: str
    text: str | None = None
    before: str | None = None
    after: str | None = None


@dataclass(frozen=True)
class CardSubject:
    """The row that a card is about, where it came from, and who requested it: `user:<id>` for a member, or for an agent
    that acts for them."""

    kind: str
    id: UUID
    deployment_id: UUID | None = None
    session_id: UUID | None = None
    requested_by: str = ""


@dataclass(frozen=True)
class Binding:
    """What an approval would bind and how far it reaches.

    `destroys`: it deletes or revokes something outside. `declared_risk`: what a skill or plan says.
    `untrusted_target`: an outsider or the model decided where something goes. `token_seconds`: how long the approval
    is valid. `reads`: the records whose state the card shows, by book, key and revision; the approval counts while
    they stay unchanged.
    """

    scope: ApprovalScope
    payload: Mapping[str, Any]
    reversible: bool
    destroys: bool = False
    declared_risk: Risk = Risk.LOW
    untrusted_target: bool = False
    max_executions: int = 1
    token_seconds: int | None = None
    reads: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True)
class CardText:
    """The text on every card (spec 0.5.3). `consequence` says what each button does, by the value that it sends."""

    intent: str
    rationale: str
    consequence: Mapping[str, str]
    affected: str = ""
    facts: Sequence[Fact] = ()
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def fact_lines(self) -> list[str]:
        return [line for fact in self.facts for line in astuple(fact) if line]


@dataclass(frozen=True)
class AnswerDetails:
    """What a person sends beside the chosen button.

    `selected` are the items of a batch to keep. `text` is the wording of a draft, None if none was sent. `ticked` are
    the boxes that were ticked when the whole batch was approved; None from a page without boxes. `reason` is why the
    card is declined.
    """

    freetext: str = ""
    reason: DeclineReason | None = None
    selected: Sequence[str] = ()
    text: str | None = None
    ticked: Sequence[str] | None = None


class EmptyBody(FrozenModel):
    """The body of a kind that shows nothing beside its payload."""


class BoundPayload(FrozenModel):
    """A payload whose scope checks its exact keys (contract silas 8). A subclass names only those that a card shows."""

    model_config = ConfigDict(frozen=True, extra="allow")


class GateReason(FrozenModel):
    """A gate that asks for a person's approval, and why."""

    name: Key
    reason: Annotated[str, Field(max_length=300)] = ""


class BatchPayload(FrozenModel):
    """The batch binding of contract silas 8; the order of the items is part of it."""

    goal_id: Key
    action: Key
    item_ids: Annotated[list[Key], Field(min_length=1, max_length=200)]
    count: int

    @model_validator(mode="after")
    def _require_matching_count(self) -> BatchPayload:
        if self.count != len(self.item_ids) or len(set(self.item_ids)) != self.count:
            raise ValueError("count and item_ids do not agree")
        return self


class Option(FrozenModel):
    label: Annotated[str, Field(min_length=1, max_length=80)]
    value: Annotated[str, Field(min_length=1, max_length=60, pattern=r"^[\w.:-]+$")]
    approval_tier: Literal["tap"] = "tap"


def _require_distinct(options: list[Option]) -> list[Option]:
    values = [option.value for option in options]
    if len(set(values)) != len(values) or {"approve", "decline"} & set(values):
        raise ValueError("each option needs a value of its own")
    return options


Options = Annotated[list[Option], Field(max_length=8), AfterValidator(_require_distinct)]


class Guidance(FrozenModel):
    instructions: Annotated[str, Field(max_length=1000)]
    help_url: HttpsUrl | None = None


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


@dataclass(frozen=True)
class ClientSignature:
    """A program's signature of an answer: the `ClientKey`, the time that was signed, and the signature in base64."""

    key: Any
    answered_at: datetime
    signature: str


@dataclass(frozen=True)
class LinkSignature:
    """A passkey's signature of an answer on the page of a decision link: the JSON of the assertion."""

    assertion: str


@dataclass(frozen=True)
class AnswerRefused:
    """An answer was not accepted. The refusal is recorded in the audit log, so the caller's transaction should
    commit."""

    code: ErrorCode
    message: str


@dataclass(frozen=True)
class ApprovalRequirements:
    """What the next approval needs: a passkey, and how many approvals are missing, this one included."""

    step_up: bool = False
    missing: int = 1


@dataclass(frozen=True)
class Quorum:
    """The policy that an open card falls under, and how many approvals are missing."""

    policy: Policy
    missing: int
