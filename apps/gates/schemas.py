"""Schemas of policy: gates, results, escalations and access levels (contract silas 5, 6).

All frozen. A gate that cannot be evaluated (an invalid pattern, a step without a number) cannot be constructed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import regex as patterns
from pydantic import BaseModel, ConfigDict, Field, model_validator

from apps.gates.enums import EscalationKind, GateAction, GateCode, GateLane, GateProvider, GateTrigger, GateType

# Compiling unrolls repetitions without a time limit: `(((a{50}){50}){50}){50}` takes seconds, one more level minutes.
# Repetitions are counted as if all were nested.
MAX_PATTERN, MAX_REPEATS = 2_000, 100_000
MAX_PATTERNS, _DEEPEST = 16, 8
_REPEAT = patterns.compile(r"\{(\d{1,9})")


class Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_enum_values=True)


class Expectation(Frozen):
    """The expected outcome of a check: exactly one field; `not_empty: false` counts as unset (contract silas 5.2)."""

    exit_code: int | None = None
    equals: str | None = None
    contains: str | None = None
    regex: str | None = None
    output_lt: float | None = None
    output_gt: float | None = None
    file_exists: str | None = None
    not_empty: bool | None = None

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        values = [getattr(self, name) for name in type(self).model_fields]
        chosen = [value for value in values if value is not None and value is not False]
        if len(chosen) != 1:
            raise ValueError("an expectation sets exactly one field")
        require_pattern(self.regex)
        return self


class Range(Frozen):
    """An inclusive range."""

    min: float
    max: float


class Outside(Frozen):
    outside: tuple[float, float]


class GateSpec(Frozen):
    """One gate. The lane is derived, never stored (contract silas 6)."""

    name: str = Field(pattern=r"^[A-Za-z0-9_.-]{1,80}$")
    on: GateTrigger
    after_step: int | None = None
    provider: GateProvider = GateProvider.PREDICATE
    type: GateType = GateType.STRING_MATCH
    check: str | None = None
    config: dict[str, Any] = Field(default_factory=dict)
    extract: str | None = None
    auto_approve: Range | None = None
    require_approval: Range | None = None
    block: Outside | None = None
    allowed_values: list[str] | None = None
    approval_values: list[str] | None = None
    on_block: str = "report"
    check_command: str | None = None
    check_expect: Expectation | None = None
    promote_to_policy: bool = False

    @model_validator(mode="after")
    def _evaluable(self) -> Self:
        if (self.on == GateTrigger.AFTER_STEP) != (self.after_step is not None):
            raise ValueError("after_step is set exactly when the trigger is after_step")
        patterns_held = list(_patterns_of(self.config))
        if len(patterns_held) > MAX_PATTERNS:
            raise ValueError(f"more than {MAX_PATTERNS} patterns in one gate")
        for pattern in patterns_held:
            require_pattern(pattern)
        return self

    @property
    def lane(self) -> GateLane:
        advisory = self.provider == GateProvider.LLM and not self.promote_to_policy
        return GateLane.QUALITY if advisory else GateLane.POLICY

    @property
    def tools(self) -> frozenset[str]:
        """The tools that an `on_tool_call` or `on_content` gate covers (`config.tools`); empty means all."""
        return frozenset(self.config.get("tools") or ())

    @property
    def standing_approval_counts(self) -> bool:
        """Whether a standing approval satisfies this gate."""
        return self.config.get("standing_approval_counts") is True

    @property
    def wait_seconds(self) -> int | None:
        """How long it waits for approval; None for the company's default."""
        return self.config.get("wait_seconds")

    @property
    def always_needs_approval(self) -> bool:
        """Whether it needs approval for any input."""
        return self.type == GateType.APPROVAL_ALWAYS and self.provider == GateProvider.PREDICATE

    @property
    def checks_values(self) -> bool:
        """Whether it is a step gate that checks the result of its step."""
        named = bool(self.extract) or self.provider == GateProvider.SCRIPT
        return self.on == GateTrigger.AFTER_STEP and named and not self.always_needs_approval

    @property
    def checks_report(self) -> bool:
        """Whether it is a step gate that checks the agent's final report."""
        return self.on == GateTrigger.AFTER_STEP and not self.checks_values and not self.always_needs_approval

    @property
    def may_need_approval(self) -> bool:
        """Whether it may need approval, depending on its input."""
        if self.provider == GateProvider.LLM:
            return self.promote_to_policy
        words = any(name == "required_keywords" for name in _names_of(self.config))
        return bool(self.always_needs_approval or self.require_approval or self.approval_values or words)

    def to_plan_dict(self) -> dict[str, Any]:
        """The specification's fields only, nulls included, as a plan hash binds them (contract silas 5.7)."""
        return self.model_dump(mode="json")


