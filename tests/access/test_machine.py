"""No tool above the level is dispatched, whatever the order of gates, expiries, approvals and what a model names.

Two machines over the pure core: one that shrinks to the shortest way in, and 100,000 short lives drawn quickly.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from apps.access.rules import PUBLIC, AccessController, Grant
from apps.guard.enums import Intent
from tests.access.visits import CUSTOMERS, GATES, POLICIES, TOOLS, Turn, Visit

SECONDS = (0, 1, 60, 299, 300, 301, 899, 900, 901, 86_400)
LASTS = (None, -1, 0, 1, 60, 3600)


class LifeOfALevel(RuleBasedStateMachine):
    """A conversation with turns that may overlap with everything else that happens to it."""

    @initialize()
    def begin(self) -> None:
        self.visit = Visit()
        self.turn: Turn = self.visit.open_turn()

    @rule(seconds=st.sampled_from(SECONDS))
    def wait(self, seconds: int) -> None:
        self.visit.wait(seconds)

    @rule(gate=st.sampled_from(GATES), customer=st.sampled_from(CUSTOMERS), lasts=st.sampled_from(LASTS))
    def pass_gate(self, gate: str, customer: str, lasts: int | None) -> None:
        self.visit.pass_gate(gate, customer, lasts)

    @rule(number=st.integers(0, len(POLICIES) - 1))
    def edit_policy(self, number: int) -> None:
        self.visit.edit_policy(number)

    @rule(tool=st.sampled_from(TOOLS), lasts=st.sampled_from((1, 600)))
    def approve(self, tool: str, lasts: int) -> None:
        self.visit.approve(tool, lasts)

    @rule()
    def open_turn(self) -> None:
        self.turn = self.visit.open_turn()

    @rule(tool=st.sampled_from(TOOLS), intent=st.sampled_from((Intent.RUN_SKILL, Intent.RETRIEVE_CHUNKS)))
    def model_asks(self, tool: str, intent: Intent) -> None:
        self.visit.model_asks(self.turn, tool, intent)

    @invariant()
    def public_reaches_nobody_s_records(self) -> None:
        access = AccessController(self.visit.levels, self.visit.grant).at(self.visit.time)
        assert access.grant.level != PUBLIC or access.subject == ""


def test_machine_of_levels_dispatches_nothing_above_them() -> None:
    many = settings(max_examples=200, stateful_step_count=40, deadline=None, database=None)
    run_state_machine_as_test(LifeOfALevel, settings=many)  # type: ignore[no-untyped-call]  # hypothesis


# What leads somewhere is drawn more often than what cannot.
LIKELY_GATES = ("identity", "factor", "identity", "factor", "identity", "factor", "politeness", "public")
LIKELY_TOOLS = ("claim_status", "file_claim", "close_account")


def live(moves: bytes) -> Visit:
    """A life of one move a byte: what it does, and with what."""
    visit = Visit()
    turn = visit.open_turn()
    for move in moves:
        what, which = move % 8, move // 8
        if what < 2:
            visit.pass_gate(LIKELY_GATES[which % 8], CUSTOMERS[which // 14 % 3], LASTS[which % 6])
        elif what == 2:
            visit.wait(SECONDS[which % len(SECONDS)])
        elif what == 3:
            visit.edit_policy(which % len(POLICIES))
        elif what == 4:
            visit.approve(TOOLS[which % len(TOOLS)], 600)
        elif what == 5:
            turn = visit.open_turn()
        elif what == 6:
            visit.model_asks(turn, LIKELY_TOOLS[which % 3])
        else:
            visit.model_asks(turn, TOOLS[which % len(TOOLS)])
    return visit


@settings(
    max_examples=1_000, deadline=None, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
)
@given(st.binary(min_size=24 * 100, max_size=24 * 100))
def test_hundred_thousand_lives_dispatch_nothing_above_the_level(moves: bytes) -> None:
    for start in range(0, len(moves), 24):
        live(moves[start : start + 24])


def test_machine_reaches_the_highest_level() -> None:
    """A machine whose visitor never rises would prove nothing."""
    visit = Visit()
    for gate in ("identity", "factor"):
        visit.pass_gate(gate, "C-1", None)
    visit.approve("close_account", 600)
    assert visit.model_asks(visit.open_turn(), "close_account")


def test_machine_catches_a_level_without_its_end() -> None:
    visit = Visit()
    visit.pass_gate("identity", "C-1", None)
    visit.wait(901)
    turn = visit.open_turn()
    endless = Turn(turn.levels, AccessController(turn.levels, Grant("verified")), turn.history)
    with pytest.raises(AssertionError, match="claim_status"):
        visit.model_asks(endless, "claim_status")


@pytest.mark.parametrize(("lasts", "again", "opens"), [(3600, 1, True), (1, 3600, False)])
def test_gate_that_no_level_asks_for_neither_shortens_nor_lengthens(lasts: int, again: int, opens: bool) -> None:
    visit = Visit()
    visit.pass_gate("factor", "C-1", lasts)
    visit.edit_policy(3)
    visit.pass_gate("factor", "C-1", again)
    visit.edit_policy(1)
    visit.pass_gate("identity", "C-1", None)
    turn = visit.open_turn()
    visit.wait(60)
    assert visit.model_asks(turn, "claim_status") is opens


def test_approval_of_a_person_opens_no_tool_above_the_level() -> None:
    visit = Visit()
    visit.approve("file_claim", 600)
    assert not visit.model_asks(visit.open_turn(), "file_claim")


def test_turn_keeps_no_tool_beyond_the_end_of_the_level_it_began_with() -> None:
    visit = Visit()
    visit.pass_gate("identity", "C-1", 60)
    turn = visit.open_turn()
    visit.wait(60)
    assert not visit.model_asks(turn, "claim_status")


@pytest.mark.parametrize("gate", ["public", "verified", "identity ", "IDENTITY"])
def test_gate_with_the_name_of_a_level_or_nearly_of_a_gate_raises_nothing(gate: str) -> None:
    visit = Visit()
    visit.pass_gate(gate, "C-1", None)
    assert visit.open_turn().access.allowed_tools() == {"knowledge_search"}
