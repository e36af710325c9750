"""The brakes as tables: grants, comparisons and the smallest cap."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from apps.guard import rules
from apps.guard.enums import HaltState, Intent, Phase, RefusalCode
from apps.guard.schemas import ApprovedCalls, BudgetFacts, Limits, RunFacts, call_digest

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
FACTS = RunFacts(
    origin="chat",
    critical=True,
    phase="interactive",
    status="running",
    halt_state="running",
    lease_held=True,
    pauses=frozenset(),
    limit_paused="",
    on_limit="pause_all",
    allow=None,
    deny=frozenset(),
    limits=Limits(),
    approval=None,
    calls=0,
    tokens=0,
    committed=Decimal(0),
    seconds=0.0,
    now=NOW,
    day=NOW.date(),
)

# Contract autonomy A2, the seven first intents, as it is written there. Later intents have grants of their own.
CONTRACT = """
    |                   | intake | analysis | drafting | ethics_review | delivery |
    | retrieve_chunks   |   ✔    |    ✔     |          |               |          |
    | run_skill         |        |    ✔     |    ✔     |               |          |
    | run_playbook      |        |    ✔     |          |               |          |
    | propose_precedent |        |    ✔     |    ✔     |               |          |
    | propose_memory    |        |          |    ✔     |               |          |
    | emit_finding      |        |          |    ✔     |       ✔       |          |
    | notify            |        |          |          |               |    ✔     |
