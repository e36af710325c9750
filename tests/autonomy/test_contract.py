"""Every row of the contract's one design (autonomy C) is proved by a test that exists: models, door, run, reasons."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db.models import Model
from django.db.models.functions import Now

from apps.approvals.models import ApprovalToken, TokenUse
from apps.audit.models import AuditEntry
from apps.autonomy.enums import SessionStatus
from apps.autonomy.models import AutonomousSession, MemoryProposal, Outbox, Task, Trigger
from apps.autonomy.services import session_control
from apps.guard.enums import TerminalReason
from apps.guard.models import Budget, GuardedRun, SpendEntry, SystemControl, ToolCall
from kernel.tenancy import tenant_scope
from tests.autonomy.test_brakes import begin_session, ending_of, run_in_worker
from tests.factories.autonomy import House

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/autonomy.md").read_text(encoding="utf-8")
PROVED = PAGE.partition("## Where each rule is proved")[2].partition("\n## ")[0]
ROWS = re.findall(r"^\| (?P<rule>[^|]+) \| (?P<tests>`test_[^|]+) \|$", PROVED, flags=re.M)
REASONS = [
    *("completed", "healthy", "external_halt", "idle_timeout", "cost_cap_reached", "budget_tokens"),
    *("budget_tool_calls", "budget_wall_clock", "global_daily", "global_monthly", "tool_not_granted"),
    *("approval_missing", "failed", "worker_lost", "cancelled"),
]
# The rows of the contract's Part C, in its order, as the table of proofs begins them.
PART_C = (
    *("Task, Trigger", "Trigger", "Goal", "Standing approval", "Session", "Tool call", "Audit", "Spending", "Findings"),
    *(f"The door, {step}" for step in ("the only one", "R5", "R6", "approval", "R4", "admit", "dispatch", "settle")),
    *(
        f"Run: {what}"
        for what in ("five phases", "review and delivery", "planner", "a goal", "routes", "memory", "chain")
    ),
    *(f"Celery: {what}" for what in ("next time", "watchdog", "reaper", "roll-over", "outbox", "lanes", "admission")),
    *(f"Celery: {what}" for what in ("priority", "a retry", "brakes", "set aside")),
    *(f"Settled: {what}" for what in ("cap comparison", "which cap", "budget stop", "memory write", "destructive")),
    *(f"Settled: {what}" for what in ("charge", "failed run's receipt", "signatures")),
    "Reasons",
)
MODELS: dict[type[Model], str] = {
    Task: "owner playbook prompt skills tool_allow tool_deny lane priority route limits max_attempts quarantined_at",
    Trigger: "task kind spec next_at last_at enabled deleted_at cap_usd",
    AutonomousSession: "trigger task parent root attempt status phase limits receipt terminal_reason",
    GuardedRun: "origin status halt_state phase limits calls cost_total cost_reserved terminal_reason",
    ToolCall: "seq effect_key intent tool args_digest state reserved charged",
    ApprovalToken: "max_executions expires_at",
    TokenUse: "ordinal",
    AuditEntry: "seq event",
    SpendEntry: "kind amount day",
    Budget: "period limit_usd spent reserved paused_in",
    SystemControl: "pause deployment",
    MemoryProposal: "session task skills state",
    Outbox: "state attempts",
}


@pytest.fixture(scope="module")
def known() -> set[str]:
    """The names of all tests."""
    texts = (path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    return {name for text in texts for name in re.findall(r"^(?:async )?def (test_\w+)", text, flags=re.M)}


def test_table_of_proofs_names_every_terminal_reason() -> None:
    assert [rule.strip("`") for rule, _ in ROWS if rule.strip("`") in REASONS] == REASONS


@pytest.mark.parametrize("row", PART_C)
def test_table_of_proofs_has_every_row_of_the_contract(row: str) -> None:
    assert [rule for rule, _ in ROWS if rule.startswith(row)] != []


@pytest.mark.parametrize(("rule", "tests"), ROWS, ids=[rule for rule, _ in ROWS])
def test_table_of_proofs_names_tests_that_exist(rule: str, tests: str, known: set[str]) -> None:
    assert set(re.findall(r"test_\w+", tests)) - known == set()


def test_contract_terminal_reasons_are_the_closed_list() -> None:
    assert TerminalReason.values == REASONS


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_contract_model_holds_what_its_row_says(model: type[Model]) -> None:
    assert set(MODELS[model].split()) - {field.name for field in model._meta.get_fields()} == set()


def test_contract_every_call_of_a_session_has_its_audit_pair(house: House) -> None:
    session = house.through(house.task())
    with tenant_scope(house.tenant):
        calls = ToolCall.objects.filter(run_id=session.run_id).count()
        rows = AuditEntry.objects.filter(subject=f"run:{session.run_id}", event="tool_call").count()
    assert calls > 0
    assert rows == 2 * calls


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({}, TerminalReason.IDLE_TIMEOUT),
        ({"limits": {"wall_seconds": 1}}, TerminalReason.BUDGET_WALL_CLOCK),
    ],
    ids=["idle", "late"],
)
def test_contract_watchdog_stops_what_is_stuck_with_its_reason(house: House, fields: Any, reason: Any) -> None:
    session, delivery = begin_session(house)
    house.change(session, heartbeat_at=Now() - timedelta(hours=1))
    house.change(session.run, started_at=Now() - timedelta(seconds=315), **fields)
    house.do(session_control.check_session, session.pk)
    assert house.session(session.pk).halt_reason == reason
    assert ending_of(run_in_worker(house, session, delivery)) == (SessionStatus.HALTED, reason)


def test_contract_session_that_waits_is_cancelled(house: House) -> None:
    session = house.run_now(house.task())
    house.do(session_control.halt_session, session.pk, user=house.owner)
    assert house.session(session.pk).terminal_reason == TerminalReason.CANCELLED


def test_contract_session_that_did_all_its_phases_is_completed(house: House) -> None:
    assert ending_of(house.through(house.task())) == (SessionStatus.COMPLETED, TerminalReason.COMPLETED)
