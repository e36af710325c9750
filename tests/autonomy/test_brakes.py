"""A brake ends a session with its reason and its receipt, and is never retried (contract autonomy A3, C)."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from apps.autonomy import services
from apps.autonomy.enums import SessionStatus
from apps.autonomy.executor import PhaseRunner
from apps.autonomy.guarded_client import GuardedClient
from apps.autonomy.jobs import build_job
from apps.autonomy.models import MemoryProposal, Notification
from apps.autonomy.services import admission, session_run
from apps.bus.deliveries import Delivery
from apps.bus.enums import Queue
from apps.guard import services as guard
from apps.guard.enums import TerminalReason
from apps.guard.models import SystemControl
from kernel.errors import NotFound, SilasError
from kernel.tenancy import tenant_scope
from tests.factories.autonomy import RETURNS, House, make_house
from tests.factories.bus import lease_any
from tests.factories.tenants import make_member


def ending_of(session: Any) -> tuple[str, str]:
    return session.status, session.terminal_reason


def begin_session(house: House) -> tuple[Any, Delivery]:
    """A session that a worker has started and holds."""
    session = house.run_now(house.task())
    house.do(admission.admit_waiting)
    lease = house.do(lease_any, Queue.EXECUTOR, consumer="test")
    delivery = Delivery(house.tenant.pk, lease, "executor:autonomous_session")
    house.do(session_run.begin_session, delivery)
    return house.session(session.pk), delivery


def run_in_worker(house: House, session: Any, delivery: Delivery) -> Any:
    """Run a started session to its end, as its worker would."""
    job = house.do(build_job, session, delivery.lease)
    ending = asyncio.run(PhaseRunner(GuardedClient(job)).run())
    house.do(session_run.conclude_session, delivery, session.pk, ending)
    return house.session(session.pk)


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        ({"calls": 0}, TerminalReason.BUDGET_TOOL_CALLS),
        ({"calls": 2}, TerminalReason.BUDGET_TOOL_CALLS),
        ({"tokens": 0}, TerminalReason.BUDGET_TOKENS),
        ({"wall_seconds": 0}, TerminalReason.BUDGET_WALL_CLOCK),
    ],
)
def test_contract_budget_stop_is_halted_never_completed(house: House, limits: Any, reason: TerminalReason) -> None:
    assert ending_of(house.through(house.task(limits=limits))) == (SessionStatus.HALTED, reason)


def test_cap_of_zero_lets_what_costs_nothing_pass(house: House) -> None:
    session = house.through(house.task(limits={"cost_usd": 0}))
    assert ending_of(session) == (SessionStatus.COMPLETED, TerminalReason.COMPLETED)


def test_contract_smallest_of_all_caps_is_frozen(house: House) -> None:
    house.do(services.put_settings, actor="user:test", limits={"cost_usd": "0.30", "calls": 7})
    session = house.run_now(house.task(limits={"cost_usd": "0.40", "tokens": 9}), cap_usd=Decimal("0.35"))
    limits = session.frozen_limits
    assert limits.cost_usd == Decimal("0.30")
    assert limits.calls == 7
    assert limits.tokens == 9


def test_limits_do_not_change_once_a_session_is_queued(house: House) -> None:
    task = house.task(limits={"calls": 3})
    session = house.run_now(task)
    house.task(task_id=task.pk, name=task.name, limits={"calls": 300})
    assert house.session(session.pk).frozen_limits.calls == 3


@pytest.mark.parametrize("cap", [Decimal(-1), Decimal(10**9)])
def test_absurd_cap_by_hand_is_refused(house: House, cap: Decimal) -> None:
    with pytest.raises(SilasError) as refused:
        house.do(services.run_now, house.task().pk, user=house.owner, cap_usd=cap)
    assert refused.value.code == "task_limits"


def test_brake_routes_nothing_and_is_not_tried_again(house: House) -> None:
    house.through(house.task(limits={"calls": 1}, route={"kind": "notify"}))
    with tenant_scope(house.tenant):
        assert [each.reason for each in Notification.objects.all()] == ["budget_tool_calls"]
    assert len(house.sessions()) == 1


def test_contract_receipt_is_stored_for_a_halted_run(house: House) -> None:
    session = house.through(house.task(limits={"calls": 1}))
    assert session.receipt is not None
    assert session.receipt["terminal_reason"] == "budget_tool_calls"


def test_waiting_session_is_called_off_at_once(house: House) -> None:
    session = house.run_now(house.task())
    house.do(services.halt_session, session.pk, user=house.owner)
    session = house.session(session.pk)
    assert ending_of(session) == (SessionStatus.CANCELLED, TerminalReason.CANCELLED)
    assert session.receipt is not None


def test_halting_twice_says_so_and_changes_nothing(house: House) -> None:
    session, _ = begin_session(house)
    answers = [house.do(services.halt_session, session.pk, user=house.owner) for _ in range(2)]
    assert answers == [True, False]


def test_halting_a_finished_session_leaves_it_as_it_ended(house: House) -> None:
    session = house.through(house.task())
    assert not house.do(services.halt_session, session.pk, user=house.owner)
    assert house.session(session.pk).receipt == session.receipt


def test_contract_halt_takes_effect_at_the_next_call_and_leaves_a_receipt(house: House) -> None:
    session, delivery = begin_session(house)
    house.do(services.halt_session, session.pk, user=house.owner)
    session = run_in_worker(house, session, delivery)
    assert ending_of(session) == (SessionStatus.HALTED, TerminalReason.EXTERNAL_HALT)
    assert session.receipt is not None
    assert session.receipt["halt_state"] == "halted"


def test_halt_is_open_to_who_never_opted_in(house: House) -> None:
    session, _ = begin_session(house)
    assert house.do(services.halt_session, session.pk, user=make_member(house.tenant, "agent"))


def test_halt_stays_open_when_everything_is_switched_off(house: House) -> None:
    session, _ = begin_session(house)
    house.do(services.put_settings, actor="user:test", enabled=False)
    assert house.do(services.halt_session, session.pk, user=house.owner)


def test_viewer_halts_nothing(house: House) -> None:
    session, _ = begin_session(house)
    with pytest.raises(SilasError) as refused:
        house.do(services.halt_session, session.pk, user=make_member(house.tenant, "viewer"))
    assert refused.value.status == 403


def test_foreign_session_cannot_be_halted(house: House, other_tenant: Any) -> None:
    theirs = make_house(other_tenant)
    session = theirs.run_now(theirs.task())
    with pytest.raises(NotFound):
        house.do(services.halt_session, session.pk, user=house.owner)


def test_pause_stops_a_running_session_at_its_next_call(house: House) -> None:
    session, delivery = begin_session(house)
    with tenant_scope(house.tenant):
        SystemControl.objects.create(pause="pause_all")
    assert ending_of(run_in_worker(house, session, delivery)) == (SessionStatus.HALTED, TerminalReason.EXTERNAL_HALT)


def test_contract_denied_tool_fails_with_its_reason(house: House) -> None:
    session = house.through(house.task(tool_deny=["knowledge_search"]))
    assert ending_of(session) == (SessionStatus.FAILED, TerminalReason.TOOL_NOT_GRANTED)


def test_tool_list_that_leaves_the_search_out_takes_it_away(house: House) -> None:
    session = house.through(house.task(tool_allow=["open_questions"]))
    assert session.terminal_reason == TerminalReason.TOOL_NOT_GRANTED


def test_tool_list_takes_no_delivery_away(house: House) -> None:
    session = house.through(house.task(tool_allow=["knowledge_search"]))
    assert session.status == SessionStatus.COMPLETED


def test_contract_memory_writes_beyond_the_limit_are_dropped(house: House, tmp_path: Path) -> None:
    house.know(tmp_path, returns=RETURNS)
    for word in ("parrots", "dragons", "unicorns"):
        house.ask(f"Do you sell gift wrapping for {word}?")
    session = house.through(house.task(playbook="unanswered", limits={"memory_writes": 2}))
    with tenant_scope(house.tenant):
        assert MemoryProposal.objects.count() == 2
        assert session.status == SessionStatus.COMPLETED


def test_member_who_opted_out_meanwhile_is_not_begun_for(house: House) -> None:
    session = house.run_now(house.task())
    house.do(admission.admit_waiting)
    house.do(services.opt_out, house.owner)
    house.work(Queue.EXECUTOR)
    assert ending_of(house.session(session.pk)) == (SessionStatus.CANCELLED, TerminalReason.CANCELLED)


def test_phases_cannot_be_skipped_whatever_the_code_above_does(house: House) -> None:
    from django.db import IntegrityError

    from apps.guard.enums import Phase

    session, _ = begin_session(house)
    with pytest.raises(IntegrityError):
        house.do(guard.enter_phase, session.run_id, Phase.DELIVERY)
