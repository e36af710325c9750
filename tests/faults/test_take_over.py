"""A person takes over at every moment of a turn: from that commit on the bot records nothing, and shows nothing."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import pytest

from tests.fakes.openai_server import FakeOpenAI, Replies, direct
from tests.faults.house import House, Web
from tests.faults.staff import Staff
from tests.faults.visitor import Visitor, is_answer

ANSWER = "A burst pipe is covered, and so is the search for it, up to the sum that your schedule names."
# Parts of the time that a turn takes here; the last one is when it is over.
OVER = 2.0
MOMENTS = (0.0, 0.1, 0.3, 0.5, 0.7, 0.8, 0.85, 0.9, 0.95, 1.0, 1.05, 1.1, OVER)


@dataclass
class Handoff:
    visitor: Visitor
    rows: list[dict[str, Any]]
    waiting: int


@pytest.fixture(scope="module")
def handoffs(house: House, web: Web, model: Callable[[Replies], FakeOpenAI]) -> list[Handoff]:
    model([direct(ANSWER, pieces=8, between=0.03)])
    return asyncio.run(_handoffs(house, web))


async def _handoffs(house: House, web: Web) -> list[Handoff]:
    staff = await asyncio.to_thread(Staff, lambda: web, "agent")
    async with AsyncExitStack() as leaving:
        visitors = [await leaving.enter_async_context(Visitor(lambda: web)) for _ in MOMENTS]
        takes = statistics.median(await asyncio.gather(*map(_time_of_a_turn, visitors)))
        await asyncio.gather(
            *(_taken_over(visitor, part, takes, staff) for visitor, part in zip(visitors, MOMENTS, strict=True))
        )
        await asyncio.sleep(3)
        return [_handoff(house, visitor) for visitor in visitors]


async def _time_of_a_turn(visitor: Visitor) -> float:
    started = time.monotonic()
    await visitor.ask("Is a burst pipe covered?")
    return time.monotonic() - started


async def _taken_over(visitor: Visitor, part: float, takes: float, staff: Staff) -> None:
    seq = await visitor.acknowledged_as(await visitor.say("And a split hose?"))
    if part == OVER:
        await visitor.until(lambda frame: is_answer(frame) and frame["seq"] > seq)
    else:
        await asyncio.sleep(takes * part)
    assert await asyncio.to_thread(staff.take_over, visitor.session_id) == 302
    await visitor.until(lambda frame: frame["type"] == "owner")


def _handoff(house: House, visitor: Visitor) -> Handoff:
    rows = house.rows(
        "SELECT seq, kind, sender FROM silas_sessions_chronicleentry WHERE session_id = %s ORDER BY seq",
        visitor.session_id,
    )
    waiting = house.rows(
        "SELECT id FROM bus_queuemessage WHERE scope_id = %s AND finished_at IS NULL", visitor.session_id
    )
    return Handoff(visitor, rows, len(waiting))


def test_bot_records_nothing_after_the_take_over(handoffs: list[Handoff]) -> None:
    for handoff in handoffs:
        taken = next(row["seq"] for row in handoff.rows if row["kind"] == "owner")
        assert not [row for row in handoff.rows if row["sender"] == "bot" and row["seq"] > taken]


def test_visitor_sees_no_piece_of_an_answer_after_the_take_over(handoffs: list[Handoff]) -> None:
    for handoff in handoffs:
        kinds = [frame["type"] for frame in handoff.visitor.heard]
        assert "delta" not in kinds[kinds.index("owner") :]
        assert not any(map(is_answer, handoff.visitor.heard[kinds.index("owner") :]))


def test_moments_lie_before_and_after_the_answer(handoffs: list[Handoff]) -> None:
    assert {sum(row["sender"] == "bot" for row in handoff.rows) for handoff in handoffs} == {1, 2}


def test_nothing_is_owed_to_the_bot_any_more(handoffs: list[Handoff]) -> None:
    assert [handoff.waiting for handoff in handoffs] == [0] * len(MOMENTS)
