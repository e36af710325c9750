"""What is due starts exactly once, and what may not start does not (contract autonomy C: Celery; A8)."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.db.models.functions import Now

from apps.audit.enums import AuditEvent
from apps.audit.models import AuditEntry
from apps.autonomy import services
from apps.autonomy.enums import SessionStatus, SpawnRefusal, TriggerKind
from apps.autonomy.models import AutonomousSession, Occurrence, Task, Trigger
from apps.autonomy.schemas import NotSpawned, Occasion
from apps.autonomy.services import admission, occurrences, trigger_dispatch
from apps.bus.enums import Kind, Queue
from apps.bus.models import QueueMessage
from apps.knowledge.models import Document
from apps.knowledge.services import store_parsed
from apps.tenants.enums import Role
from apps.tenants.models import Membership
from apps.tenants.services import change_role, remove_member
from kernel.clock import now
from kernel.errors import NotFound, SilasError
from kernel.tenancy import tenant_scope
from tests.factories.autonomy import RETURNS, House, make_house
from tests.factories.bus import due_scopes, lease_any, let_waits_pass
from tests.factories.knowledge import ingest_texts
from tests.factories.tenants import make_member
from tests.rivals import race

_STORM = """
    INSERT INTO autonomy_occurrence (id, tenant_id, trigger_id, subject)
    SELECT gen_random_uuid(), %s, %s, 'subject-' || n FROM generate_series(1, 10000) n
