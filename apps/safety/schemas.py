"""Values of the safety loop: policies, intended actions, verdicts and replies.

A policy is a frozen value; its versions are rows. A `Verdict` does not depend on the mode; `rules.directive` does.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from apps.safety.enums import Decision, Mode, Stage, Tier, Tolerance

MAX_PATTERNS = 500
MAX_PATTERN_LENGTH = 500
MAX_HINT_LENGTH = 8000
DEFAULT_STEPS = 20

Glob = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_PATTERN_LENGTH)]
Globs = Annotated[tuple[Glob, ...], Field(max_length=MAX_PATTERNS)]


class FixedScore(BaseModel):
    """A score that the policy fixes for actions that match the pattern, instead of the scorer's."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    pattern: Glob
    score: int = Field(ge=0, le=100)


class Policy(BaseModel):
    """What one agent, or every agent of a tenant, may do without a person.

    `max_steps` is the number of steps of one execution, and of all executions of a principal together within
    `step_window_seconds`, before a person has to allow more; 0 is no limit.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    mode: Mode = Mode.ENFORCING
    max_steps: int = Field(default=DEFAULT_STEPS, ge=0, le=10_000)
    step_window_seconds: int = Field(default=3600, ge=60, le=86_400)
    tolerance: Tolerance = Tolerance.MODERATE
    deny: Globs = ()
    requires_approval: Globs = ()
    auto_approve: Globs = ()
    challenge_seconds: int = Field(default=300, ge=30, le=3600)
    scores: Annotated[tuple[FixedScore, ...], Field(max_length=MAX_PATTERNS)] = ()

    def stored(self) -> dict[str, Any]:
        """Return the JSON that a row stores."""
        return self.model_dump(mode="json")


@dataclass(frozen=True)
class Intended:
    """One reported step: the intended action, the outcome of the step before ("" when not given), and the steps used.

    `steps` includes this one, and is the execution's or the principal's count, whichever is more.
    """

    hint: str
    outcome: str = ""
    steps: int = 1


@dataclass(frozen=True)
class Score:
    """A risk score from 0 to 100, with reasons for people to read."""

    value: int
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True)
class Verdict:
    """The evaluator's decision. `verifies`: only a code, or a person at the console, lifts it."""

    decision: Decision
    stage: Stage
    tier: Tier
    score: int
    factors: tuple[str, ...]
    reason: str = ""
    verifies: bool = False


@dataclass(frozen=True)
class Hint:
    """A normalised hint: `plain` is its text, `readings` are further texts that it could mean (decoded, joined).

    `disguises` names what was hidden in it.
    """

    plain: str
    readings: tuple[str, ...] = ()
    disguises: tuple[str, ...] = field(default=())


@dataclass(frozen=True)
class Success:
    """The data that an operation returns."""

    data: Any


@dataclass(frozen=True)
class Failure:
    """A refusal with its code of the contract (section 4); committed like any answer."""

    code: str
    message: str
    details: dict[str, Any] = field(default_factory=dict)


Reply = Success | Failure


@dataclass(frozen=True)
class Principal:
    """The authenticated caller; never a name that the caller chose. `may_confirm`: it may confirm for others."""

    ref: str
    may_confirm: bool = False
