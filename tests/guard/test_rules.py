"""The brakes as tables: grants, comparisons and the smallest cap."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.guard import rules
from apps.guard.enums import HaltState, Intent, Phase, RefusalCode
from apps.guard.schemas import ApprovedCalls, BudgetFacts, Limits, RunFacts, call_digest

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
FACTS = RunFacts(
    origin="chat",
    phase="interactive",
    status="running",
    halt_state="running",
    lease_held=True,
    pauses=frozenset(),
    allow=None,
    deny=frozenset(),
    limits=Limits(),
    approval=None,
    calls=0,
    tokens=0,
    committed=Decimal(0),
    seconds=0.0,
    now=NOW,
)
MONEY = st.decimals(min_value=0, max_value=1000, places=9)

# Contract autonomy A2, the seven first intents, column by column.
CONTRACT = {
    "intake": {"retrieve_chunks"},
    "analysis": {"retrieve_chunks", "run_skill", "run_playbook", "propose_precedent"},
    "drafting": {"run_skill", "propose_precedent", "propose_memory", "emit_finding"},
    "ethics_review": {"emit_finding"},
    "delivery": {"notify"},
}


@pytest.mark.parametrize("phase", sorted(CONTRACT))
def test_grants_of_a_background_phase_are_the_contracts(phase: str) -> None:
    assert {intent.value for intent in rules.PHASE_GRANTS[Phase(phase)]} == CONTRACT[phase]


def test_every_phase_has_grants() -> None:
    assert set(rules.PHASE_GRANTS) == set(Phase)


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({}, None),
        ({"halt_state": "halt_requested"}, RefusalCode.HALTED),
        ({"halt_state": "halted"}, RefusalCode.HALTED),
        ({"halt_state": "paused"}, RefusalCode.PAUSED),
        ({"status": "completed"}, RefusalCode.NOT_RUNNING),
        ({"status": "failed"}, RefusalCode.NOT_RUNNING),
        ({"status": "halted"}, RefusalCode.NOT_RUNNING),
        ({"lease_held": False}, RefusalCode.LEASE_LOST),
        ({"pauses": {"pause_all"}}, RefusalCode.PAUSED),
        ({"pauses": {"pause_non_critical"}}, None),
        ({"pauses": {"pause_non_critical"}, "origin": "background"}, RefusalCode.PAUSED),
        ({"pauses": {"none"}}, None),
    ],
)
def test_r5_stops_whatever_is_not_running(facts: dict[str, Any], expected: RefusalCode | None) -> None:
    assert rules.r5(replace(FACTS, **facts)) is expected


@pytest.mark.parametrize(
    ("facts", "intent", "access", "expected"),
    [
        ({}, "run_skill", {"t"}, None),
        ({}, "run_skill", set(), RefusalCode.TOOL_NOT_GRANTED),
        ({}, "notify", {"t"}, RefusalCode.TOOL_NOT_GRANTED),
        ({"allow": {"t"}}, "run_skill", {"t"}, None),
        ({"allow": set()}, "run_skill", {"t"}, RefusalCode.TOOL_NOT_GRANTED),
        ({"allow": {"other"}}, "run_skill", {"t"}, RefusalCode.TOOL_NOT_GRANTED),
        ({"deny": {"t"}}, "run_skill", {"t"}, RefusalCode.TOOL_NOT_GRANTED),
        ({"allow": {"t"}, "deny": {"t"}}, "run_skill", {"t"}, RefusalCode.TOOL_NOT_GRANTED),
        ({"phase": "delivery"}, "run_skill", {"t"}, RefusalCode.TOOL_NOT_GRANTED),
        ({"allow": set()}, "converse", set(), None),
        ({"phase": "delivery"}, "converse", set(), RefusalCode.TOOL_NOT_GRANTED),
    ],
)
def test_r6_grants_what_phase_lists_and_level_allow(
    facts: dict[str, Any], intent: str, access: set[str], expected: RefusalCode | None
) -> None:
    found = rules.r6(replace(FACTS, **facts), intent=Intent(intent), tool="t", access=frozenset(access))
    assert found is expected


@pytest.mark.parametrize(("seconds", "expected"), [(1, None), (0, RefusalCode.TOOL_NOT_GRANTED)])
def test_r6_allows_no_tool_once_the_level_has_ended(seconds: int, expected: RefusalCode | None) -> None:
    until = FACTS.now + timedelta(seconds=seconds)
    found = rules.r6(FACTS, intent=Intent.RUN_SKILL, tool="t", access=frozenset({"t"}), access_until=until)
    assert found is expected


@pytest.mark.parametrize(
    ("limits", "facts", "estimate", "expected"),
    [
        ({}, {}, "999", None),
        ({}, {}, None, RefusalCode.PRICE_UNKNOWN),
        ({"cost_usd": "1"}, {"committed": "0.4"}, "0.6", None),
        ({"cost_usd": "1"}, {"committed": "0.4"}, "0.600000001", RefusalCode.COST_CAP_REACHED),
        ({"cost_usd": "0"}, {}, "0", None),
        ({"cost_usd": "0"}, {}, "0.000000001", RefusalCode.COST_CAP_REACHED),
        ({"calls": 3}, {"calls": 2}, "0", None),
        ({"calls": 3}, {"calls": 3}, "0", RefusalCode.BUDGET_TOOL_CALLS),
        ({"calls": 0}, {}, "0", RefusalCode.BUDGET_TOOL_CALLS),
        ({"tokens": 10}, {"tokens": 9}, "0", None),
        ({"tokens": 10}, {"tokens": 10}, "0", RefusalCode.BUDGET_TOKENS),
        ({"tokens": 0}, {}, "0", RefusalCode.BUDGET_TOKENS),
        ({"wall_seconds": 5}, {"seconds": 5.0}, "0", None),
        ({"wall_seconds": 5}, {"seconds": 5.1}, "0", RefusalCode.BUDGET_WALL_CLOCK),
    ],
)
def test_r4_compares_as_the_contract_decides(
    limits: dict[str, Any], facts: dict[str, Any], estimate: str | None, expected: RefusalCode | None
) -> None:
    if "committed" in facts:
        facts = {**facts, "committed": Decimal(facts["committed"])}
    run = replace(FACTS, limits=Limits(**limits), **facts)
    assert rules.r4_run(run, None if estimate is None else Decimal(estimate)) is expected


def budget(period: str, limit: str, committed: str) -> BudgetFacts:
    return BudgetFacts(UUID(int=1), date(2026, 3, 1), period, Decimal(limit), Decimal(committed))


@pytest.mark.parametrize(
    ("budgets", "expected"),
    [
        ([], None),
        ([budget("day", "1", "0.5")], None),
        ([budget("day", "1", "0.500000001")], RefusalCode.GLOBAL_DAILY),
        ([budget("month", "1", "0.6")], RefusalCode.GLOBAL_MONTHLY),
        ([budget("month", "1", "0.6"), budget("day", "1", "0.6")], RefusalCode.GLOBAL_DAILY),
        ([budget("day", "0", "0")], RefusalCode.GLOBAL_DAILY),
        ([budget("day", "9", "0"), budget("day", "1", "0.6")], RefusalCode.GLOBAL_DAILY),
    ],
)
def test_r4_asks_every_budget(budgets: list[BudgetFacts], expected: RefusalCode | None) -> None:
    assert rules.r4_budgets(budgets, Decimal("0.5")) is expected


@given(caps=st.lists(st.none() | MONEY))
def test_smallest_cap_is_the_least_that_is_set(caps: list[Decimal | None]) -> None:
    known = [cap for cap in caps if cap is not None]
    assert rules.smallest_cap(*caps) == (min(known) if known else None)


def test_smallest_cap_takes_zero_for_a_cap() -> None:
    assert rules.smallest_cap(None, 5, 0) == 0


def test_tightest_limits_mix_field_by_field() -> None:
    found = rules.tightest(Limits(calls=3), Limits(calls=9, tokens=0), Limits(cost_usd=Decimal("0.5")))
    assert found == Limits(calls=3, tokens=0, cost_usd=Decimal("0.5"))


@pytest.mark.parametrize("field", ["cost_usd", "calls", "tokens", "wall_seconds"])
def test_negative_cap_cannot_be_made(field: str) -> None:
    with pytest.raises(ValueError):
        Limits(**{field: -1})


@pytest.mark.parametrize(
    ("calls", "expires_at", "expected"),
    [
        ([{"n": 1}], None, None),
        ([{"n": 2}], None, RefusalCode.APPROVAL_MISSING),
        ([], None, RefusalCode.APPROVAL_MISSING),
        ([{"n": 1}], NOW, RefusalCode.APPROVAL_MISSING),
        ([{"n": 1}], NOW.replace(minute=1), None),
    ],
)
def test_approval_covers_the_exact_call_until_it_expires(
    calls: list[dict[str, int]], expires_at: datetime | None, expected: RefusalCode | None
) -> None:
    digests = frozenset(call_digest("t", args) for args in calls)
    given_yes = ApprovedCalls(nonce="n", calls=digests, expires_at=expires_at)
    assert rules.approval(replace(FACTS, approval=given_yes), call_digest("t", {"n": 1})) is expected


def test_approval_of_another_tool_with_the_same_arguments_does_not_cover() -> None:
    assert call_digest("t", {"n": 1}) != call_digest("u", {"n": 1})


@pytest.mark.parametrize(("zone", "expected"), [("UTC", date(2026, 3, 1)), ("Pacific/Auckland", date(2026, 3, 2))])
def test_day_is_the_tenants_own(zone: str, expected: date) -> None:
    assert rules.day_in(zone, NOW) == expected


@pytest.mark.parametrize(("period", "expected"), [("day", date(2026, 3, 17)), ("month", date(2026, 3, 1))])
def test_window_starts_with_its_period(period: str, expected: date) -> None:
    assert rules.window_start(period, date(2026, 3, 17)) == expected


@pytest.mark.parametrize(
    ("state", "onward"),
    [("running", True), ("paused", True), ("halt_requested", False), ("halted", False)],
)
def test_halt_can_be_asked_for_once(state: str, onward: bool) -> None:
    assert (HaltState.HALT_REQUESTED in rules.HALT_TRANSITIONS[HaltState(state)]) is onward
