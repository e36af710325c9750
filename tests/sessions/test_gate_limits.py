"""What the gates of one turn may ask: 32 evaluations over all triggers, and a model that may not answer."""

from __future__ import annotations

from typing import Any

import pytest

from apps.gates.schemas import GateSpec
from apps.gates.services import save_gate
from apps.guard.toolset import GuardedToolset
from apps.sessions import turn
from apps.sessions.state import TurnState
from apps.sessions.steps import input_gates, output_gates
from apps.sessions.steps.tools import toolset_for
from apps.sessions.streaming import GatedStream
from kernel.llm.schemas import AgentResponse
from kernel.tenancy import in_thread, tenant_scope
from tests.factories.sessions import make_session, say

MESSAGE, RESPONSE = "every_user_message", "every_agent_response"


def rule(name: str, on: str) -> GateSpec:
    return GateSpec(name=name, on=on, type="regex", config={"pattern": "."})


def _opened(deployment: Any, gates: list[GateSpec]) -> TurnState:
    session = make_session(deployment)
    say(session, "Hello")
    with tenant_scope(deployment.tenant_id):
        for gate in gates:
            save_gate(gate, deployment_id=deployment.pk)
        state = turn.open_turn(session.pk, consumer="test")
    assert state is not None
    return state


async def opened(deployment: Any, *gates: GateSpec) -> TurnState:
    state = await in_thread(_opened, deployment, list(gates))
    state.response = AgentResponse(message="Hello.")
    return state


async def test_full_set_passes_a_message_and_its_answer(deployment: Any) -> None:
    both = [rule(f"{on[6]}{number}", on) for on in (MESSAGE, RESPONSE) for number in range(16)]
    state = await opened(deployment, *both)
    assert (await input_gates.check(state), await output_gates.check(state)) == (None, None)


async def test_turn_that_asks_too_often_is_blocked_and_says_why(deployment: Any) -> None:
    state = await opened(deployment, *(rule(f"g{number:02}", RESPONSE) for number in range(17)))
    assert await output_gates.check(state) is None
    stopped = await output_gates.check(state)
    assert stopped is not None and stopped.reason == "gate:g15"
    assert ("gate_blocked", "too_many") in [(event, data.get("code")) for event, data in state.audit]


async def test_calls_of_a_turn_draw_on_the_same_allowance(deployment: Any) -> None:
    state = await opened(deployment)
    link: Any = toolset_for(state)
    while not isinstance(link, GuardedToolset):
        link = link.wrapped
    assert link.allowance() is state.allowance


LLM = {"on": MESSAGE, "provider": "llm", "config": {"policy": "Be kind."}}


async def test_advice_that_cannot_be_had_leaves_the_turn_alone(deployment: Any) -> None:
    state = await opened(deployment, GateSpec(name="advice", **LLM))
    assert await input_gates.check(state) is None
    assert ("quality_gate", "llm_error") in [(event, data.get("code")) for event, data in state.audit]


async def test_promoted_model_that_cannot_be_had_blocks_the_message(deployment: Any) -> None:
    state = await opened(deployment, GateSpec(name="binding", promote_to_policy=True, **LLM))
    stopped = await input_gates.check(state)
    assert stopped is not None and stopped.reason == "gate:binding"


@pytest.mark.parametrize("promoted", [False, True])
async def test_answer_is_not_shown_while_a_model_still_decides(deployment: Any, promoted: bool) -> None:
    shown: list[str] = []

    async def send(piece: str) -> None:
        shown.append(piece)

    judge = GateSpec(name="g", promote_to_policy=promoted, **{**LLM, "on": RESPONSE})
    await GatedStream((judge,), send).piece("Hello there, ")
    assert bool(shown) is not promoted
