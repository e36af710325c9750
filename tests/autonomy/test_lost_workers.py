"""A worker killed with -9 in every phase: nothing is replayed, nothing is written twice, and the occasion is begun
again as another session; after too many the task is set aside (contract autonomy C: Run, Celery)."""

from __future__ import annotations

import os
import sys
from collections import Counter
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from apps.autonomy import queries, services
from apps.autonomy.enums import SessionStatus, TriggerKind
from apps.autonomy.models import Checkpoint, Finding, Notification, Task, Trigger
from apps.autonomy.services import admission, session_control, session_run
from apps.autonomy.services.session_end import LOST, end
from apps.bus import services as bus
from apps.bus.deliveries import Delivery
from apps.bus.enums import Queue
from apps.bus.models import QueueMessage
from apps.guard.enums import Phase, TerminalReason
from kernel.clock import now
from kernel.errors import SilasError
from kernel.fault_points import VARIABLE
from kernel.tenancy import tenant_scope
from tests import nursery
from tests.autonomy.test_models import ASK, CLOSE, DONE, MODEL
from tests.factories.autonomy import RETURNS, House
from tests.factories.bus import lease_any, let_leases_run_out, let_waits_pass
from tests.work.drained import drain_as_a_worker

CAP = {"cost_usd": "0.5"}
POINTS = (
    "autonomy.begun",
    "autonomy.intake",
    "autonomy.analysis",
    "autonomy.drafting",
    "autonomy.ethics_review",
    "autonomy.delivery",
    "guard.before_dispatch",
    "guard.after_settle",
    "autonomy.before_end",
)
# One start for all: each child is killed at its own point, in a session of its own.
WORKER = """
import django, os, pathlib, sys, uuid; django.setup()
from apps.bus.enums import Queue
from tests.factories.work import Hands
tenant = uuid.UUID(sys.argv[1])
for point in sys.argv[2:]:
    pathlib.Path(os.environ["SILAS_FAULT_POINTS"], point).write_text("kill")
    child = os.fork()
    if child == 0:
        Hands(tenant).work(Queue.UPKEEP, Queue.EXECUTOR, consumer=point)
        os._exit(3)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == 9, point
"""


def kill_workers_at(house: House, folder: Path, *points: str) -> None:
    """Run workers, each until it is killed at its fault point."""
    faults = folder / "faults"
    faults.mkdir()
    nursery.run(
        [sys.executable, "-c", WORKER, str(house.tenant.pk), *points],
        env={**os.environ, VARIABLE: str(faults)},
        check=True,
        timeout=180,
    )


def deliver_again(house: House) -> None:
    let_leases_run_out(house.tenant)
    house.do(bus.expire_leases)
    let_waits_pass(house.tenant)
    for session in house.sessions(status=SessionStatus.QUEUED):
        house.change(session, not_before=now())
    house.finish()
    for session in house.sessions(status=SessionStatus.QUEUED):
        house.change(session, not_before=now())
    house.finish()


def lose_worker(house: House, task: Task) -> Any:
    """A session whose worker was lost, after the check noticed it."""
    session = house.run_now(task)
    house.do(admission.admit_waiting)
    lease = house.do(lease_any, Queue.EXECUTOR, consumer="test")
    house.do(session_run.begin_session, Delivery(house.tenant.pk, lease, "executor:autonomous_session"))
    house.do(lambda: end(house.session(session.pk), LOST))
    return house.session(session.pk)


@pytest.mark.slow
def test_worker_killed_anywhere_is_followed_by_one_whole_attempt(house: House, tmp_path: Path, settings: Any) -> None:
    settings.AUTONOMY_SESSIONS = 20
    house.do(services.put_settings, actor="user:test", max_concurrent=20)
    house.know(tmp_path, returns=RETURNS)
    route = {"kind": "notify"}
    for point in POINTS:
        house.run_now(house.task(name=point, prompt="Within how many days can a coat be returned?", route=route))
    house.do(admission.admit_waiting)
    kill_workers_at(house, tmp_path, *POINTS)
    deliver_again(house)
    ended = Counter((each.attempt, each.status, each.terminal_reason) for each in house.sessions())
    assert ended == {(1, "failed", "worker_lost"): len(POINTS), (2, "completed", "completed"): len(POINTS)}
    with tenant_scope(house.tenant):
        assert Notification.objects.count() == len(POINTS)
        assert Counter(Finding.objects.exclude(phase="ethics_review").values_list("task__name")) == Counter(
            (point,) for point in POINTS
        )