"""
(_, *PHASES), *LINES = [[cell.strip() for cell in line.split("|")[1:-1]] for line in CONTRACT.strip().splitlines()]
GRANTED = [(intent, phase, cell == "✔") for intent, *cells in LINES for phase, cell in zip(PHASES, cells, strict=True)]


@pytest.mark.parametrize(("intent", "phase", "granted"), GRANTED)
def test_grant_of_a_first_intent_is_the_contracts(intent: str, phase: str, granted: bool) -> None:
    assert (Intent(intent) in rules.PHASE_GRANTS[Phase(phase)]) is granted


@pytest.mark.parametrize("phase", PHASES)
def test_phase_grants_nothing_else_but_models_and_tools_in_analysis_and_artifacts_in_drafting(
    phase: str,
) -> None:
    assert set(rules.PHASE_GRANTS) == set(Phase)
    later = {"analysis": {"converse", "plan", "call_mcp_tool", "web_search"}, "drafting": {"emit_artifact"}}
    added = later.get(phase, set())
    first = {intent for intent, at, granted in GRANTED if at == phase and granted}
    assert {intent.value for intent in rules.PHASE_GRANTS[Phase(phase)]} == first | added


NO_AMOUNTS = ["-0.000000001", "-1", "NaN", "Infinity", "1000000000", "0.0000000001"]


@pytest.mark.parametrize(
    ("field", "amount"),
    [*(("cost_usd", amount) for amount in NO_AMOUNTS), ("calls", -1), ("tokens", -1), ("wall_seconds", -1)],
)
def test_cap_that_is_no_amount_is_refused(field: str, amount: Any) -> None:
    with pytest.raises(ValueError, match=field):
        Limits(**{field: amount})


CAPS = {
    # a run's cap: (estimates in order, which pass) for calls of 0.1
    "0": [False, False],
    "0.099999999": [False, False],
    "0.1": [True, False],
    "0.199999999": [True, False],
    "0.2": [True, True],
    "999999999": [True, True],
}


@pytest.mark.parametrize("cap", CAPS)
def test_cap_lets_pass_what_it_covers_to_the_last_digit(cap: str) -> None:
    passed, committed = [], Decimal(0)
    for _ in range(2):
        run = replace(FACTS, limits=Limits(cost_usd=Decimal(cap)), committed=committed)
        passed.append(rules.check_run_limits(run, Decimal("0.1")) is None)
        committed += Decimal("0.1") if passed[-1] else 0
    assert passed == CAPS[cap]


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
        ({"pauses": {"pause_non_critical"}, "origin": "background", "critical": False}, RefusalCode.PAUSED),
        ({"pauses": {"pause_non_critical"}, "origin": "background"}, None),
        ({"pauses": {"pause_all"}, "origin": "background"}, RefusalCode.PAUSED),
        ({"pauses": {"none"}}, None),
    ],
)
def test_r5_stops_whatever_is_not_running(facts: dict[str, Any], expected: RefusalCode | None) -> None:
    assert rules.check_running(replace(FACTS, **facts)) is expected


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
    found = rules.check_grant(replace(FACTS, **facts), intent=Intent(intent), tool="t", access=frozenset(access))
    assert found is expected


@pytest.mark.parametrize(("seconds", "expected"), [(1, None), (0, RefusalCode.TOOL_NOT_GRANTED)])
def test_r6_allows_no_tool_once_the_level_has_ended(seconds: int, expected: RefusalCode | None) -> None:
    until, access = FACTS.now + timedelta(seconds=seconds), frozenset({"t"})
    assert rules.check_grant(FACTS, intent=Intent.RUN_SKILL, tool="t", access=access, access_until=until) is expected


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
    assert rules.check_run_limits(run, None if estimate is None else Decimal(estimate)) is expected


def budget(period: str, limit: str | None, committed: str, holder: str = "tenant", **more: Any) -> BudgetFacts:
    spent = Decimal(committed)
    most = None if limit is None else Decimal(limit)
    return BudgetFacts(UUID(int=1), holder, UUID(int=2), date(2026, 3, 1), period, most, spent, **more)


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
        ([budget("day", None, "9", "visitor")], None),
        ([budget("day", "1", "0.6", "visitor")], RefusalCode.COST_CAP_REACHED),
        ([budget("month", "1", "0.6", "task")], RefusalCode.COST_CAP_REACHED),
        ([budget("day", "1", "0.6", "task"), budget("month", "1", "0.6")], RefusalCode.GLOBAL_MONTHLY),
        ([budget("day", "9", "0", paused_in=date(2026, 3, 1))], RefusalCode.GLOBAL_DAILY),
    ],
)
def test_r4_asks_every_budget(budgets: list[BudgetFacts], expected: RefusalCode | None) -> None:
    assert rules.check_budgets(rules.refusing_budgets(FACTS, budgets, Decimal("0.5"))) is expected


@pytest.mark.parametrize(("platform", "expected"), [("", None), ("day", "global_daily"), ("month", "global_monthly")])
def test_r4_asks_the_installations_budget(platform: str, expected: str | None) -> None:
    assert rules.check_budgets([], platform) == expected


# What a tenant wants at its own limit: who is stopped there (contract autonomy B4), and what no wish softens.
STOPPED = {
    "pause_all": {"critical", "other"},
    "pause_non_critical": {"other"},
    "alert_only": set(),
}


@pytest.mark.parametrize("holder", ["tenant", "deployment"])
@pytest.mark.parametrize("wanted", STOPPED)
def test_reached_limit_stops_whom_the_tenant_wants(wanted: str, holder: str) -> None:
    full = [budget("day", "1", "1", holder)]
    runs = {"critical": True, "other": False}
    refused = {
        name
        for name, critical in runs.items()
        if rules.refusing_budgets(replace(FACTS, critical=critical, on_limit=wanted), full, Decimal("0.1"))
    }
    assert refused == STOPPED[wanted]


@pytest.mark.parametrize("holder", ["visitor", "task"])
def test_limit_of_one_visitor_or_task_holds_whatever_the_tenant_wants(holder: str) -> None:
    run = replace(FACTS, on_limit="alert_only")
    assert rules.refusing_budgets(run, [budget("day", "1", "1", holder)], Decimal("0.1"))


@pytest.mark.parametrize(
    ("spent", "told"), [("0.49", 0), ("0.5", 50), ("0.899999999", 80), ("0.9", 90), ("1", 100), ("7", 100)]
)
def test_level_is_the_highest_threshold_reached_and_a_refusal_says_so_when_the_money_is_gone(
    spent: str, told: int
) -> None:
    assert rules.highest_threshold(Decimal(spent), Decimal(1)) == told
    assert rules.is_exhausted(budget("day", "1", spent)) is (told >= 90)


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
    run = replace(FACTS, approval=given_yes)
    assert rules.check_approval(run, call_digest("t", {"n": 1})) is expected
    assert rules.check_approval(run, call_digest("u", {"n": 1})) is RefusalCode.APPROVAL_MISSING


@pytest.mark.parametrize(("zone", "expected"), [("UTC", date(2026, 3, 1)), ("Pacific/Auckland", date(2026, 3, 2))])
def test_day_is_the_tenants_own(zone: str, expected: date) -> None:
    assert rules.local_day(zone, NOW) == expected


@pytest.mark.parametrize(("period", "expected"), [("day", date(2026, 3, 17)), ("month", date(2026, 3, 1))])
def test_window_starts_with_its_period(period: str, expected: date) -> None:
    assert rules.window_start(period, date(2026, 3, 17)) == expected


@pytest.mark.parametrize(
    ("state", "onward"),
    [("running", True), ("paused", True), ("halt_requested", False), ("halted", False)],
)
def test_halt_can_be_asked_for_once(state: str, onward: bool) -> None:
    assert (HaltState.HALT_REQUESTED in rules.HALT_TRANSITIONS[HaltState(state)]) is onward