class EscalationSpec(Frozen):
    """What happens after a block; carried out by sessions (contract silas 5.4, spec 5.1.1)."""

    action: EscalationKind
    queue: str | None = None
    message: str | None = None
    instruction: str | None = None
    max_retries: int = Field(default=2, ge=0, le=5)
    fallback: str | None = None


class AccessLevel(Frozen):
    """An access level: its tools, required gates, and seconds until it expires, None for never (contract silas 6)."""

    description: str = ""
    tools: list[str] = Field(default_factory=list)
    requires: list[str] = Field(default_factory=list)
    expires_after: int | None = Field(default=None, gt=0)


@dataclass(frozen=True)
class Subject:
    """The customer that an identity check confirmed: the tenant's own id, and the name to show to staff."""

    id: str
    name: str = ""


@dataclass(frozen=True)
class GateResult:
    """The result of one gate. Access levels count `passed`: the gate was evaluated and its condition holds."""

    gate_name: str
    lane: GateLane
    action: GateAction
    code: GateCode
    reason: str = ""
    on_block: str = "report"
    value: str | float | None = None
    score: float | None = None
    flags: tuple[str, ...] = ()
    modified_context: dict[str, Any] | None = None
    subject: Subject | None = None

    @property
    def passed(self) -> bool:
        return self.action == GateAction.CONTINUE and self.code == GateCode.PASSED


AuditNote = tuple[str, dict[str, Any]]


@dataclass(frozen=True)
class GateReport:
    """All results of one trigger. `context` is the possibly rewritten context that later steps must use; `audit` holds
    (event, data) pairs for the caller to record in its next scope."""

    policy: tuple[GateResult, ...] = ()
    quality: tuple[GateResult, ...] = ()
    context: dict[str, Any] = field(default_factory=dict)
    audit: tuple[AuditNote, ...] = ()

    @property
    def blocked(self) -> GateResult | None:
        """The first block; later ones are in `policy`, for the audit only."""
        return next((result for result in self.policy if result.action == GateAction.BLOCK), None)

    @property
    def needs_approval(self) -> GateResult | None:
        return next(iter(self.asking), None)

    @property
    def asking(self) -> tuple[GateResult, ...]:
        """Results that need approval; empty if a gate blocks."""
        results = (result for result in self.policy if result.action == GateAction.REQUIRE_APPROVAL)
        return () if self.blocked else tuple(results)

    @property
    def verified(self) -> tuple[GateResult, ...]:
        """Passed identity checks, for the access controller (spec 5.1 step 14)."""
        return tuple(result for result in self.policy if result.passed and result.subject)


def _patterns_of(config: Mapping[str, Any], depth: int = 0) -> Iterator[object]:
    """Patterns of the gate and its nested predicates. Raises ValueError if they are nested too deeply."""
    yield from (config[name] for name in ("pattern", "redact") if config.get(name) is not None)
    inner = config.get("predicates")
    if isinstance(inner, list) and inner:
        if depth >= _DEEPEST:
            raise ValueError("predicates are nested too deeply")
        for predicate in inner:
            yield from _patterns_of(predicate, depth + 1) if isinstance(predicate, Mapping) else ()


def _names_of(config: Mapping[str, Any], depth: int = 0) -> Iterator[str]:
    """Names of the settings of a gate and its nested predicates."""
    yield from config
    for predicate in config.get("predicates") or () if depth < _DEEPEST else ():
        yield from _names_of(predicate, depth + 1) if isinstance(predicate, Mapping) else ()


def _repeats(pattern: str) -> int:
    return math.prod(max(int(count), 1) for count in _REPEAT.findall(pattern))


def require_pattern(pattern: object) -> None:
    """Raises ValueError for an invalid pattern, or one that takes too long to compile."""
    if pattern is None:
        return
    if not isinstance(pattern, str):
        raise ValueError("a pattern is text")
    # Before it is compiled, which nothing can interrupt.
    if len(pattern) > MAX_PATTERN or _repeats(pattern) > MAX_REPEATS:
        raise ValueError("the pattern is too large")
    try:
        patterns.compile(pattern)
    # Deeply nested groups exhaust the compiler's stack.
    except (patterns.error, RecursionError) as error:
        raise ValueError(f"not a regular expression: {error}") from error
