"""Thirty messages in one conversation, at once, through two web processes: one turn runs, in order, none is lost."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from tests.fakes.openai_server import FakeOpenAI, Replies, Reply, direct
from tests.faults.house import House, Web, await_that
from tests.faults.visitor import Frame, Visitor

MESSAGES, PENDING = 30, 20


@dataclass
class Rush:
    """`early` is what became of each message before the first turn had ended."""

    early: list[Frame]
    both: list[Visitor]
    most_at_once: int
    asked_of_model: int
    rows: list[dict[str, Any]]
    turns: list[dict[str, Any]]


@pytest.fixture(scope="module")
def rush(house: House, web: Web, model: Callable[[Replies], FakeOpenAI]) -> Rush:
    second = house.start_web()
    await_that(second.is_ready, "the second web process is ready")
    provider, all_said = model([]), threading.Event()

    def reply(_: dict[str, Any]) -> Reply:
        first = len(provider.requests) == 1
        return direct("Yes.", before_first=0.02, held_until=all_said if first else None)

    provider.replies = reply
    try:
        return asyncio.run(_rush(house, (web, second), provider, all_said))
    finally:
        house.kill(second.process)


async def _rush(house: House, webs: tuple[Web, Web], provider: FakeOpenAI, all_said: threading.Event) -> Rush:
    async with (
        Visitor(lambda: webs[0]) as here,
        Visitor(lambda: webs[1], resume_token=here.resume_token) as there,
    ):
        assert here.session_id == there.session_id
        both = [here, there]
        await asyncio.gather(*(both[number % 2].say(f"Message {number}") for number in range(MESSAGES)))
        await asyncio.gather(_hears_outcomes(here), _hears_outcomes(there))
        early = [*_outcomes(here), *_outcomes(there)]
        all_said.set()
        last = 2 * MESSAGES
        await asyncio.gather(*(each.until(lambda frame: frame.get("seq") == last, seconds=120) for each in both))
        rows = house.rows(
            "SELECT seq, sender, text FROM silas_sessions_chronicleentry WHERE session_id = %s ORDER BY seq",
            here.session_id,
        )
        turns = house.rows(
            "SELECT number, message_seq, status FROM silas_sessions_turn WHERE session_id = %s ORDER BY started_at",
            here.session_id,
        )
        return Rush(early, both, provider.most_at_once, len(provider.requests), rows, turns)


async def _hears_outcomes(visitor: Visitor) -> None:
    await visitor.until(lambda _: len(_outcomes(visitor)) >= MESSAGES // 2)


def _outcomes(visitor: Visitor) -> list[Frame]:
    """Of messages: accepted or refused."""
    return [frame for frame in visitor.heard if frame["type"] in {"ack", "error"}]


def test_one_turn_ran_at_a_time(rush: Rush) -> None:
    assert rush.most_at_once == 1


def test_model_was_asked_once_a_message(rush: Rush) -> None:
    assert rush.asked_of_model == MESSAGES


def test_twenty_messages_wait_and_the_rest_are_told_to_come_back(rush: Rush) -> None:
    acknowledged = [frame for frame in rush.early if frame["type"] == "ack"]
    refused = [frame for frame in rush.early if frame["type"] == "error"]
    assert len(acknowledged) == PENDING
    assert {frame["code"] for frame in refused} == {"busy_retry"}
    assert len(refused) == MESSAGES - PENDING
    assert all(frame["retry_after"] > 0 for frame in refused)


def test_every_message_is_recorded_once(rush: Rush) -> None:
    said = sorted(row["text"] for row in rush.rows if row["sender"] == "visitor")
    assert said == sorted(f"Message {number}" for number in range(MESSAGES))


def test_numbers_have_no_gap(rush: Rush) -> None:
    assert [row["seq"] for row in rush.rows] == list(range(1, 2 * MESSAGES + 1))


def test_messages_are_answered_once_each_and_in_order(rush: Rush) -> None:
    messages = [row["seq"] for row in rush.rows if row["sender"] == "visitor"]
    assert [(turn["message_seq"], turn["status"]) for turn in rush.turns] == [(seq, "done") for seq in messages]


def test_both_screens_show_the_same_record(rush: Rush) -> None:
    assert [visitor.seqs() for visitor in rush.both] == [list(range(1, 2 * MESSAGES + 1))] * 2