"""


def interval(house: House, task: Task | None = None, *, due: bool = True) -> Trigger:
    return house.trigger(task or house.task(), TriggerKind.INTERVAL, due=due, seconds=60)


def test_due_trigger_begins_once_for_rivals(house: House) -> None:
    trigger = interval(house)
    lease = house.do(lease_any, Queue.UPKEEP, consumer="test")
    race(*[lambda: house.do(trigger_dispatch.dispatch_trigger, trigger.pk, lease)] * 4)
    assert len(house.sessions()) == 1


def test_next_time_is_set_before_anything_begins(house: House) -> None:
    trigger = interval(house)
    house.dispatch(trigger)
    with tenant_scope(house.tenant):
        next_at = Trigger.objects.get(pk=trigger.pk, next_at__gt=now()).next_at
        assert QueueMessage.objects.get(kind=Kind.TRIGGER_DUE, state="queued").available_at == next_at


def test_missed_times_are_one_run(house: House) -> None:
    trigger = interval(house)
    house.make_due(trigger, since=timedelta(days=3))
    house.tick()
    house.tick()
    assert len(house.sessions()) == 1


def test_run_that_still_waits_stands_for_the_next_time(house: House) -> None:
    trigger = interval(house)
    house.dispatch(trigger)
    house.make_due(trigger)
    house.dispatch(trigger)
    assert len(house.sessions()) == 1


def test_same_occasion_begins_nothing_twice(house: House) -> None:
    task, occasion = house.task(), Occasion("the same")
    for _ in range(2):
        last = house.do(services.spawn, task, kind=TriggerKind.MANUAL, occasion=occasion, requested_by="user:x")
    assert last == NotSpawned(SpawnRefusal.TWICE)
    assert len(house.sessions()) == 1


def test_trigger_that_cannot_be_read_is_switched_off_and_stops_nobody(house: House) -> None:
    bad = house.change(interval(house), spec={"seconds": "never"})
    interval(house)
    house.tick()
    with tenant_scope(house.tenant):
        bad = Trigger.objects.get(pk=bad.pk)
    assert bad.enabled is False
    assert bad.disabled_reason == "trigger_spec"
    assert len(house.sessions()) == 1


def test_task_that_cannot_be_read_stops_nobody_elses_trigger(house: House) -> None:
    task = house.task()
    bad = interval(house, task)
    interval(house)
    house.change(task, limits={"cost_usd": "much"})
    house.tick()
    with tenant_scope(house.tenant):
        bad = Trigger.objects.get(pk=bad.pk)
    assert bad.enabled is False
    assert bad.disabled_reason == "ValidationError"
    assert len(house.sessions()) == 1


def test_event_for_a_task_that_cannot_be_read_stops_nobody_else(house: House) -> None:
    tasks = [house.task() for _ in range(2)]
    bad, good = (house.trigger(task, TriggerKind.EVENT, topic="work_ended") for task in tasks)
    house.change(tasks[0], limits={"cost_usd": "much"})
    house.do(services.record_occurrence, "event:work_ended")
    house.finish()
    assert [session.trigger_id for session in house.sessions()] == [good.pk]
    with tenant_scope(house.tenant):
        assert not Trigger.objects.get(pk=bad.pk).enabled


def test_worker_whose_clock_is_late_sets_the_next_time_by_the_databases(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    trigger = house.trigger(house.task(), TriggerKind.CRON, due=True, schedule="* * * * *")

    class Late(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return datetime.now(tz) - timedelta(hours=1)

    monkeypatch.setattr("kernel.clock.datetime", Late)
    house.dispatch(trigger)
    with tenant_scope(house.tenant):
        assert Trigger.objects.filter(pk=trigger.pk, next_at__gt=Now()).exists()


def test_trigger_of_a_deleted_task_never_fires(house: House) -> None:
    task = house.task()
    trigger = interval(house, task)
    house.do(services.delete_task, task.pk, user=house.owner)
    house.make_due(house.change(trigger, deleted_at=None))
    house.dispatch(trigger)
    assert house.sessions() == []


def test_nothing_begins_while_the_company_is_switched_off(house: House) -> None:
    interval(house)
    house.do(services.put_settings, actor="user:test", enabled=False)
    house.tick()
    assert house.sessions() == []


@pytest.mark.parametrize(("role", "begun"), [(Role.APPROVER, 1), (Role.VIEWER, 0), (Role.AGENT, 0)])
def test_approval_of_a_member_ends_with_the_role_that_could_give_it(house: House, role: Role, begun: int) -> None:
    """Regaining the role does not restore the consent: the member opts in again."""
    make_member(house.tenant, "owner")
    interval(house)
    member = house.do(Membership.objects.get, user=house.owner)
    house.do(change_role, member, role)
    house.do(change_role, member, Role.OWNER)
    house.tick()
    assert len(house.sessions()) == begun


def test_nothing_begins_for_a_member_who_opted_out(house: House) -> None:
    interval(house)
    house.do(services.opt_out, house.owner)
    house.tick()
    assert house.sessions() == []


def test_nothing_begins_for_somebody_who_is_no_member_any_more(house: House) -> None:
    interval(house)
    make_member(house.tenant, "owner")
    with tenant_scope(house.tenant):
        remove_member(Membership.objects.get(user=house.owner))
    house.tick()
    assert house.sessions() == []


def test_ten_thousand_events_become_one_run_and_none_is_lost(house: House) -> None:
    trigger = house.trigger(house.task(), TriggerKind.EVENT, topic="work_ended")
    house.do(services.record_occurrence, "event:work_ended")
    with tenant_scope(house.tenant), connection.cursor() as cursor:
        cursor.execute(_STORM, [house.tenant.pk, trigger.pk])
    lease = house.do(lease_any, Queue.UPKEEP, consumer="test")
    race(*[lambda: house.do(trigger_dispatch.dispatch_trigger, trigger.pk, lease)] * 2)
    assert [session.params["occurrences"] for session in house.sessions()] == [10_001]


def test_many_events_cost_one_look(house: House) -> None:
    trigger = house.trigger(house.task(), TriggerKind.EVENT, topic="work_ended")
    for number in range(20):
        house.do(services.record_occurrence, "event:work_ended", str(number))
    house.dispatch(trigger)
    assert [session.params["occurrences"] for session in house.sessions()] == [20]
    with tenant_scope(house.tenant):
        assert not QueueMessage.objects.filter(kind=Kind.TRIGGER_DUE, state="queued").exists()


def test_event_while_a_run_waits_is_another_run_once_it_is_let_in(house: House) -> None:
    trigger = house.trigger(house.task(), TriggerKind.EVENT, topic="work_ended")
    house.do(services.record_occurrence, "event:work_ended", "1")
    house.dispatch(trigger)
    house.do(services.record_occurrence, "event:work_ended", "2")
    house.dispatch(trigger)
    assert len(house.sessions()) == 1
    house.finish()
    assert [session.params["subjects"] for session in house.sessions()] == [["1"], ["2"]]


def test_event_while_a_run_waits_is_another_run_once_it_is_called_off(house: House) -> None:
    trigger = house.trigger(house.task(), TriggerKind.EVENT, topic="work_ended")
    house.do(services.record_occurrence, "event:work_ended", "1")
    house.dispatch(trigger)
    house.do(services.record_occurrence, "event:work_ended", "2")
    house.dispatch(trigger)
    (session,) = house.sessions()
    house.do(services.halt_session, session.pk, user=house.owner)
    house.finish()
    assert [each.status for each in house.sessions()] == [SessionStatus.CANCELLED, SessionStatus.COMPLETED]


def test_event_after_the_run_has_begun_is_owed_another(house: House) -> None:
    house.trigger(house.task(), TriggerKind.EVENT, topic="work_ended")
    for _ in range(2):
        house.do(services.record_occurrence, "event:work_ended", str(uuid4()))
        house.finish()
    assert [session.status for session in house.sessions()] == [SessionStatus.COMPLETED] * 2


def test_company_that_is_switched_off_collects_no_events(house: House) -> None:
    house.trigger(house.task(), TriggerKind.EVENT, topic="work_ended")
    house.do(services.put_settings, actor="user:test", enabled=False)
    house.do(services.record_occurrence, "event:work_ended")
    with tenant_scope(house.tenant):
        assert not Occurrence.objects.exists()


def test_another_companys_event_wakes_nobody(house: House, other_tenant: Any) -> None:
    house.trigger(house.task(), TriggerKind.EVENT, topic="work_ended")
    make_house(other_tenant).do(services.record_occurrence, "event:work_ended")
    house.tick()
    assert house.sessions() == []


def test_document_that_comes_in_wakes_its_watch(house: House, tmp_path: Path) -> None:
    collection = house.know(tmp_path, returns=RETURNS)
    house.trigger(house.task(playbook="contradictions"), TriggerKind.WATCH, collection=str(collection))
    house.know(tmp_path, other="# Other\n\nCoats within 14 days.")
    house.finish()
    assert [session.trigger_kind for session in house.sessions()] == ["watch"]


def test_watch_does_not_fire_on_its_own_output(house: House, tmp_path: Path) -> None:
    from apps.knowledge import parsing

    collection = house.know(tmp_path, returns=RETURNS)
    house.trigger(house.task(playbook="contradictions"), TriggerKind.WATCH, collection=str(collection))
    (tmp_path / "own.md").write_text("# Own\n\nCoats within 14 days.", encoding="utf-8")
    parsed = parsing.read(tmp_path / "own.md")
    store_parsed(house.tenant, collection, parsed, reference="own.md", actor=f"autonomy:{uuid4()}")
    house.finish()
    assert house.sessions() == []


@pytest.mark.parametrize("fault", ["SELECT 1 / 0", "SELECT id FROM no_such_table"])
def test_document_is_stored_though_its_triggers_cannot_be_written(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, fault: str
) -> None:
    monkeypatch.setattr(occurrences, "_WRITE", fault)
    ingest_texts(house.tenant, tmp_path, cello="Cellos are insured.")
    with tenant_scope(house.tenant):
        assert Document.objects.count() == 1
        assert AuditEntry.objects.filter(event=AuditEvent.DOCUMENT_STORED).count() == 1
    assert "autonomy_occurrences_lost" in caplog.text


def test_unchanged_document_wakes_nobody(house: House, tmp_path: Path) -> None:
    collection = house.know(tmp_path, returns=RETURNS)
    house.trigger(house.task(playbook="contradictions"), TriggerKind.WATCH, collection=str(collection))
    house.know(tmp_path, returns=RETURNS)
    house.finish()
    assert house.sessions() == []


@pytest.mark.parametrize("kind", [TriggerKind.WATCH, TriggerKind.CHAIN, TriggerKind.GOAL_CHECK])
def test_trigger_cannot_wait_for_what_is_another_companys(
    house: House, other_tenant: Any, tmp_path: Path, kind: TriggerKind
) -> None:
    theirs = make_house(other_tenant)
    collection = ingest_texts(theirs.tenant, tmp_path, returns=RETURNS).collection_id
    spec = {"collection": str(collection), "after": str(theirs.task().pk), "goal": str(uuid4())}
    wanted = {TriggerKind.WATCH: "collection", TriggerKind.CHAIN: "after", TriggerKind.GOAL_CHECK: "goal"}[kind]
    with pytest.raises(NotFound):
        house.trigger(house.task(), kind, **{wanted: spec[wanted]})


def test_foreign_task_is_not_there(house: House, other_tenant: Any) -> None:
    theirs = make_house(other_tenant).task()
    for step in (services.run_now, services.delete_task, services.release_task):
        with pytest.raises(NotFound):
            house.do(step, theirs.pk, user=house.owner)


def test_viewer_sets_nothing_up(house: House) -> None:
    viewer = make_member(house.tenant, "viewer")
    with pytest.raises(SilasError) as refused:
        house.do(services.run_now, house.task().pk, user=viewer)
    assert refused.value.status == 403


def test_task_cannot_be_set_up_without_opting_in(house: House) -> None:
    house.do(services.opt_out, house.owner)
    with pytest.raises(SilasError) as refused:
        house.task()
    assert refused.value.code == "not_opted_in"


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"name": " "}, "task_name"),
        ({"prompt": ""}, "task_says_nothing"),
        ({"priority": 10}, "task_bounds"),
        ({"max_attempts": 0}, "task_bounds"),
        ({"limits": {"cost_usd": "-1"}}, "task_limits"),
        ({"limits": {"cost_usd": "1e12"}}, "task_limits"),
        ({"route": {"kind": "shout"}}, "task_route"),
        ({"model_name": "no such model"}, "task_model"),
        ({"skills": ["no-such-skill"]}, "task_skills"),
        ({"playbook": "whatever"}, "task_says_nothing"),
    ],
)
def test_what_is_wrong_with_a_task_is_said_when_it_is_written(house: House, fields: dict[str, Any], code: str) -> None:
    with pytest.raises(SilasError) as refused:
        house.task(**fields)
    assert refused.value.code == code


def test_contract_admission_goes_by_priority_then_age(house: House) -> None:
    house.do(services.put_settings, actor="user:test", max_concurrent=2)
    sessions = [house.run_now(house.task(priority=priority)) for priority in (1, 5, 9, 5)]
    house.do(admission.admit_waiting)
    let_in = {session.pk for session in house.sessions(admitted_at__isnull=False)}
    assert let_in == {sessions[2].pk, sessions[1].pk}


def test_contract_admission_counts_in_the_database(house: House) -> None:
    house.do(services.put_settings, actor="user:test", max_concurrent=2)
    for _ in range(4):
        house.run_now(house.task())
    race(*[lambda: house.do(admission.admit_waiting)] * 4)
    assert len(house.sessions(admitted_at__isnull=False)) == 2


def test_contract_lane_runs_one_at_a_time_and_holds_no_other_place(house: House) -> None:
    task = house.task(lane="books")
    for _ in range(3):
        house.run_now(task)
    other = house.run_now(house.task())
    house.do(admission.admit_waiting)
    let_in = house.sessions(admitted_at__isnull=False)
    assert len(let_in) == 2
    assert other.pk in {session.pk for session in let_in}


def test_paused_company_lets_in_only_what_is_critical(house: House) -> None:
    from apps.guard.models import SystemControl

    with tenant_scope(house.tenant):
        SystemControl.objects.create(pause="pause_non_critical")
    house.run_now(house.task())
    critical = house.run_now(house.task(critical=True))
    house.do(admission.admit_waiting)
    assert [session.pk for session in house.sessions(admitted_at__isnull=False)] == [critical.pk]


def test_settings_hold_from_now_on(house: House) -> None:
    house.do(services.put_settings, actor="user:test", max_concurrent=0)
    session = house.run_now(house.task())
    house.work(Queue.UPKEEP)
    assert house.session(session.pk).admitted_at is None
    house.do(services.put_settings, actor="user:test", max_concurrent=1)
    house.work(Queue.UPKEEP)
    assert house.session(session.pk).admitted_at is not None


def test_session_that_is_paused_is_looked_at_again_within_a_minute(house: House) -> None:
    from apps.guard.models import SystemControl

    with tenant_scope(house.tenant):
        control = SystemControl.objects.create(pause="pause_all")
    session = house.run_now(house.task())
    house.work(Queue.UPKEEP)
    with tenant_scope(house.tenant):
        later = QueueMessage.objects.get(kind=Kind.SESSION_ADMISSION, state="queued")
        assert now() < later.available_at <= now() + timedelta(minutes=1)
        control.delete()
    let_waits_pass(house.tenant)
    house.work(Queue.UPKEEP)
    assert house.session(session.pk).admitted_at is not None


def test_company_in_which_nothing_is_to_be_done_is_looked_at_by_nobody(house: House) -> None:
    house.through(house.task())
    house.do(services.put_settings, actor="user:test", enabled=False)
    house.tick()
    with tenant_scope(house.tenant):
        left = QueueMessage.objects.filter(state="queued").exclude(kind=Kind.SUGGESTION_LOOK)
        assert {message.kind for message in left} <= {Kind.SESSION_WATCH}
    let_waits_pass(house.tenant)
    house.work(Queue.UPKEEP, Queue.TRUSTED)
    assert due_scopes(house.tenant) == []
    with tenant_scope(house.tenant):
        assert not QueueMessage.objects.filter(state="queued").exists()


def test_occasion_is_unique_whatever_the_code_above_does(house: House) -> None:
    from django.db import IntegrityError

    session = house.run_now(house.task())
    with pytest.raises(IntegrityError), tenant_scope(house.tenant):
        AutonomousSession.objects.create(
            task=session.task, trigger_kind="manual", occasion=session.occasion, lane="other"
        )


def test_places_of_another_company_are_not_counted(house: House, other_tenant: Any, settings: Any) -> None:
    settings.AUTONOMY_SESSIONS = 1
    theirs = make_house(other_tenant)
    for each in (theirs, house):
        each.run_now(each.task())
        each.run_now(each.task())
        assert each.do(admission.admit_waiting) == 1