@pytest.mark.slow
def test_workers_killed_while_one_asks_another_leave_one_answer_inside_its_budget(
    modelled: House, provider: Any, tmp_path: Path
) -> None:
    """The parent's worker dies after delegating, the child's during its work."""
    books = modelled.task(name="books", prompt="Within how many days can a coat be returned?")
    route = {"kind": "notify"}
    asking = modelled.task(name="asking", model_name=MODEL, delegates_to=[books.pk], limits=CAP, route=route)
    modelled.run_now(asking)
    with provider(ASK, DONE, CLOSE, DONE, CLOSE):
        kill_workers_at(modelled, tmp_path, "autonomy.before_end", "autonomy.drafting")
        killed = [(each.task.name, each.status) for each in modelled.sessions()]
        deliver_again(modelled)
    ended = Counter((each.task.name, each.attempt, each.terminal_reason) for each in modelled.sessions())
    (last,) = modelled.sessions(params__has_key="collects")
    with tenant_scope(modelled.tenant):
        spent = sum(queries.usage_of(each).cost_usd for each in modelled.sessions() if each.pk != last.pk)
        told = [row.session_id for row in Notification.objects.all()]
    assert killed == [("asking", "running"), ("books", "running")]
    assert ended == {
        ("asking", 1, "worker_lost"): 1,
        ("books", 1, "worker_lost"): 1,
        ("books", 2, "completed"): 1,
        ("asking", 1, "completed"): 1,
    }
    assert told == [last.pk]
    assert "30 days" in last.context
    assert last.frozen_limits.cost_usd is not None
    assert spent > 0
    assert Decimal("0.49") < spent + last.frozen_limits.cost_usd <= Decimal("0.5")


def test_contract_redelivery_replays_nothing_and_begins_another_session(house: House) -> None:
    session = house.run_now(house.task())
    house.do(admission.admit_waiting)
    lease = house.do(lease_any, Queue.EXECUTOR, consumer="lost")
    house.do(session_run.begin_session, Delivery(house.tenant.pk, lease, "executor:autonomous_session"))
    deliver_again(house)
    first, second = house.sessions()
    assert first.pk == session.pk
    assert first.terminal_reason == TerminalReason.WORKER_LOST
    assert second.attempt == 2
    assert second.root_id == session.pk
    assert second.status == SessionStatus.COMPLETED


def test_session_that_was_halted_is_not_begun_again_when_its_worker_dies(house: House) -> None:
    session = house.run_now(house.task())
    house.do(admission.admit_waiting)
    lease = house.do(lease_any, Queue.EXECUTOR, consumer="lost")
    house.do(session_run.begin_session, Delivery(house.tenant.pk, lease, "executor:autonomous_session"))
    assert house.do(services.halt_session, session.pk, user=house.owner)
    deliver_again(house)
    (only,) = house.sessions()
    assert only.status == SessionStatus.HALTED
    assert only.terminal_reason == TerminalReason.EXTERNAL_HALT


def test_session_whose_phase_began_in_the_future_ends_all_the_same(house: House) -> None:
    session = house.run_now(house.task())
    house.do(admission.admit_waiting)
    lease = house.do(lease_any, Queue.EXECUTOR, consumer="test")
    house.do(session_run.begin_session, Delivery(house.tenant.pk, lease, "executor:autonomous_session"))
    with tenant_scope(house.tenant):
        Checkpoint.objects.filter(session=session).update(entered_at=now() + timedelta(days=1))
    house.do(session_run.enter_phase, session.pk, Phase.ANALYSIS, outcome="done", state=None)
    with tenant_scope(house.tenant):
        Checkpoint.objects.filter(session=session, left_at=None).update(entered_at=now() + timedelta(days=1))
    house.do(lambda: end(house.session(session.pk), LOST))
    assert house.session(session.pk).terminal_reason == TerminalReason.WORKER_LOST


def test_contract_lost_session_has_a_receipt(house: House) -> None:
    session = lose_worker(house, house.task())
    assert session.receipt is not None
    assert session.receipt["terminal_reason"] == "worker_lost"


def test_what_an_attempt_found_out_is_not_paid_for_again(house: House) -> None:
    session = lose_worker(house, house.task())
    with tenant_scope(house.tenant):
        Checkpoint.objects.filter(session=session).update(state={"passages": []}, outcome="done")
    deliver_again(house)
    calls = [call["tool"] for call in house.receipt(house.sessions()[-1])["tool_calls"]]
    assert "knowledge_search" not in calls
    assert "emit_finding" in calls


def test_attempts_share_one_budget(house: House) -> None:
    from apps.guard.models import GuardedRun

    session = house.run_now(house.task(limits={"cost_usd": "0.50"}))
    house.do(admission.admit_waiting)
    lease = house.do(lease_any, Queue.EXECUTOR, consumer="test")
    house.do(session_run.begin_session, Delivery(house.tenant.pk, lease, "executor:autonomous_session"))
    run = house.session(session.pk).run
    assert run is not None
    house.change(run, cost_total=Decimal("0.20"), cost_reserved=Decimal("0.10"))
    house.do(lambda: end(house.session(session.pk), LOST))
    assert isinstance(run, GuardedRun)
    assert house.sessions()[-1].frozen_limits.cost_usd == Decimal("0.20")


def test_contract_task_that_failed_too_often_is_set_aside(house: House) -> None:
    task = house.task(max_attempts=1)
    lose_worker(house, task)
    task = house.do(lambda: Task.objects.get(pk=task.pk))
    assert task.quarantined_at is not None
    assert task.quarantine_reason == "worker_lost"


