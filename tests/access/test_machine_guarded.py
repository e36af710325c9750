"""The same machine through the real door: every call a model names goes to `guarded_call`, with rows and audit."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from apps.guard import registry
from apps.guard.enums import Intent
from apps.guard.schemas import ApprovedCalls, Call, CallContext, Done, HandlerResult, Refused, call_digest
from apps.guard.services import guarded_call
from kernel.clock import now
from tests.access.visits import ACTING, GATES, TOOLS, Turn, Visit, aged, is_allowed
from tests.factories.guard import audited, make_run


class LifeAtTheDoor(RuleBasedStateMachine):
    tenant: Any
    made: list[str]

    @initialize(approved=st.sampled_from(TOOLS))
    def begin(self, approved: str) -> None:
        yes = ApprovedCalls(nonce=f"n-{id(self)}-{now()}", calls=frozenset({call_digest(approved, {})}))
        self.approved = approved
        self.run = make_run(self.tenant, approval=yes)
        self.visit = Visit(time=now())
        self.turn: Turn = self.visit.open_turn()

    @rule(seconds=st.sampled_from((1, 300, 901)))
    def wait(self, seconds: int) -> None:
        """The turn goes on meanwhile, with the tools that it began with."""
        self.visit.age(seconds)
        self.turn = aged(self.turn, seconds)

    @rule(gate=st.sampled_from(GATES[:2]), lasts=st.sampled_from((None, 3600)))
    def pass_gate(self, gate: str, lasts: int | None) -> None:
        self.visit.time = now()
        self.visit.pass_gate(gate, "C-1", lasts)

    @rule()
    def open_turn(self) -> None:
        self.visit.time = now()
        self.turn = self.visit.open_turn()

    @rule(tool=st.sampled_from(TOOLS))
    def model_asks(self, tool: str) -> None:
        access = self.turn.access
        call = Call(
            tool=tool,
            access=access.allowed_tools(),
            access_until=access.grant.expires_at,
            acting=tool in ACTING,
        )
        self.made.clear()
        outcome = asyncio.run(guarded_call(self.run.ref, Intent.RUN_SKILL, call))
        allowed = is_allowed(tool, self.turn, now())
        assert self.made in ([], [tool])
        assert not self.made or allowed
        assert not self.made or tool not in ACTING or tool == self.approved
        assert isinstance(outcome, Done) == bool(self.made)
        if not allowed:
            assert isinstance(outcome, Refused)
            assert outcome.code.value == "tool_not_granted"


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was really carried out."""
    made: list[str] = []

    def handler(context: CallContext) -> HandlerResult:
        made.append(context.tool)
        return HandlerResult("done")

    monkeypatch.setitem(registry._handlers, Intent.RUN_SKILL, handler)
    return made


def test_nothing_above_the_level_passes_the_door(tenant: Any, made: list[str]) -> None:
    machine = type("Machine", (LifeAtTheDoor,), {"tenant": tenant, "made": made})
    few = settings(
        max_examples=25,
        stateful_step_count=20,
        deadline=None,
        database=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    run_state_machine_as_test(machine, settings=few)  # type: ignore[no-untyped-call]  # hypothesis


def test_tool_that_a_model_names_above_the_level_is_refused_and_written_down(tenant: Any, made: list[str]) -> None:
    run, call = make_run(tenant), Call(tool="close_account", access=frozenset({"knowledge_search"}))
    outcome = asyncio.run(guarded_call(run.ref, Intent.RUN_SKILL, call))
    assert isinstance(outcome, Refused)
    assert made == []
    assert audited(run) == [("tool_call", '{"intent":"run_skill","outcome":"tool_not_granted","seq":1}')]
