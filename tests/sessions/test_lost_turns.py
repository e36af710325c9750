"""What becomes of a turn whose process died, and of one during which a person took over?"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from channels.layers import get_channel_layer

from apps.bus.models import QueueMessage
from apps.gates.schemas import GateSpec
from apps.gates.services import save_gate
from apps.inbox import handoff
from apps.sessions import runner, turn
from apps.sessions.models import ChatSession, ChronicleEntry, Turn
from apps.sessions.rules import group_of
from kernel import live
from kernel.tenancy import in_scope, in_thread, tenant_scope
from llm.offline import phrases
from llm.schemas import AgentResponse
from tests.factories.bus import let_leases_run_out
from tests.factories.sessions import make_session, say


@pytest.fixture
def session(deployment: Any) -> ChatSession:
    found = make_session(deployment)
    say(found, "Hello there")
    return found


def _open(session: ChatSession) -> Any:
    with tenant_scope(session.tenant_id):
        return turn.open_turn(session.pk, consumer="test")


def _said(session: ChatSession) -> list[str]:
    with tenant_scope(session.tenant_id):
        return list(
            ChronicleEntry.objects.filter(session_id=session.pk).order_by("seq").values_list("sender", flat=True)
        )


def _turns(session: ChatSession) -> list[tuple[str, str]]:
    with tenant_scope(session.tenant_id):
        return list(Turn.objects.filter(session_id=session.pk).order_by("started_at").values_list("status", "reason"))


def test_turn_during_which_a_person_took_over_says_nothing(session: ChatSession, agent: Any) -> None:
    state = _open(session)
    with tenant_scope(session.tenant_id):
        handoff.take_over(session.pk, agent)
    state.response = AgentResponse(message="Late, and not wanted any more.")
    with tenant_scope(session.tenant_id):
        turn.close_turn(state)
    assert _said(session) == ["visitor", "system"]
    assert _turns(session) == [("stopped", "taken_over")]


def test_turn_taken_over_and_handed_back_meanwhile_says_nothing(session: ChatSession, agent: Any) -> None:
    state = _open(session)
    with tenant_scope(session.tenant_id):
        handoff.take_over(session.pk, agent)
        handoff.hand_back(session.pk, agent)
    state.response = AgentResponse(message="From before.")
    with tenant_scope(session.tenant_id):
        turn.close_turn(state)
    assert "bot" not in _said(session)


def test_lost_turn_is_closed_when_its_message_is_answered_again(session: ChatSession) -> None:
    _open(session)
    let_leases_run_out(session.tenant_id)
    assert _open(session) is not None
    assert _turns(session) == [("failed", "process_lost"), ("running", "")]


@pytest.mark.parametrize(("tries", "streams"), [(1, True), (2, False)])
async def test_only_the_first_try_is_shown_while_it_grows(session: ChatSession, tries: int, streams: bool) -> None:
    heard, _ = await _heard_in_a_turn(session, tries=tries)
    assert ("chat.delta" in heard) is streams


async def _heard_in_a_turn(session: ChatSession, *, tries: int = 1) -> tuple[list[str], str]:
    """What the widget hears until the answer is there, and the answer; all tries but the last are lost."""
    layer = get_channel_layer()
    channel = await layer.new_channel()
    await layer.group_add(group_of(session.pk), channel)
    for _ in range(tries):
        await in_thread(let_leases_run_out, session.tenant_id)
        state = await in_scope(session.tenant_id, turn.open_turn, session.pk, consumer="test")
    await turn.run(state)
    heard: list[str] = []
    while "chat.frame" not in heard:
        told = await asyncio.wait_for(layer.receive(channel), 5)
        heard += [event["type"] for event in live.unpack_events(told, attending=False)]
    return heard, state.response.message if state.response else ""


async def test_answer_that_is_asked_for_again_is_not_shown_while_it_grows(session: ChatSession) -> None:
    """Pieces of the answer that a gate held back may stand on the screen: another text behind them makes no sense."""
    says_i = {"type": "regex", "config": {"pattern": rf"\A{phrases.MAY_NOT_SAY[:2]}"}}
    gate = GateSpec(name="i", on="every_agent_response", on_block="suppress_and_rephrase", **says_i)
    await in_scope(session.tenant_id, save_gate, gate)
    heard, answer = await _heard_in_a_turn(session)
    assert answer.startswith(phrases.MAY_NOT_SAY)
    assert "chat.delta" not in heard


def _steal(session: ChatSession) -> None:
    """Let somebody else have the message that is being answered."""
    with tenant_scope(session.tenant_id):
        QueueMessage.objects.filter(scope_id=session.pk).update(fence=1000)


async def test_turn_whose_lease_was_given_to_another_process_ends_without_a_word(
    session: ChatSession, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def take_long(state: Any) -> None:
        await in_thread(_steal, session)
        await asyncio.sleep(60)

    settings.TURN_LEASE_SECONDS = 0.3
    monkeypatch.setattr(turn, "run", take_long)
    assert await runner._one_turn(session.tenant_id, session.pk) is False
    assert await in_thread(_said, session) == ["visitor"]


async def test_conversation_woken_between_its_tasks_last_look_and_its_end_is_answered(session: ChatSession) -> None:
    runner._woken.add(session.pk)
    runner._ended(session.tenant_id, session.pk)
    await runner.settled()
    assert await in_thread(_said, session) == ["visitor", "bot"]


async def test_conversation_whose_turn_ends_with_the_process_begins_no_other(session: ChatSession) -> None:
    runner.wake(session.tenant_id, session.pk)
    runner._tasks[session.pk].cancel()
    await runner.settled()
    assert await in_thread(_said, session) == ["visitor"]
    assert runner._woken & {session.pk} == set()
