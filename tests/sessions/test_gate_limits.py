"""Which gates one turn has, and what they may ask: those it began with, 32 evaluations over all triggers, and a model
that may not answer."""

from __future__ import annotations

from typing import Any

import pytest

from apps.gates.models import Gate
from apps.gates.schemas import GateSpec
from apps.gates.services import retire, save_gate
from apps.guard.toolset import GuardedToolset
from apps.sessions import turn
from apps.sessions.state import TurnState
from apps.sessions.steps import input_gates, output_gates
from apps.sessions.steps.tools import toolset_for
from apps.sessions.streaming import GatedStream
from kernel.tenancy import in_scope, in_thread, tenant_scope
from llm.schemas import AgentResponse
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


@pytest.mark.parametrize("check", [input_gates.check, output_gates.check])
async def test_gate_that_is_put_in_force_meanwhile_is_not_asked_by_a_turn_that_runs(
    deployment: Any, check: Any
) -> None:
    """A turn whose gates changed between its message and its answer would be judged by no policy that ever held."""
    state = await opened(deployment)
    for on in (MESSAGE, RESPONSE):
        never = GateSpec(name=f"never_{on}", on=on, type="regex", config={"pattern": "(?!)"})
        await in_scope(deployment.tenant_id, save_gate, never, deployment_id=deployment.pk)
    assert await check(state) is None
    assert await check(await opened(deployment)) is not None


@pytest.mark.parametrize("check", [input_gates.check, output_gates.check])
async def test_gate_that_is_retired_meanwhile_is_asked_by_a_turn_that_runs(deployment: Any, check: Any) -> None:
    never = [
        GateSpec(name=f"never_{on}", on=on, type="regex", config={"pattern": "(?!)"}) for on in (MESSAGE, RESPONSE)
    ]
    state = await opened(deployment, *never)
    await in_scope(deployment.tenant_id, _retire_all)
    assert await check(state) is not None


def _retire_all() -> None:
    for gate in Gate.objects.all():
        retire(gate.pk)


async def test_full_set_passes_a_message_and_its_answer(deployment: Any) -> None:
    both = [rule(f"{on[6]}{number}", on) for on in (MESSAGE, RESPONSE) for number in range(16)]
    state = await opened(deployment, *both)
    assert await input_gates.check(state) is None
    assert await output_gates.check(state) is None


async def test_turn_that_asks_too_often_is_blocked_and_says_why(deployment: Any) -> None:
    state = await opened(deployment, *(rule(f"g{number:02}", RESPONSE) for number in range(17)))
    assert await output_gates.check(state) is None
    stopped = await output_gates.check(state)
    assert stopped is not None
    assert stopped.reason == "gate:g15"
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
    assert stopped is not None
    assert stopped.reason == "gate:binding"


@pytest.mark.parametrize("promoted", [False, True])
async def test_answer_is_not_shown_while_a_model_still_decides(deployment: Any, promoted: bool) -> None:
    shown: list[str] = []

    async def send(piece: str) -> None:
        shown.append(piece)

    judge = GateSpec(name="g", promote_to_policy=promoted, **{**LLM, "on": RESPONSE})
    await GatedStream((judge,), send).piece("Hello there, ")
    assert bool(shown) is not promoted
