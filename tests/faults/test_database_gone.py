"""PostgreSQL is killed with -9 for ten seconds while visitors write and a model answers, and nothing is restarted."""

from __future__ import annotations

import asyncio
import json
import subprocess
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import pytest

from tests.fakes.openai_server import FakeOpenAI, Replies, Reply, direct
from tests.faults.house import Answer, House, Web, await_that
from tests.faults.staff import Staff
from tests.faults.visitor import MARIA, Visitor, ask_for_session

OUTAGE_SECONDS = 10.0
TALKERS = 6
SLOW = "[slow]"


@dataclass
class Outage:
    """What was seen of it. `caught` had its answer being made when the database went."""

    visitors: list[Visitor]
    caught: Visitor
    asked_of_model: int
    refused: Answer
    back_after: float
    work: list[str]
    rows: list[dict[str, Any]]
    answered: dict[tuple[str, int], int]


@pytest.fixture(scope="module")
def outage(house: House, web: Web, worker: subprocess.Popen[bytes], model: Callable[[Replies], FakeOpenAI]) -> Outage:
    return asyncio.run(_outage(house, web, model(_replies)))


def _replies(request: dict[str, Any]) -> Reply:
    return direct("That was slow.", before_first=2.0) if SLOW in json.dumps(request) else direct("Yes, it is.")


async def _outage(house: House, web: Web, provider: FakeOpenAI) -> Outage:
    async with AsyncExitStack() as leaving:
        talkers = [await leaving.enter_async_context(Visitor(lambda: web)) for _ in range(TALKERS)]
        caught = await leaving.enter_async_context(Visitor(lambda: web))
        await asyncio.gather(*(talker.ask("Is a burst pipe covered?") for talker in talkers))
        await caught.acknowledged_as(await caught.say(f"{SLOW} Is a burst pipe covered?"))
        await asyncio.to_thread(await_that, lambda: provider.running, "the model is asked")
        house.kill_database()
        refused, *_ = await asyncio.gather(
            asyncio.to_thread(ask_for_session, web),
            asyncio.sleep(OUTAGE_SECONDS),
            *(_talk(talker, place) for place, talker in enumerate(talkers)),
        )
        house.start_database()
        back = time.monotonic()
        await asyncio.gather(*(visitor.hears_all() for visitor in (*talkers, caught)))
        back_after = time.monotonic() - back
        asked = sum(SLOW in json.dumps(request) for request in provider.requests)
        work = await _approved_work(house, web)
        return Outage([*talkers, caught], caught, asked, refused, back_after, work, _record(house), _answered(house))


async def _talk(talker: Visitor, place: int) -> None:
    """Into the dark, not all at the same moment."""
    await asyncio.sleep(place * 0.4)
    for number in range(4):
        await talker.say(f"Is a burst pipe covered, then? {number}")
        await asyncio.sleep(2)


async def _approved_work(house: House, web: Web) -> list[str]:
    """A change from its request to its end, by the same web process and the same worker as before."""
    house.use_models("builtin:grounded")
    async with Visitor(lambda: web) as visitor:
        await visitor.ask(MARIA)
        await visitor.say("Please change the address on my policy HM-20418 to 9 Mill Lane, York YO1 7PR")
        await visitor.until(lambda frame: frame["type"] == "status")
        (card,) = house.rows("SELECT id FROM approvals_card WHERE session_id = %s", visitor.session_id)
        staff = await asyncio.to_thread(Staff, lambda: web, "approver")
        assert await asyncio.to_thread(staff.approve, card["id"]) == 302
        await visitor.until(lambda frame: frame["type"] == "status" and frame["status"] == "done")
        return [frame["status"] for frame in visitor.heard if frame["type"] == "status"]


def _record(house: House) -> list[dict[str, Any]]:
    return house.rows(
        "SELECT session_id::text, seq, sender, client_id FROM silas_sessions_chronicleentry ORDER BY session_id, seq"
    )


def _answered(house: House) -> dict[tuple[str, int], int]:
    """How many turns have closed, by message."""
    rows = house.rows(
        "SELECT session_id::text, message_seq, count(*) FROM silas_sessions_turn WHERE status = 'done' GROUP BY 1, 2"
    )
    return {(row["session_id"], row["message_seq"]): row["count"] for row in rows}


def test_every_acknowledged_message_is_recorded_once_under_its_seq(outage: Outage) -> None:
    recorded = [(row["session_id"], row["client_id"], row["seq"]) for row in outage.rows if row["client_id"]]
    acknowledged = [
        (visitor.session_id, client_id, seq)
        for visitor in outage.visitors
        for client_id, seq in visitor.acknowledged.items()
    ]
    theirs = {visitor.session_id for visitor in outage.visitors}
    assert sorted(acknowledged) == sorted(row for row in recorded if row[0] in theirs)


def test_every_message_sent_into_the_outage_was_acknowledged_in_the_end(outage: Outage) -> None:
    assert [len(visitor.acknowledged) for visitor in outage.visitors] == [5] * TALKERS + [1]


def test_every_message_got_its_answer_once(outage: Outage) -> None:
    messages = {(row["session_id"], row["seq"]): 1 for row in outage.rows if row["sender"] == "visitor"}
    assert outage.answered == messages


def test_every_answer_was_heard_once_and_in_order(outage: Outage) -> None:
    for visitor in outage.visitors:
        assert visitor.seqs() == [row["seq"] for row in outage.rows if row["session_id"] == visitor.session_id]


def test_message_that_could_not_be_kept_was_refused_by_its_name(outage: Outage) -> None:
    errors = [error for visitor in outage.visitors for error in visitor.errors()]
    assert {error["code"] for error in errors} == {"unavailable"}
    assert all(error["client_id"] and error["retry_after"] for error in errors)


def test_no_socket_was_lost(outage: Outage) -> None:
    assert {visitor.lines for visitor in outage.visitors} == {1}


def test_new_conversation_during_the_outage_is_told_to_come_back(outage: Outage) -> None:
    assert outage.refused.status == 503
    assert json.loads(outage.refused.body)["error"]["code"] == "unavailable"


def test_answer_that_was_ready_waited_and_the_model_was_asked_once(outage: Outage) -> None:
    assert outage.asked_of_model == 1
    assert [answer["text"] for answer in outage.caught.answers()] == ["That was slow."]


def test_service_resumed_by_itself_at_once(outage: Outage) -> None:
    assert outage.back_after < 15


def test_worker_carried_out_what_was_approved_afterwards(outage: Outage, worker: subprocess.Popen[bytes]) -> None:
    assert outage.work[-1] == "done"
    assert worker.poll() is None
