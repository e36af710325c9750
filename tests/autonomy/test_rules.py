"""Rules of limits, retries and triggers."""

from __future__ import annotations

from decimal import Decimal
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from apps.autonomy import rules
from apps.autonomy.enums import FINAL, SessionStatus, SpawnRefusal, TriggerKind
from apps.autonomy.schemas import ROUTE, TaskLimits
from apps.guard.enums import Phase, RefusalCode, TerminalReason
from apps.guard.rules import PHASE_GRANTS
from kernel.errors import SilasError

MONEY = st.none() | st.decimals(min_value=0, max_value=1000, places=9)
COUNTS = st.none() | st.integers(min_value=0, max_value=1000)
LIMITS = st.builds(TaskLimits, cost_usd=MONEY, calls=COUNTS, tokens=COUNTS, wall_seconds=COUNTS, memory_writes=COUNTS)


@given(LIMITS, LIMITS)
def test_smallest_of_all_that_is_said_holds(one: TaskLimits, other: TaskLimits) -> None:
    held = rules.smallest_limits(one, other)
    said = [value for value in (one.calls, other.calls) if value is not None]
    assert held.calls == (min(said) if said else None)


def test_zero_is_a_real_cap() -> None:
    assert rules.smallest_limits(TaskLimits(cost_usd=Decimal(0)), TaskLimits(cost_usd=Decimal(5))).cost_usd == 0


@given(LIMITS, st.decimals(min_value=0, max_value=2000, places=9), st.integers(min_value=0, max_value=2000))
def test_child_never_has_more_than_is_left_and_nothing_below_zero(limits: TaskLimits, cost: Any, used: int) -> None:
    left = rules.limits_left(limits, cost=cost, calls=used, tokens=used, seconds=used)
    pairs = [(left.cost_usd, limits.cost_usd), (left.calls, limits.calls), (left.tokens, limits.tokens)]
    assert all(a is None if b is None else a is not None and 0 <= a <= b for a, b in pairs)


@pytest.mark.parametrize("absurd", [{"cost_usd": -1}, {"cost_usd": "1e9"}, {"calls": -1}, {"tokens": 10**9}, {"x": 1}])
def test_absurd_limit_is_refused(absurd: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        TaskLimits.model_validate(absurd)


@given(st.integers(min_value=1, max_value=40), st.floats(min_value=0, max_value=1))
def test_retry_waits_longer_each_time_and_is_capped(attempt: int, chance: float) -> None:
    waits = rules.retry_seconds(attempt, base=5, most=300, chance=chance)
    whole = min(5 * 2 ** (attempt - 1), 300)
    assert whole / 2 <= waits <= whole


def test_chance_spreads_retries() -> None:
    assert len({rules.retry_seconds(2, base=5, most=300, chance=chance / 10) for chance in range(10)}) == 10


@pytest.mark.parametrize(
    ("kind", "spec", "code"),
    [
        (TriggerKind.CRON, {}, "trigger_spec"),
        (TriggerKind.INTERVAL, {"seconds": 1}, "trigger_spec"),
        (TriggerKind.INTERVAL, {"seconds": -60}, "trigger_spec"),
        (TriggerKind.EVENT, {"topic": "whatever"}, "trigger_spec"),
        (TriggerKind.WATCH, {"collection": "no id"}, "trigger_spec"),
        (TriggerKind.MANUAL, {"more": 1}, "trigger_spec"),
        (TriggerKind.DELEGATED, {}, "trigger_kind"),
        (TriggerKind.ESCALATED, {}, "trigger_kind"),
    ],
)
def test_trigger_that_says_something_wrong_is_refused(kind: TriggerKind, spec: dict[str, Any], code: str) -> None:
    with pytest.raises(SilasError) as refused:
        rules.parse_spec(kind, spec)
    assert refused.value.code == code


def test_every_kind_a_person_sets_up_has_a_shape() -> None:
    assert set(rules.SPECS) == set(TriggerKind) - {TriggerKind.DELEGATED, TriggerKind.ESCALATED}


def test_final_statuses_lead_nowhere() -> None:
    assert {status for status, onward in rules.TRANSITIONS.items() if not onward} == set(FINAL)


def test_every_status_says_what_follows() -> None:
    assert set(rules.TRANSITIONS) == set(SessionStatus)


@pytest.mark.parametrize(
    ("code", "status", "reason"),
    [
        (RefusalCode.HALTED, SessionStatus.HALTED, TerminalReason.EXTERNAL_HALT),
        (RefusalCode.TOOL_NOT_GRANTED, SessionStatus.FAILED, TerminalReason.TOOL_NOT_GRANTED),
        (RefusalCode.COST_CAP_REACHED, SessionStatus.HALTED, TerminalReason.COST_CAP_REACHED),
        (RefusalCode.BUDGET_TOKENS, SessionStatus.HALTED, TerminalReason.BUDGET_TOKENS),
        (RefusalCode.BUDGET_TOOL_CALLS, SessionStatus.HALTED, TerminalReason.BUDGET_TOOL_CALLS),
        (RefusalCode.BUDGET_WALL_CLOCK, SessionStatus.HALTED, TerminalReason.BUDGET_WALL_CLOCK),
        (RefusalCode.GLOBAL_DAILY, SessionStatus.HALTED, TerminalReason.GLOBAL_DAILY),
        (RefusalCode.GLOBAL_MONTHLY, SessionStatus.HALTED, TerminalReason.GLOBAL_MONTHLY),
    ],
)
def test_contract_a_brake_ends_the_session_with_its_reason(code: Any, status: Any, reason: Any) -> None:
    assert rules.ending_for(code) == (status, reason)


def test_gate_that_refuses_a_call_ends_nothing() -> None:
    assert rules.ending_for(RefusalCode.GATE_BLOCKED) is None


def test_contract_phases_are_the_five_in_order() -> None:
    assert [phase.value for phase in rules.PHASES] == ["intake", "analysis", "drafting", "ethics_review", "delivery"]


def test_model_is_asked_in_analysis_only() -> None:
    asked = {phase for phase in rules.PHASES if {"plan", "converse"} & {intent.value for intent in PHASE_GRANTS[phase]}}
    assert asked == {Phase.ANALYSIS}


@pytest.mark.parametrize(
    ("facts", "code"),
    [
        ({}, None),
        ({"enabled": False}, SpawnRefusal.AUTONOMY_OFF),
        ({"deleted": True}, SpawnRefusal.TASK_DELETED),
        ({"quarantined": True}, SpawnRefusal.QUARANTINED),
        ({"has_owner": False}, SpawnRefusal.NO_OWNER),
        ({"opted_in": False}, SpawnRefusal.NOT_OPTED_IN),
    ],
)
def test_nothing_begins_without_everybodys_consent(facts: dict[str, bool], code: SpawnRefusal | None) -> None:
    good = {"enabled": True, "deleted": False, "quarantined": False, "has_owner": True, "opted_in": True}
    assert rules.spawn_refusal(**{**good, **facts}) == code


@pytest.mark.parametrize("route", [{"kind": "shout"}, {"kind": "chain_next"}, {}, {"kind": "notify", "sms": True}])
def test_unknown_route_is_refused(route: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ROUTE.validate_python(route)


def test_goal_that_is_well_wakes_only_who_asked_for_all_looks() -> None:
    goal = uuid4()
    specs = [rules.parse_spec(TriggerKind.GOAL_CHECK, {"goal": str(goal), "healthy": each}) for each in (False, True)]
    assert [rules.topic_for(spec) for spec in specs] == [f"goal:{goal}", f"goal-all:{goal}"]