def test_triggers_of_a_task_that_was_set_aside_stop(house: House) -> None:
    task = house.task(max_attempts=1)
    house.trigger(task, TriggerKind.INTERVAL, due=True, seconds=60)
    lose_worker(house, task)
    house.tick()
    assert len(house.sessions()) == 1


def test_released_task_is_due_again(house: House) -> None:
    task = house.task(max_attempts=1)
    trigger = house.trigger(task, TriggerKind.INTERVAL, due=True, seconds=60)
    lose_worker(house, task)
    house.tick()
    house.do(services.release_task, task.pk, user=house.owner)
    with tenant_scope(house.tenant):
        next_at = Trigger.objects.get(pk=trigger.pk).next_at
        assert next_at is not None
        assert QueueMessage.objects.get(scope_id=f"trigger_due:{trigger.pk}", state="queued").available_at == next_at


def test_task_that_was_not_set_aside_cannot_be_released(house: House) -> None:
    with pytest.raises(SilasError) as refused:
        house.do(services.release_task, house.task().pk, user=house.owner)
    assert refused.value.code == "not_quarantined"


def test_session_whose_message_is_gone_is_ended_by_the_watch(house: House) -> None:
    session = house.run_now(house.task(max_attempts=1))
    house.do(admission.admit_waiting)
    with tenant_scope(house.tenant):
        QueueMessage.objects.filter(payload__session=str(session.pk)).update(state="dropped", finished_at=now())
    from datetime import timedelta

    house.change(session, admitted_at=now() - timedelta(minutes=1))
    house.do(session_control.check_session, session.pk)
    assert house.session(session.pk).terminal_reason == TerminalReason.WORKER_LOST


def test_session_that_does_nothing_is_asked_to_stop(house: House) -> None:
    from datetime import timedelta

    session = house.run_now(house.task())
    house.do(admission.admit_waiting)
    lease = house.do(lease_any, Queue.EXECUTOR, consumer="test")
    house.do(session_run.begin_session, Delivery(house.tenant.pk, lease, "executor:autonomous_session"))
    session = house.session(session.pk)
    house.change(session, heartbeat_at=now() - timedelta(hours=1))
    house.change(session.run, started_at=now() - timedelta(hours=1), limits={})
    house.do(session_control.check_session, session.pk)
    assert house.session(session.pk).halt_reason == TerminalReason.IDLE_TIMEOUT


def test_session_under_way_is_left_alone_by_the_watch(house: House) -> None:
    session = house.run_now(house.task())
    house.do(admission.admit_waiting)
    lease = house.do(lease_any, Queue.EXECUTOR, consumer="test")
    house.do(session_run.begin_session, Delivery(house.tenant.pk, lease, "executor:autonomous_session"))
    assert house.do(session_control.check_session, session.pk) > now()
    assert house.session(session.pk).halt_reason == ""


def test_due_task_is_let_in_and_carried_out_with_a_workers_rights(house: House, tmp_path: Path) -> None:
    house.know(tmp_path, returns=RETURNS)
    house.ask("Do you sell gift wrapping for parrots?")
    task = house.task(playbook="unanswered", route={"kind": "notify"})
    house.trigger(task, TriggerKind.INTERVAL, due=True, seconds=3600)
    drain_as_a_worker(house.tenant, Queue.UPKEEP, Queue.EXECUTOR)
    (session,) = house.sessions()
    assert session.terminal_reason == TerminalReason.COMPLETED


def test_event_and_a_lost_session_are_seen_to_with_a_workers_rights(house: House) -> None:
    lost, broken = house.run_now(house.task(max_attempts=1)), house.task()
    house.trigger(broken, TriggerKind.EVENT, topic="work_ended")
    house.change(broken, limits={"cost_usd": "much"})
    house.do(services.record_occurrence, "event:work_ended")
    house.do(admission.admit_waiting)
    with tenant_scope(house.tenant):
        QueueMessage.objects.filter(payload__session=str(lost.pk)).update(state="dropped", finished_at=now())
    let_waits_pass(house.tenant)
    drain_as_a_worker(house.tenant, Queue.UPKEEP)
    assert house.session(lost.pk).terminal_reason == TerminalReason.WORKER_LOST
    with tenant_scope(house.tenant):
        assert Trigger.objects.get().disabled_reason == "ValidationError"


@pytest.mark.slow
def test_worker_killed_over_a_due_trigger_begins_it_once(house: House, tmp_path: Path) -> None:
    trigger = house.trigger(house.task(), TriggerKind.INTERVAL, due=True, seconds=3600)
    kill_workers_at(house, tmp_path, "bus.leased", "autonomy.dispatched")
    deliver_again(house)
    (session,) = house.sessions()
    assert session.status == SessionStatus.COMPLETED
    with tenant_scope(house.tenant):
        assert Trigger.objects.get(pk=trigger.pk).next_at > now()
