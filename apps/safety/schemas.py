"""What the evaluator is asked, what it answers, and what a policy says.

A policy is one frozen value; its versions are rows. `Verdict` knows no mode: what an agent is told in which mode is
`rules.directive`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from apps.safety.enums import Decision, Mode, Stage, Tier, Tolerance

MOST_PATTERNS = 500
LONGEST_PATTERN = 500
LONGEST_HINT = 8000
DEFAULT_STEPS = 20

Glob = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=LONGEST_PATTERN)]
Globs = Annotated[tuple[Glob, ...], Field(max_length=MOST_PATTERNS)]


class FixedScore(BaseModel):
    """A score that the policy gives to whatever matches, instead of the scorer's own."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    pattern: Glob
    score: int = Field(ge=0, le=100)


class Policy(BaseModel):
    """What one agent, or every agent of a tenant, may do by itself.

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
    scores: Annotated[tuple[FixedScore, ...], Field(max_length=MOST_PATTERNS)] = ()

    def stored(self) -> dict[str, Any]:
        """As a row keeps it."""
        return self.model_dump(mode="json")


@dataclass(frozen=True)
class Intended:
    """One reported step: what is intended, what came of the step before ("" when not said), and how many steps of the
    present budget are used, this one included: the execution's or the principal's, whichever is more."""

    hint: str
    outcome: str = ""
    steps: int = 1


@dataclass(frozen=True)
class Score:
    """0 to 100, with the reasons a person reads."""

    value: int
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True)
class Verdict:
    """`verifies`: only a code that a person was shown lifts it, or the person themselves."""

    decision: Decision
    stage: Stage
    tier: Tier
    score: int
    factors: tuple[str, ...]
    reason: str = ""
    verifies: bool = False


@dataclass(frozen=True)
class Hint:
    """A hint as it is read: `plain` is the normalised text; `readings` are further texts that it could mean (decoded,
    closed up). `disguises` says what was hidden in it."""

    plain: str
    readings: tuple[str, ...] = ()
    disguises: tuple[str, ...] = field(default=())


@dataclass(frozen=True)
class Success:
    """What an operation answers."""

    data: Any


@dataclass(frozen=True)
class Failure:
    """A refusal by its code of the contract (section 4); it is committed like any answer."""

    code: str
    message: str
    details: dict[str, Any] = field(default_factory=dict)


Reply = Success | Failure


@dataclass(frozen=True)
class Principal:
    """Who asks, as authentication found out; never a name that the caller chose. `may_confirm`: it was given the right
    to say yes for others."""

    ref: str
    may_confirm: bool = False
