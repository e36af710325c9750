"""One visitor's conversation as a machine: what may happen to it in any order, and a plain account of what is allowed.

`Visit` drives the real controller and the guard's own refusal rules; `is_allowed` looks at the history of passed gates
only and knows nothing of grants. Used by the two machines (`test_access_machine`, `test_access_through_the_door`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cache, lru_cache

from apps.access.rules import PUBLIC, AccessController, Grant
from apps.gates.schemas import AccessLevel
from apps.guard import rules
from apps.guard.enums import HaltState, Intent, OnLimit, Origin, Phase, RunStatus
from apps.guard.schemas import ApprovedCalls, Limits, RunFacts, call_digest

NOON = datetime(2026, 2, 1, 12, tzinfo=UTC)
ACTING = frozenset({"file_claim", "close_account"})
LEVELS = {
    PUBLIC: AccessLevel(tools=["knowledge_search"]),
    "verified": AccessLevel(
        tools=["knowledge_search", "claim_status", "file_claim"], requires=["identity"], expires_after=900
    ),
    "trusted": AccessLevel(
        tools=["knowledge_search", "claim_status", "close_account"], requires=["identity", "factor"], expires_after=300
    ),
}
# What an administrator may make of them while people write.
POLICIES: tuple[Mapping[str, AccessLevel], ...] = (
    LEVELS,
    {PUBLIC: LEVELS[PUBLIC], "verified": AccessLevel(tools=["claim_status"], requires=["identity", "factor"])},
    {PUBLIC: LEVELS[PUBLIC], "trusted": LEVELS["trusted"]},
    {PUBLIC: LEVELS[PUBLIC]},
    {PUBLIC: LEVELS[PUBLIC], "given": AccessLevel(tools=["close_account"])},
)
GATES = ("identity", "factor", "politeness", "identity ", "IDENTITY", "public", "verified")
CUSTOMERS = ("C-1", "C-2", "")
# What a hostile model may name: every tool there is, and what merely looks like one.
TOOLS = (
    *("knowledge_search", "claim_status", "file_claim", "close_account", "run_skill", "", "*", "public", "verified"),
    *("claim_status ", "CLAIM_STATUS", "claim\u200b_status", "knowledge_search,claim_status"),
)


@dataclass(frozen=True)
class Passed:
    gate: str
    customer: str
    at: datetime
    until: datetime | None
    is_asked_for: bool


@dataclass(frozen=True)
class Turn:
    """What a turn froze when it began."""

    levels: Mapping[str, AccessLevel]
    access: AccessController
    history: tuple[Passed, ...]


@dataclass
class Visit:
    time: datetime = NOON
    levels: Mapping[str, AccessLevel] = field(default_factory=lambda: LEVELS)
    grant: Grant = field(default_factory=Grant)
    history: list[Passed] = field(default_factory=list)
    yes: ApprovedCalls | None = None
    dispatched: list[tuple[str, str]] = field(default_factory=list)

    def wait(self, seconds: int) -> None:
        self.time += timedelta(seconds=seconds)

    def age(self, seconds: int) -> None:
        """The same as `wait`, for a clock that is not ours: everything that happened is put back instead."""
        self.grant, self.history = _older(self.grant, seconds), [put_back(each, seconds) for each in self.history]

    def edit_policy(self, number: int) -> None:
        self.levels = POLICIES[number]

    def pass_gate(self, gate: str, customer: str, lasts: int | None) -> None:
        """A script found somebody (no end of its own), or a signed identity was presented."""
        until = None if lasts is None else self.time + timedelta(seconds=lasts)
        controller = AccessController(self.levels, self.grant)
        self.grant = controller.gate_passed(
            gate, customer=customer, customer_name="", moment=self.time, until=until
        ).grant
        if customer and (until is None or until > self.time):
            is_asked_for = any(gate in level.requires for level in self.levels.values())
            self.history.append(Passed(gate, customer, self.time, until, is_asked_for))

    def approve(self, tool: str, lasts: int) -> None:
        """A person said yes to exactly this call: it opens no level."""
        self.yes = ApprovedCalls(
            nonce="n", calls=frozenset({_digest(tool)}), expires_at=self.time + timedelta(seconds=lasts)
        )

    def open_turn(self) -> Turn:
        return Turn(self.levels, AccessController(self.levels, self.grant).at(self.time), tuple(self.history))

    def model_asks(self, turn: Turn, tool: str, intent: Intent = Intent.RUN_SKILL) -> bool:
        """Whether the guard's rules let pass what a model names, asked as `admission` asks them; fails if they should
        not have."""
        facts, access = _facts(self.time, self.yes), turn.access
        refused = rules.check_grant(
            facts, intent=intent, tool=tool, access=access.allowed_tools(), access_until=access.grant.expires_at
        )
        if refused is None and tool in ACTING:
            refused = rules.check_approval(facts, _digest(tool))
        if refused is None:
            assert is_allowed(tool, turn, self.time), (tool, access.grant, self.time)
            assert tool not in ACTING or self.yes is not None
            self.dispatched.append((access.grant.level, tool))
        return refused is None


@cache
def _digest(tool: str) -> str:
    return call_digest(tool, {})


@lru_cache(maxsize=256)
def _facts(time: datetime, yes: ApprovedCalls | None) -> RunFacts:
    return RunFacts(
        origin=Origin.CHAT,
        critical=True,
        phase=Phase.INTERACTIVE,
        status=RunStatus.RUNNING,
        halt_state=HaltState.RUNNING,
        lease_held=True,
        pauses=frozenset(),
        limit_paused="",
        on_limit=OnLimit.PAUSE_ALL,
        allow=None,
        deny=frozenset(),
        limits=Limits(),
        approval=yes,
        calls=0,
        tokens=0,
        committed=Decimal(0),
        seconds=0,
        now=time,
        day=time.date(),
    )


def aged(turn: Turn, seconds: int) -> Turn:
    """The same turn, `seconds` later by a clock that is not ours."""
    access = AccessController(turn.levels, _older(turn.access.grant, seconds))
    return Turn(turn.levels, access, tuple(put_back(each, seconds) for each in turn.history))


def put_back(passed: Passed, seconds: int) -> Passed:
    back = timedelta(seconds=seconds)
    return replace(passed, at=passed.at - back, until=passed.until and passed.until - back)


def _older(grant: Grant, seconds: int) -> Grant:
    back = timedelta(seconds=seconds)
    verified = {gate: end and end - back for gate, end in grant.verified.items()}
    since = {gate: passed - back for gate, passed in grant.since.items()}
    return replace(grant, expires_at=grant.expires_at and grant.expires_at - back, verified=verified, since=since)


def is_allowed(tool: str, turn: Turn, moment: datetime) -> bool:
    """By the history alone: anybody may, or one customer has passed all that some level with this tool asks for, was
    the last to pass anything, and the level's seconds have not run out since the last of it. A gate that no level asks
    for when it is passed earns nothing, and takes nothing of what was earned."""
    if tool in turn.levels[PUBLIC].tools:
        return True
    who = turn.history[-1].customer if turn.history else ""
    own: list[Passed] = []
    for passed in reversed(turn.history):
        if passed.customer != who:
            break
        own.append(passed)
    return any(_holds(level, own, moment) for level in turn.levels.values() if tool in level.tools)


def _holds(level: AccessLevel, own: list[Passed], moment: datetime) -> bool:
    last = {}
    for passed in (each for each in own if each.is_asked_for):
        last.setdefault(passed.gate, passed)
    if not level.requires or not last.keys() >= set(level.requires):
        return False
    rests_on = [last[gate] for gate in level.requires]
    if any(passed.until is not None and passed.until <= moment for passed in rests_on):
        return False
    newest = max(passed.at for passed in rests_on)
    return level.expires_after is None or moment < newest + timedelta(seconds=level.expires_after)
