"""One unreadable row stops neither its company, nor another one, nor other work of the same transaction."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.db.models.functions import Now

from apps.autonomy.enums import SessionStatus, TriggerKind
from apps.autonomy.models import AutonomousSession, AutonomySettings, Checkpoint, Occurrence, Trigger
from apps.autonomy.services import admission, session_control, session_run
from apps.bus import services as bus
from apps.bus import worker
from apps.bus.deliveries import Delivery
from apps.bus.enums import Queue
from apps.bus.models import QueueMessage
from apps.bus.workers import Worker
from apps.guard.models import GuardedRun
from kernel.clock import now
from kernel.tenancy import tenant_scope
from tests.factories.autonomy import RETURNS, House, make_house
from tests.factories.bus import lease_any, let_waits_pass

POISON: list[Any] = [{"cost_usd": "much"}, {"wall_seconds": "x"}, {"tokens": {}}, [], "limits", {"unknown": 1}]


def begin_session(house: House) -> tuple[Any, Delivery]:
    session = house.run_now(house.task())
    house.do(admission.admit_waiting)
    lease = house.do(lease_any, Queue.EXECUTOR, consumer="lost")
    delivery = Delivery(house.tenant.pk, lease, "executor:autonomous_session")
    house.do(session_run.begin_session, delivery)
    return house.session(session.pk), delivery


def lose_worker(house: House, session: Any) -> None:
    with tenant_scope(house.tenant):
        QueueMessage.objects.filter(payload__session=str(session.pk)).update(
            state="dropped", finished_at=now(), leased_until=None
        )
        with connection.cursor() as cursor:
            cursor.execute(
                "UPDATE autonomy_autonomoussession SET admitted_at = now() - interval '1 hour' WHERE id = %s",
                [session.pk],
            )


@pytest.mark.parametrize("limits", POISON, ids=str)
def test_settings_that_cannot_be_read_stop_no_trigger(house: House, limits: Any) -> None:
    house.trigger(house.task(), TriggerKind.INTERVAL, due=True, seconds=3600)
    with tenant_scope(house.tenant):
        AutonomySettings.objects.update(limits=limits)
    house.finish()
    (session,) = house.sessions()
    assert session.status == SessionStatus.COMPLETED
    with tenant_scope(house.tenant):
        assert Trigger.objects.get().enabled is True


@pytest.mark.parametrize("limits", POISON, ids=str)
def test_session_whose_limits_cannot_be_read_ends_and_lets_others_run(house: House, limits: Any) -> None:
    session, _ = begin_session(house)
    house.change(session, limits=limits)
    lose_worker(house, session)
    fine = house.run_now(house.task(name="Fine"))
    house.finish()
    assert house.session(fine.pk).status == SessionStatus.COMPLETED
    broken = house.session(session.pk)
    assert broken.status == SessionStatus.FAILED
    assert broken.receipt["terminal_reason"] == "worker_lost"


@pytest.mark.parametrize("limits", POISON, ids=str)
def test_run_whose_limits_cannot_be_read_stops_no_watch(house: House, limits: Any) -> None:
    session, _ = begin_session(house)
    other, _ = begin_session(house)
    with tenant_scope(house.tenant):
        GuardedRun.objects.filter(pk=session.run_id).update(limits=limits)
    lose_worker(house, other)
    let_waits_pass(house.tenant)
    house.work(Queue.UPKEEP)
    assert house.session(other.pk).status == SessionStatus.FAILED


def test_receipt_that_raises_keeps_no_session_from_ending(house: House) -> None:
    session, _ = begin_session(house)
    lose_worker(house, session)
    with tenant_scope(house.tenant):
        Checkpoint.objects.filter(session=session).update(phase="analysis", state=["no trace"])
    house.do(session_control.check_session, session.pk)
    ended = house.session(session.pk)
    assert ended.status == SessionStatus.FAILED
    assert ended.receipt["unreadable"] == "AttributeError"
    assert ended.receipt["terminal_reason"] == "worker_lost"


def test_dead_message_of_a_broken_session_stops_no_sweep(house: House) -> None:
    session, delivery = begin_session(house)
    house.change(session, limits={"cost_usd": "much"})
    for _ in range(5):
        with tenant_scope(house.tenant):
            QueueMessage.objects.filter(pk=delivery.message.pk).update(
                state="leased", attempts=4, leased_until=Now(), finished_at=None
            )
            bus.expire_leases()
    assert house.session(session.pk).status == SessionStatus.FAILED


def test_company_with_a_broken_row_keeps_no_other_company(house: House, other_tenant: Any) -> None:
    session, _ = begin_session(house)
    house.change(session, limits={"cost_usd": "much"})
    lose_worker(house, session)
    theirs = make_house(other_tenant)
    theirs.trigger(theirs.task(), TriggerKind.INTERVAL, due=True, seconds=3600)
    let_waits_pass(house.tenant)
    for _ in range(5):  # other companies' jobs are due too, and one look takes some of them
        worker.drain(Worker.UPKEEP, consumer="test")
    assert len(theirs.sessions()) == 1


def test_fault_at_a_watch_stops_no_upload(house: House, tmp_path: Path) -> None:
    collection = house.know(tmp_path, returns=RETURNS)
    trigger = house.trigger(house.task(playbook="contradictions"), TriggerKind.WATCH, collection=str(collection))
    house.change(trigger.task, limits={"cost_usd": "much"}, route={"kind": "nowhere"})
    assert house.know(tmp_path, other="# Other\n\nCoats within 14 days.")
    house.tick()
    with tenant_scope(house.tenant):
        assert not Occurrence.objects.exists() or Trigger.objects.get(pk=trigger.pk).enabled is False


def test_task_whose_route_cannot_be_read_ends_its_own_session_only(house: House) -> None:
    broken, fine = house.run_now(house.task()), house.run_now(house.task(name="Fine"))
    house.change(broken.task, route={"kind": "nowhere"})
    for _ in range(6):
        house.finish()
        with tenant_scope(house.tenant):
            AutonomousSession.objects.filter(ended_at=None).update(not_before=Now())
            QueueMessage.objects.filter(state="queued").update(available_at=Now())
    assert house.session(fine.pk).status == SessionStatus.COMPLETED
    assert house.session(broken.pk).status == SessionStatus.FAILED
