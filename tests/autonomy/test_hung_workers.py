"""A worker that lives but hangs is killed at its deadline, and its place and lane are free."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from apps.autonomy.enums import SessionStatus
from apps.autonomy.services import admission, session_control, session_run
from apps.bus import deadlines
from apps.bus import services as bus
from apps.bus.deliveries import Delivery
from apps.bus.enums import Queue
from apps.bus.models import QueueMessage
from apps.bus.schemas import LeaseLost
from apps.guard import services as guard
from apps.guard.enums import CallState, Intent, TerminalReason
from apps.guard.models import ToolCall
from apps.guard.schemas import Admitted, Call, CallContext, Failed, HandlerResult, Limits
from kernel.clock import now
from kernel.tenancy import tenant_scope
from silas_platform.worker_watchdog import kill_overdue
from tests.factories.autonomy import House
from tests.factories.bus import lease_any
from tests.factories.guard import answer, make_call, make_run
from tests.guard.conftest import call as through_the_door
from tests.guard.conftest import handle as handle


def make_hung_session(house: House, **fields: Any) -> tuple[Any, Delivery]:
    """A session whose worker has started a call and then hangs."""
    session = house.run_now(house.task(**fields))
    house.do(admission.admit_waiting)
    lease = house.do(lease_any, Queue.EXECUTOR, consumer="worker:here:1")
    delivery = Delivery(house.tenant.pk, lease, "executor:autonomous_session")
    job = house.do(session_run.begin_session, delivery)
    asked = Call(tool="knowledge_search", access=frozenset({"knowledge_search"}))
    from apps.guard.services.admission import admit_call

    assert isinstance(house.do(admit_call, job.run, Intent.RETRIEVE_CHUNKS, asked), Admitted)
    return house.session(session.pk), delivery


def let_time_run_out(house: House, session: Any) -> None:
    house.change(session.run, started_at=now() - timedelta(hours=1))


def test_hung_session_is_ended_by_the_watch_with_a_receipt(house: House) -> None:
    session, _ = make_hung_session(house)
    let_time_run_out(house, session)
    house.do(session_control.check_session, session.pk)
    house.do(session_control.check_session, session.pk)
    ended = house.session(session.pk)
    assert ended.status == SessionStatus.HALTED
    assert ended.terminal_reason == TerminalReason.BUDGET_WALL_CLOCK
    assert ended.error_code == "worker_hung"
    assert ended.receipt["terminal_reason"] == "budget_wall_clock"


def test_calls_of_a_hung_session_are_unknown_and_not_repeated(house: House) -> None:
    session, _ = make_hung_session(house)
    let_time_run_out(house, session)
    house.do(session_control.check_session, session.pk)
    house.do(session_control.check_session, session.pk)
    assert [call["outcome"] for call in house.session(session.pk).receipt["tool_calls"]] == [CallState.UNCERTAIN]
    assert len(house.sessions()) == 1


def test_lane_of_a_hung_session_is_free_for_the_next_one(house: House) -> None:
    session, _ = make_hung_session(house)
    following = house.run_now(session.task)
    let_time_run_out(house, session)
    house.do(session_control.check_session, session.pk)
    house.do(session_control.check_session, session.pk)
    house.finish()
    assert house.session(following.pk).status == SessionStatus.COMPLETED


def test_hung_worker_that_wakes_up_writes_nothing(house: House) -> None:
    session, delivery = make_hung_session(house)
    let_time_run_out(house, session)
    house.do(session_control.check_session, session.pk)
    house.do(session_control.check_session, session.pk)
    with pytest.raises(LeaseLost):
        house.do(delivery.finish)


def test_halted_session_whose_worker_hangs_ends_as_halted(house: House) -> None:
    session, _ = make_hung_session(house)
    house.do(session_control.halt_session, session.pk, user=house.owner)
    let_time_run_out(house, session)
    house.do(session_control.check_session, session.pk)
    assert house.session(session.pk).terminal_reason == TerminalReason.EXTERNAL_HALT


def test_session_within_its_time_is_not_ended(house: House) -> None:
    session, _ = make_hung_session(house)
    house.do(session_control.check_session, session.pk)
    house.do(session_control.check_session, session.pk)
    assert house.session(session.pk).status == SessionStatus.RUNNING


def test_what_an_ended_worker_held_is_owed_at_once(house: House) -> None:
    session, _ = make_hung_session(house)
    let_time_run_out(house, session)
    house.do(bus.release_leases, "worker:here:1")
    house.work(Queue.EXECUTOR)
    ended = house.session(session.pk)
    assert ended.terminal_reason == TerminalReason.BUDGET_WALL_CLOCK
    assert len(house.sessions()) == 1


def test_what_another_worker_holds_stays_with_it(house: House) -> None:
    session, _ = make_hung_session(house)
    house.do(bus.release_leases, "worker:here:12")
    with tenant_scope(house.tenant):
        assert QueueMessage.objects.get(pk=session.message_id).leased_until > now()


class Outbox:
    """A stand-in for the broker's client."""

    amqp = SimpleNamespace(queues=SimpleNamespace(consume_from={"work": None}))

    def __init__(self) -> None:
        self.sent: list[tuple[str, list[str], str]] = []

    def send_task(self, name: str, args: list[str], queue: str) -> None:
        self.sent.append((name, args, queue))


