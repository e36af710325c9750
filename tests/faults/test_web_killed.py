"""A web process killed with -9 while a model streams: another one answers, once, and the visitor never reloads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from tests.fakes.openai_server import FakeOpenAI, Replies, direct
from tests.faults.house import House, Web, await_that
from tests.faults.visitor import Visitor

ANSWER = "A burst pipe is covered, and so is the search for it, up to the sum that your schedule names."


@dataclass
class Kill:
    visitor: Visitor
    asked_of_model: int
    deltas: tuple[int, int]
    turns: list[dict[str, Any]]
    messages: list[dict[str, Any]]


@pytest.fixture(scope="module")
def kill(house: House, model: Callable[[Replies], FakeOpenAI]) -> Kill:
    provider = model([direct(ANSWER, pieces=4, between=0.05)])
    first, second = house.start_web(), house.start_web()
    try:
        return asyncio.run(_kill(house, first, second, provider))
    finally:
        house.kill(second.process)


async def _kill(house: House, first: Web, second: Web, provider: FakeOpenAI) -> Kill:
    await_that(first.is_ready, "the first web process is ready")
    webs = [first]
    async with Visitor(lambda: webs[0]) as visitor:
        await visitor.acknowledged_as(await visitor.say("Is a burst pipe covered?"))
        await visitor.until(lambda frame: frame["type"] == "delta")
        house.kill(first.process)
        webs[0] = second
        await_that(second.is_ready, "the second web process is ready")
        deltas = sum(frame["type"] == "delta" for frame in visitor.heard)
        house.let_leases_run_out()
        await visitor.hears_all()
        await asyncio.sleep(3)  # long enough for a sweep to answer again, if it did
        turns = house.rows(
            "SELECT status FROM silas_sessions_turn WHERE session_id = %s ORDER BY started_at", visitor.session_id
        )
        said = house.rows(
            "SELECT sender, text FROM silas_sessions_chronicleentry WHERE session_id = %s ORDER BY seq",
            visitor.session_id,
        )
        whole = sum(frame["type"] == "delta" for frame in visitor.heard)
        return Kill(visitor, len(provider.requests), (deltas, whole - deltas), turns, said)


def test_message_is_answered_once(kill: Kill) -> None:
    assert [row["sender"] for row in kill.messages] == ["visitor", "bot"]


def test_answer_is_the_whole_one_that_was_made_anew(kill: Kill) -> None:
    assert kill.messages[1]["text"] == ANSWER
    assert kill.asked_of_model == 2


def test_visitor_heard_it_once_over_a_new_line(kill: Kill) -> None:
    assert kill.visitor.seqs() == [1, 2]
    assert kill.visitor.lines == 2


def test_it_died_in_the_middle_of_the_answer(kill: Kill) -> None:
    assert 0 < kill.deltas[0] < len(ANSWER) / 4


def test_second_try_is_not_shown_behind_the_pieces_of_the_first(kill: Kill) -> None:
    assert kill.deltas[1] == 0


def test_lost_turn_is_closed_as_failed(kill: Kill) -> None:
    assert [row["status"] for row in kill.turns] == ["failed", "done"]
