"""Does what staff tell each other stay among them? Every way on which words leave a conversation, with a note in it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from apps.inbox import services
from apps.inbox.summaries import hand_over
from apps.knowledge.models import Chunk
from apps.memory.models import MemoryItem
from apps.sessions import presence, turn, window
from apps.sessions.models import ChatSession, ChronicleEntry, Turn
from kernel.tenancy import in_scope, in_thread, tenant_scope
from tests.factories.sessions import make_session, say, visitor_of
from tests.sessions.test_socket import Socket, _present

SECRET = "zanzibar-9"


@pytest.fixture
def session(deployment: Any, agent: Any) -> ChatSession:
    made = make_session(deployment)
    say(made, "Hello, is a burst pipe covered?")
    with tenant_scope(deployment.tenant_id):
        services.note(made.pk, agent, f"They are called {SECRET} here, call them back.")
    return made


@pytest_asyncio.fixture
async def line(deployment: Any, session: ChatSession) -> AsyncIterator[Socket]:
    socket = await _present(deployment, session)
    await socket.frames_until("message")
    yield socket
    await socket.disconnect()


async def test_note_reaches_no_open_socket_of_the_visitor(line: Socket, session: ChatSession, agent: Any) -> None:
    await in_scope(session.tenant_id, services.note, session.pk, agent, SECRET)
    assert await line.receive_nothing(0.3)


def test_note_is_in_nothing_that_a_visitor_who_comes_back_is_sent(deployment: Any, session: ChatSession) -> None:
    with tenant_scope(session.tenant_id):
        arrival = presence.arrive(visitor_of(deployment, session.pk), 0)
    assert SECRET not in json.dumps([arrival.ready, arrival.missed])


def test_note_moves_no_seq_and_no_preview(session: ChatSession) -> None:
    with tenant_scope(session.tenant_id):
        found = ChatSession.objects.get(pk=session.pk)
        assert found.seq == 1
        assert SECRET not in found.preview
        assert found.last_sender == "visitor"


def test_note_is_no_entry_of_the_chronicle(session: ChatSession) -> None:
    with tenant_scope(session.tenant_id):
        assert [entry.text for entry in ChronicleEntry.objects.filter(text__contains=SECRET)] == []


def test_note_is_nothing_that_a_summary_tells(session: ChatSession) -> None:
    with tenant_scope(session.tenant_id):
        session.wanted_person_at = session.created_at
        assert SECRET not in str(hand_over(session, list(ChronicleEntry.objects.filter(session=session))))


@pytest.fixture
def lived(session: ChatSession) -> turn.TurnState:
    """The last of the turns after the note."""

    async def answered() -> turn.TurnState:
        await in_thread(say, session, "And what else do you know of me?")
        last = None
        while state := await in_scope(session.tenant_id, turn.open_turn, session.pk, consumer="test"):
            last = state
            await turn.run(state)
        assert last is not None
        return last

    return asyncio.run(answered())


def test_note_is_in_no_window_of_a_model(lived: turn.TurnState) -> None:
    items, judged = window.laid_out(lived)
    assert items
    assert SECRET not in str(items) + str(judged)


def test_note_is_in_nothing_that_a_turn_holds(lived: turn.TurnState) -> None:
    assert SECRET not in repr(lived)


def test_note_is_in_no_memory(lived: turn.TurnState) -> None:
    with tenant_scope(lived.tenant_id):
        kept = [*MemoryItem.objects.values_list("content", flat=True), *Chunk.objects.values_list("text", flat=True)]
    assert SECRET not in str(kept)


def test_note_is_in_no_answer_and_in_no_record_of_a_turn(lived: turn.TurnState) -> None:
    with tenant_scope(lived.tenant_id):
        said = list(ChronicleEntry.objects.filter(sender="bot").values_list("text", "payload"))
        seen = list(Turn.objects.values_list("context", "read_as", "reason"))
    assert said
    assert SECRET not in str(said) + str(seen)