def stopped() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def deaf_to_signals() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(600)


def stuck_in_a_thread() -> None:
    threading.Thread(target=time.sleep, args=(600,)).start()


def stuck_in_c() -> None:
    """Hold the interpreter lock."""
    pow(3, 10**9)


@pytest.mark.parametrize("hang", [stopped, deaf_to_signals, stuck_in_a_thread, stuck_in_c])
def test_child_beyond_its_deadline_is_ended_however_it_hangs(hang: Callable[[], None]) -> None:
    shared, outbox = deadlines.Deadlines(), Outbox()
    child = os.fork()
    if child == 0:
        shared.write(3, os.getpid(), time.monotonic() + 0.3)
        hang()
        time.sleep(600)
        os._exit(0)
    give_up = time.monotonic() + 30
    while not outbox.sent and time.monotonic() < give_up:
        kill_overdue(outbox, shared)
        time.sleep(0.05)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    ((name, args, queue),) = outbox.sent
    assert name == "bus.give_back"
    assert args[0].endswith(f":{child}")
    assert queue == "work"
    assert list(shared.overdue()) == []


def test_process_that_is_no_child_of_ours_is_not_ended() -> None:
    shared, outbox = deadlines.Deadlines(), Outbox()
    shared.write(0, os.getppid(), time.monotonic() - 1)
    kill_overdue(outbox, shared)
    assert outbox.sent == []


def test_child_within_its_deadline_is_left_alone() -> None:
    shared = deadlines.Deadlines()
    shared.write(0, os.getpid(), time.monotonic() + 60)
    assert list(shared.overdue()) == []


def test_tool_that_never_returns_costs_no_more_than_is_left_of_its_run(tenant: Any, handle: Any) -> None:
    woken = threading.Event()

    def sleeps(_: CallContext) -> HandlerResult:
        woken.wait(20)
        return HandlerResult("late")

    handle(sleeps)
    run = make_run(tenant, limits=Limits(wall_seconds=2))
    began = time.monotonic()

    async def asked() -> Any:
        outcome = await guard.guarded_call(run.ref, Intent.RUN_SKILL, make_call(patience_seconds=300))
        took = time.monotonic() - began
        woken.set()
        return outcome, took

    outcome, took = asyncio.run(asked())
    assert isinstance(outcome, Failed)
    assert outcome.uncertain is True
    assert took < 15
    with tenant_scope(tenant):
        assert ToolCall.objects.get(run=run).state == CallState.UNCERTAIN


def test_tool_that_returns_in_time_is_not_cut(tenant: Any, handle: Any) -> None:
    handle(answer("found"))
    assert through_the_door(make_run(tenant, limits=Limits(wall_seconds=60))).value == "found"
