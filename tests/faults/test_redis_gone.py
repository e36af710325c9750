"""Redis killed with -9 for ten seconds, then held still: rows are the truth, so only liveliness waits."""

from __future__ import annotations

import asyncio
import subprocess
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

import pytest

from tests.faults.house import House, Web, await_that
from tests.faults.staff import Staff
from tests.faults.visitor import MARIA, Visitor

OUTAGE_SECONDS = 10.0
STILL_SECONDS = 6.0
TALKERS = 4
JURGEN = "I am Jürgen van der Berg, born on 5 December 1986."
QUESTION = "Does my home policy cover a burst pipe?"


@dataclass
class Outage:
    """`elsewhere` is another screen of the first visitor, at another web process; `during` counts the answers that each
    had heard when Redis came back."""

    visitors: list[Visitor]
    elsewhere: Visitor
    mover: Visitor
    during: list[int] = field(default_factory=list)
    approved: int = 0


@dataclass
class Stillness:
    visitors: list[Visitor]
    approving: float


@pytest.fixture(scope="module")
def gone(house: House, web: Web, worker: subprocess.Popen[bytes]) -> Outage:
    second = house.start_web()
    await_that(second.is_ready, "the second web process is ready")
    try:
        return asyncio.run(_gone(house, web, second))
    finally:
        house.kill(second.process)


@pytest.fixture(scope="module")
def still(house: House, web: Web, worker: subprocess.Popen[bytes]) -> Stillness:
    return asyncio.run(_still(house, web))


async def _gone(house: House, web: Web, second: Web) -> Outage:
    async with AsyncExitStack() as leaving:
        talkers = [await leaving.enter_async_context(Visitor(lambda: web)) for _ in range(TALKERS)]
        elsewhere = Visitor(lambda: second, resume_token=talkers[0].resume_token)
        await leaving.enter_async_context(elsewhere)
        mover = await leaving.enter_async_context(Visitor(lambda: web))
        await asyncio.gather(mover.ask(MARIA), *(talker.ask(QUESTION) for talker in talkers))
        staff = await asyncio.to_thread(Staff, lambda: web, "approver")
        outage = Outage(talkers, elsewhere, mover)
        house.kill_redis()
        outage.approved, *_ = await asyncio.gather(
            _moved(house, mover, staff), asyncio.sleep(OUTAGE_SECONDS), *(_talk(talker) for talker in talkers)
        )
        outage.during = [len(visitor.answers()) for visitor in (*talkers, elsewhere)]
        house.start_redis()
        await asyncio.gather(*(talker.hears_all() for talker in talkers))
        await elsewhere.until(lambda frame: frame.get("seq") == 2 * len(talkers[0].acknowledged))
        await mover.until(lambda frame: frame["type"] == "status" and frame["status"] == "done", seconds=60)
        return outage


async def _talk(talker: Visitor) -> None:
    for _ in range(4):
        await talker.send(type="typing")
        await talker.say(QUESTION)
        await asyncio.sleep(1.5)


async def _moved(house: House, mover: Visitor, staff: Staff) -> int:
    """Asked for and approved while Redis is away: the status of the approver's press."""
    await mover.say("Please change the address on my policy TR-51190 to 4 Quay Street, Hull HU1 1AA")
    await mover.until(lambda frame: frame["type"] == "status", seconds=20)
    (card,) = house.rows("SELECT id FROM approvals_card WHERE session_id = %s", mover.session_id)
    return await asyncio.to_thread(staff.approve, card["id"])


async def _still(house: House, web: Web) -> Stillness:
    async with AsyncExitStack() as leaving:
        talkers = [await leaving.enter_async_context(Visitor(lambda: web)) for _ in range(TALKERS)]
        mover = await leaving.enter_async_context(Visitor(lambda: web))
        await asyncio.gather(mover.ask(JURGEN), *(talker.ask(QUESTION) for talker in talkers))
        await mover.say("Please change the address on my policy HM-22310 to 8 Dock Street, Hull HU1 2BB")
        await mover.until(lambda frame: frame["type"] == "status")
        staff = await asyncio.to_thread(Staff, lambda: web, "approver")
        (card,) = house.rows("SELECT id FROM approvals_card WHERE session_id = %s", mover.session_id)
        face = await asyncio.to_thread(staff.face_of, card["id"])
        house.hold_redis(still=True)
        try:
            approving, *_ = await asyncio.gather(
                _approving(staff, card["id"], face),
                asyncio.sleep(STILL_SECONDS),
                *(talker.say(QUESTION) for talker in talkers),
            )
        finally:
            house.hold_redis(still=False)
        await asyncio.gather(*(talker.hears_all() for talker in talkers))
        await mover.until(lambda frame: frame["type"] == "status" and frame["status"] == "done", seconds=60)
        return Stillness(talkers, approving)


async def _approving(staff: Staff, card_id: object, face: str) -> float:
    """How long the approver, who has the page open, waits for the press."""
    started = time.monotonic()
    assert await asyncio.to_thread(staff.approve, card_id, face) == 302
    return time.monotonic() - started


def test_messages_were_acknowledged_while_redis_was_away(gone: Outage) -> None:
    waited = [seconds for talker in gone.visitors for seconds in talker.waited.values()]
    assert len(waited) == TALKERS * 5
    assert max(waited) < 5


def test_answers_were_heard_while_redis_was_away(gone: Outage) -> None:
    assert min(gone.during) > 1


def test_every_frame_was_heard_once_and_in_order(gone: Outage) -> None:
    assert [talker.seqs() for talker in gone.visitors] == [list(range(1, 11))] * TALKERS


def test_screen_at_another_web_process_heard_the_same(gone: Outage) -> None:
    assert gone.elsewhere.seqs() == list(range(1, 11))


def test_no_socket_was_lost(gone: Outage) -> None:
    assert {visitor.lines for visitor in (*gone.visitors, gone.elsewhere, gone.mover)} == {1}


def test_nobody_was_refused(gone: Outage) -> None:
    assert [visitor.errors() for visitor in gone.visitors] == [[]] * TALKERS


def test_work_approved_while_redis_was_away_was_carried_out_by_the_same_worker(
    gone: Outage, house: House, worker: subprocess.Popen[bytes]
) -> None:
    (policy,) = house.rows("SELECT data FROM skills_record WHERE key = 'TR-51190'")
    assert gone.approved == 302
    assert policy["data"]["address"] == "4 Quay Street, Hull HU1 1AA"
    assert worker.poll() is None


def test_messages_were_acknowledged_while_redis_stood_still(still: Stillness) -> None:
    assert max(seconds for talker in still.visitors for seconds in talker.waited.values()) < 4


def test_approver_did_not_wait_for_redis_that_stood_still(still: Stillness) -> None:
    assert still.approving < STILL_SECONDS - 1


def test_every_frame_was_heard_once_though_redis_stood_still(still: Stillness) -> None:
    assert [talker.seqs() for talker in still.visitors] == [list(range(1, 5))] * TALKERS
