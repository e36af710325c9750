"""A gate that asks about work pauses the item: no process waits, and an approval continues it where it was."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import time_machine

from apps.approvals.enums import CardStatus, PauseState, PauseTrigger
from apps.approvals.models import Card, GatePause, TokenUse
from apps.bus.enums import Queue
from apps.bus.models import QueueMessage
from apps.bus.services import expire_leases
from apps.console.pages.review.origins import origins_of
from apps.gates.schemas import GateSpec
from apps.gates.services import save_gate
from apps.guard.enums import RunStatus
from apps.guard.models import GuardedRun, ToolCall
from apps.work import services
from apps.work.enums import AttemptStatus, WorkItemStatus, WorkReason
from apps.work.models import Attempt, WorkItem
from apps.work.provenance import Tracer
from apps.work.services import failure_handling, gate_pauses
from apps.work.step_gates import UNSEEN
from apps.work.visitor_messages import READ_INSTRUCTIONS
from kernel.errors import SilasError
from kernel.fault_points import VARIABLE
from kernel.provenance import Origin, Source, Sources, Traced
from kernel.tenancy import tenant_scope
from llm.calls import PlannedCall
from tests import nursery
from tests.factories.approvals import expire_cards
from tests.factories.bus import let_leases_run_out
from tests.factories.pauses import answer, asking_gate, gate_card, gate_cards, pause_of
from tests.factories.skills import acting_tool, install, make_folder, read_tool, save_record
from tests.factories.work import ARGS, NOTE, NOTED, PROJECT, Desk, adopt, end_waits, note, plan
from tests.rivals import race

CALL = {"order": "H-3", "note": 60}
QUOTE = 'import json\nprint(json.dumps({"say": "quoted", "price": 40}))\n'
READ, ACT = PlannedCall("look", {}), note()


def put_gate(desk: Desk, *gates: GateSpec) -> None:
    with tenant_scope(desk.tenant):
        for gate in gates:
            save_gate(gate, deployment_id=desk.deployment.pk)


def step_gate(step: int = 2, **fields: Any) -> GateSpec:
    return asking_gate("after_step", after_step=step, **fields)


def value_gate(step: int, **fields: Any) -> GateSpec:
    ranges = {"auto_approve": {"min": 0, "max": 25}, "require_approval": {"min": 25, "max": 100}}
    return step_gate(step, type="numeric_range", **{**ranges, "block": {"outside": (0, 100)}, **fields})


def begun(desk: Desk, user: Any, *calls: PlannedCall) -> WorkItem:
    """Return an approved item that ran until a gate held it back, with its card open."""
    proposal = desk.propose(*(calls or (note(50), note(60, "H-3"))))
    assert proposal.work_item_id is not None
    desk.decide(desk.item(proposal.work_item_id), user)
    desk.work()
    desk.work(Queue.TRUSTED)
    return desk.item(proposal.work_item_id)


@pytest.fixture
def gated(desk: Desk) -> Desk:
    """A desk whose gate asks before every second step."""
    put_gate(desk, step_gate())
    return desk


@pytest.fixture
def quoting(tenant: Any, tmp_path: Path) -> Desk:
    """A desk whose reading tool returns a price."""
    files = {"scripts/act.py": NOTE, "scripts/look.py": QUOTE, "checks/done.py": NOTED}
    install(tenant, make_folder(tmp_path, tools=[read_tool(), acting_tool(args=ARGS)], files=files))
    save_record(tenant, "orders", "H-1", subject="C-1", total=120)
    return adopt(tenant)


def attempts(desk: Desk, item: WorkItem) -> list[tuple[int, str]]:
    with tenant_scope(desk.tenant):
        return list(Attempt.objects.filter(work_item=item).order_by("number").values_list("number", "status"))


def calls(desk: Desk, tool: str = "act") -> list[str]:
    with tenant_scope(desk.tenant):
        return list(ToolCall.objects.filter(tool=tool).order_by("created_at", "seq").values_list("state", flat=True))


# --- the pause


def test_item_pauses_before_the_step_that_a_gate_asks_about(gated: Desk, approver: Any) -> None:
    item = begun(gated, approver)
    pause = pause_of(gated.tenant)
    assert item.status == WorkItemStatus.PAUSED
    assert item.reason == WorkReason.REVIEW
    assert gated.order("H-1").revision == 2
    assert gated.order("H-3").revision == 1
    assert pause.trigger == PauseTrigger.STEP
    assert pause.expires_at - pause.created_at == timedelta(seconds=120)
    assert attempts(gated, item) == [(1, AttemptStatus.PAUSED)]


def test_nothing_is_held_while_an_item_waits(gated: Desk, approver: Any) -> None:
    item = begun(gated, approver)
    with tenant_scope(gated.tenant):
        assert not QueueMessage.objects.filter(state__in=["leased", "queued"], task_id=item.pk).exists()
        assert GuardedRun.objects.get(pk=item.run_id).status == RunStatus.RUNNING


def test_card_shows_the_call_that_is_held_back(gated: Desk, approver: Any) -> None:
    item = begun(gated, approver)
    card = gate_card(gated.tenant)
    assert card.is_open
    assert card.session_id == item.session_id
    assert card.payload["holds"] == {"step": 2, "tool": "act", "args": CALL}
    assert card.expires_at == pause_of(gated.tenant).expires_at


@pytest.mark.parametrize("is_marked", [True, False], ids=["marked", "unmarked"])
def test_card_says_where_the_values_come_from_and_what_was_read_before(
    gated: Desk, approver: Any, is_marked: bool
) -> None:
    page = Source(Traced(Origin.TOOL, "call:1", "the page"), "note 60 on H-3")
    asked = Traced(Origin.VISITOR, "seq:1")
    proposal = gated.propose(note(50), note(60, "H-3"), tracing=Tracer(Sources((page,)), asked))
    item = gated.item(proposal.work_item_id)
    gated.decide(item, approver)
    gated.work()
    with tenant_scope(gated.tenant):
        GuardedRun.objects.filter(owner_ref=item.pk).update(content_marks=int(is_marked))
    gated.work(Queue.TRUSTED)
    card = gate_card(gated.tenant)
    with tenant_scope(gated.tenant):
        origins = origins_of(card)
    assert origins is not None
    assert {line.value: line.origin for line in origins.lines} == {
        "H-3": "From an external tool: the page",
        "60": "From an external tool: the page",
    }
    warnings = [fact["text"] for fact in card.facts if fact["label"] == "Warning"]
    assert warnings == ([READ_INSTRUCTIONS] if is_marked else [])


def test_worker_opens_no_card_itself(gated: Desk, approver: Any) -> None:
    proposal = gated.propose(note(50), note(60, "H-3"))
    gated.decide(gated.item(proposal.work_item_id), approver)
    gated.work()
    assert gate_cards(gated.tenant) == 0
    gated.work(Queue.TRUSTED)
    gated.work(Queue.TRUSTED)
    assert gate_cards(gated.tenant) == 1


def test_gate_may_say_how_long_it_waits(desk: Desk, approver: Any) -> None:
    put_gate(desk, step_gate(config={"wait_seconds": 45}))
    begun(desk, approver)
    pause = pause_of(desk.tenant)
    assert pause.expires_at - pause.created_at == timedelta(seconds=45)


# --- going on


def test_approved_item_goes_on_where_it_was(gated: Desk, approver: Any, owner: Any) -> None:
    item = begun(gated, approver)
    answer(gated.tenant, owner, "approve")
    gated.work()
    ended = gated.item(item.pk)
    assert ended.status == WorkItemStatus.DONE
    assert gated.order("H-1").revision == 2
    assert gated.order("H-3").revision == 2
    assert calls(gated) == ["executed", "executed"]
    assert attempts(gated, item) == [(1, AttemptStatus.PASSED)]
    assert ended.used.attempts == 1
    assert gate_cards(gated.tenant) == 1
    assert pause_of(gated.tenant).state == PauseState.RESUMED


def test_item_of_one_attempt_can_pause_and_go_on(desk: Desk, approver: Any, owner: Any) -> None:
    put_gate(desk, step_gate())
    text = plan(note(50), note(60, "H-3"), front="budget: {max_attempts: 1}\n")
    proposal = desk.propose(plan_markdown=text)
    desk.decide(desk.item(proposal.work_item_id), approver)
    desk.work()
    desk.work(Queue.TRUSTED)
    answer(desk.tenant, owner, "approve")
    desk.work()
    assert desk.item(proposal.work_item_id).status == WorkItemStatus.DONE


def test_approval_is_good_for_that_item_only(gated: Desk, approver: Any, owner: Any) -> None:
    begun(gated, approver)
    answer(gated.tenant, owner, "approve")
    gated.work()
    second = begun(gated, approver, note(51), note(60, "H-3"))
    assert second.status == WorkItemStatus.PAUSED
    assert gate_cards(gated.tenant) == 2


def test_item_that_asks_twice_pauses_twice(desk: Desk, approver: Any, owner: Any) -> None:
    put_gate(desk, step_gate(1, name="first"), step_gate(2, name="second"))
    item = begun(desk, approver)
    answer(desk.tenant, owner, "approve")
    desk.work()
    desk.work(Queue.TRUSTED)
    assert desk.item(item.pk).status == WorkItemStatus.PAUSED
    assert [gate["name"] for gate in gate_card(desk.tenant).payload["gates"]] == ["second"]
    answer(desk.tenant, owner, "approve")
    desk.work()
    assert desk.item(item.pk).status == WorkItemStatus.DONE
    assert calls(desk) == ["executed", "executed"]


def test_call_under_a_standing_approval_waits_for_a_person(desk: Desk, approver: Any, owner: Any) -> None:
    desk.allow_standing(approver)
    proposal = desk.propose(note(5))
    put_gate(desk, asking_gate("on_tool_call", config={"tools": ["act"]}))
    desk.work()
    desk.work(Queue.TRUSTED)
    assert desk.item(proposal.work_item_id).status == WorkItemStatus.PAUSED
    assert gate_card(desk.tenant).payload["holds"] == {"tool": "act", "args": {"order": "H-1", "note": 5}}
    assert calls(desk) == ["denied"]
    answer(desk.tenant, owner, "approve")
    desk.work()
    assert desk.item(proposal.work_item_id).status == WorkItemStatus.DONE
    assert desk.order().revision == 2


def test_gate_that_came_into_force_meanwhile_is_asked_about_too(gated: Desk, approver: Any, owner: Any) -> None:
    item = begun(gated, approver)
    put_gate(gated, step_gate(name="newer"))
    answer(gated.tenant, owner, "approve")
    gated.work()
    gated.work(Queue.TRUSTED)
    assert gated.item(item.pk).status == WorkItemStatus.PAUSED
    assert [gate["name"] for gate in gate_card(gated.tenant).payload["gates"]] == ["newer"]


def test_pause_that_was_changed_in_the_database_lets_nothing_through(gated: Desk, approver: Any, owner: Any) -> None:
    begun(gated, approver)
    answer(gated.tenant, owner, "approve")
    pause = pause_of(gated.tenant)
    with tenant_scope(gated.tenant):
        pause.payload["holds"]["args"]["note"] = 61
        pause.save(update_fields=["payload"])
    gated.work()
    gated.work(Queue.TRUSTED)
    assert gated.order("H-3").revision == 1
    assert gate_cards(gated.tenant) == 2


def test_state_that_was_forged_without_an_approval_starts_nothing(gated: Desk, approver: Any) -> None:
    item = begun(gated, approver)
    with tenant_scope(gated.tenant):
        used = TokenUse.objects.count()
        GatePause.objects.update(state=PauseState.RESUMED)
        course = item.course
        course.waiting_for, course.waiting_until = "", None
        course.save()
        services.execution_queue.enqueue(item)
    gated.work()
    assert gated.order("H-3").revision == 1
    with tenant_scope(gated.tenant):
        assert TokenUse.objects.count() == used


# --- ending without an approval


def test_declined_item_ends_with_the_gate_s_safe_ending(gated: Desk, approver: Any, owner: Any) -> None:
    item = begun(gated, approver)
    answer(gated.tenant, owner, "decline")
    gated.work()
    ended = gated.item(item.pk)
    assert ended.status == WorkItemStatus.BLOCKED
    assert ended.reason == WorkReason.REVIEW_DECLINED
    assert ended.last_error == "gate look"
    assert gated.order("H-1").revision == 2
    assert gated.order("H-3").revision == 1
    assert attempts(gated, item) == [(1, AttemptStatus.FAILED)]


@pytest.mark.parametrize("sweeps", [["cards"], ["waits"], ["cards", "waits"], ["waits", "cards"]], ids="-".join)
def test_item_that_nobody_looked_at_ends_when_its_time_is_up(gated: Desk, approver: Any, sweeps: list[str]) -> None:
    item = begun(gated, approver)
    with time_machine.travel(pause_of(gated.tenant).expires_at + timedelta(seconds=1)):
        for each in sweeps:
            if each == "waits":
                end_waits(gated.tenant)
            else:
                expire_cards(gated.tenant)
        gated.work()
    assert gated.item(item.pk).status == WorkItemStatus.BLOCKED
    assert gated.item(item.pk).reason == WorkReason.REVIEW_EXPIRED
    assert pause_of(gated.tenant).state == PauseState.EXPIRED
    assert gated.order("H-3").revision == 1


def test_item_whose_card_was_never_opened_ends_when_its_time_is_up(gated: Desk, approver: Any) -> None:
    proposal = gated.propose(note(50), note(60, "H-3"))
    gated.decide(gated.item(proposal.work_item_id), approver)
    gated.work()
    with time_machine.travel(pause_of(gated.tenant).expires_at + timedelta(seconds=1)):
        end_waits(gated.tenant)
        gated.work(Queue.TRUSTED)
    assert gated.item(proposal.work_item_id).reason == WorkReason.REVIEW_EXPIRED
    assert gate_cards(gated.tenant) == 0


def test_item_does_not_end_before_its_time_is_up(gated: Desk, approver: Any) -> None:
    item = begun(gated, approver)
    with time_machine.travel(pause_of(gated.tenant).expires_at - timedelta(seconds=1), tick=False):
        end_waits(gated.tenant)
    assert gated.item(item.pk).status == WorkItemStatus.PAUSED


def test_item_that_is_called_off_takes_its_card_back(gated: Desk, approver: Any, owner: Any) -> None:
    item = begun(gated, approver)
    with tenant_scope(gated.tenant):
        services.cancellation.cancel_for_staff(item.pk, user=owner)
    assert gated.item(item.pk).reason == WorkReason.CANCELLED
    assert pause_of(gated.tenant).state == PauseState.WITHDRAWN
    assert gate_card(gated.tenant).status == CardStatus.WITHDRAWN
    with pytest.raises(SilasError):
        answer(gated.tenant, owner, "approve")
    gated.work()
    assert gated.order("H-3").revision == 1


def test_project_that_is_called_off_takes_the_cards_of_its_tasks_back(desk: Desk, approver: Any, owner: Any) -> None:
    put_gate(desk, step_gate(1))
    proposal = desk.propose(plan_markdown=PROJECT)
    assert proposal.work_item_id is not None
    desk.decide(desk.item(proposal.work_item_id), approver)
    desk.work()
    desk.work(Queue.TRUSTED)
    with tenant_scope(desk.tenant):
        assert Card.objects.filter(kind="gate", status=CardStatus.OPEN).count() == 2
        services.cancellation.cancel_for_staff(proposal.work_item_id, user=owner)
    desk.work(Queue.TRUSTED)
    with tenant_scope(desk.tenant):
        assert not Card.objects.filter(kind="gate", status=CardStatus.OPEN).exists()
        assert not GatePause.objects.exclude(state=PauseState.WITHDRAWN).exists()
        assert set(WorkItem.objects.filter(parent_id=proposal.work_item_id).values_list("status", flat=True)) == {
            WorkItemStatus.BLOCKED
        }
    assert desk.item(proposal.work_item_id).reason == WorkReason.CANCELLED
    assert desk.order().revision == 1


def test_approval_and_calling_off_at_once_leave_one_outcome(gated: Desk, approver: Any, owner: Any) -> None:
    item = begun(gated, approver)

    def call_off() -> None:
        with tenant_scope(gated.tenant):
            services.cancellation.cancel_for_staff(item.pk, user=owner)

    race(lambda: answer(gated.tenant, owner, "approve"), call_off)
    gated.work()
    assert gated.item(item.pk).status == WorkItemStatus.FAILED
    assert gated.item(item.pk).reason == WorkReason.CANCELLED
    assert gated.order("H-3").revision == 1


def test_approval_in_the_last_moment_and_the_sweep_leave_one_outcome(gated: Desk, approver: Any, owner: Any) -> None:
    item = begun(gated, approver)
    ends = pause_of(gated.tenant).expires_at
    with time_machine.travel(ends - timedelta(milliseconds=5)):
        race(
            lambda: answer(gated.tenant, owner, "approve"),
            lambda: end_waits(gated.tenant),
            lambda: end_waits(gated.tenant),
        )
    with time_machine.travel(ends + timedelta(seconds=1)):
        end_waits(gated.tenant)
    gated.work()
    approved = pause_of(gated.tenant).state == PauseState.RESUMED
    assert gated.item(item.pk).status == (WorkItemStatus.DONE if approved else WorkItemStatus.BLOCKED)
    assert gated.order("H-3").revision == (2 if approved else 1)


def test_pause_whose_time_passes_while_its_end_is_looked_at_ends_as_expired(
    gated: Desk, approver: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    item = begun(gated, approver)
    ends = pause_of(gated.tenant).expires_at
    expire_overdue = gate_pauses.expire_overdue
    with time_machine.travel(ends - timedelta(milliseconds=5), tick=False) as clock:

        def expire_and_dawdle(*args: Any) -> None:
            expire_overdue(*args)
            clock.shift(timedelta(milliseconds=10))

        monkeypatch.setattr(gate_pauses, "expire_overdue", expire_and_dawdle)
        with tenant_scope(gated.tenant):
            failure_handling.end_wait(item.pk)
        assert gated.item(item.pk).status == WorkItemStatus.PAUSED
        end_waits(gated.tenant)
    assert gated.item(item.pk).reason == WorkReason.REVIEW_EXPIRED
    assert pause_of(gated.tenant).state == PauseState.EXPIRED


def test_item_asks_people_no_more_often_than_it_may_call(gated: Desk, approver: Any, owner: Any) -> None:
    for number in range(9):
        put_gate(gated, step_gate(name=f"more-{number}"))
    item = begun(gated, approver)
    with tenant_scope(gated.tenant):
        pause = pause_of(gated.tenant)
        kept = {"subject_kind": pause.subject_kind, "subject_id": item.pk, "payload": pause.payload, "state": "expired"}
        moments = {"created_at": pause.created_at, "expires_at": pause.expires_at, "trigger": pause.trigger}
        GatePause.objects.bulk_create(GatePause(**kept, **moments) for _ in range(9))
    put_gate(gated, step_gate(name="last"))
    answer(gated.tenant, owner, "approve", _card_of(gated, pause))
    gated.work()
    assert gated.item(item.pk).status == WorkItemStatus.BLOCKED
    assert gated.item(item.pk).reason == WorkReason.GATE


def _card_of(desk: Desk, pause: GatePause) -> Card:
    with tenant_scope(desk.tenant):
        card: Card = Card.objects.get(subject_id=pause.pk)
        return card


# --- before the effect


def test_gate_over_an_argument_judges_it_before_the_call(desk: Desk, approver: Any) -> None:
    put_gate(desk, value_gate(1, extract="note"))
    item = begun(desk, approver, note(50))
    assert item.status == WorkItemStatus.PAUSED
    assert desk.order().revision == 1
    assert "value" not in gate_card(desk.tenant).payload["holds"]


def test_gate_over_an_argument_that_blocks_does_so_before_the_call(desk: Desk, approver: Any) -> None:
    put_gate(desk, value_gate(1, extract="note", block={"outside": (0, 40)}, require_approval={"min": 25, "max": 40}))
    item = begun(desk, approver, note(50))
    assert item.reason == WorkReason.GATE
    assert desk.order().revision == 1


def test_gate_over_an_effect_s_answer_asks_before_the_effect(desk: Desk, approver: Any, owner: Any) -> None:
    put_gate(desk, step_gate(1, type="string_match", extract="say", approval_values=["noted"]))
    item = begun(desk, approver, note(50))
    assert item.status == WorkItemStatus.PAUSED
    assert desk.order().revision == 1
    assert gate_card(desk.tenant).payload["gates"] == [{"name": "look", "reason": UNSEEN}]
    answer(desk.tenant, owner, "approve")
    desk.work()
    assert desk.item(item.pk).status == WorkItemStatus.DONE
    assert gate_cards(desk.tenant) == 1


def test_gate_over_what_was_read_holds_the_next_step(quoting: Desk, approver: Any, owner: Any) -> None:
    put_gate(quoting, value_gate(1, extract="price"))
    item = begun(quoting, approver, READ, ACT)
    assert item.status == WorkItemStatus.PAUSED
    assert quoting.order().revision == 1
    assert gate_card(quoting.tenant).payload["holds"]["value"] == {"price": 40}
    answer(quoting.tenant, owner, "approve")
    quoting.work()
    assert quoting.item(item.pk).status == WorkItemStatus.DONE
    assert quoting.order().revision == 2
    assert calls(quoting, "look") == ["executed"]


def test_gate_over_what_was_read_that_passes_asks_nobody(quoting: Desk, approver: Any) -> None:
    put_gate(quoting, value_gate(1, extract="price", auto_approve={"min": 0, "max": 60}))
    item = begun(quoting, approver, READ, ACT)
    assert item.status == WorkItemStatus.DONE
    assert gate_cards(quoting.tenant) == 0


LATE = [
    {"type": "custom_check", "config": {"required_keywords": ["done"]}},
    {"type": "string_match", "approval_values": ["done"]},
    {"provider": "llm", "check": "is_polite", "config": {"policy": "Be kind"}, "promote_to_policy": True},
]


@pytest.mark.parametrize("late", LATE, ids=["keywords", "values", "model"])
def test_gate_that_could_only_ask_after_everything_is_refused(desk: Desk, late: dict[str, Any]) -> None:
    with pytest.raises(SilasError) as refused:
        put_gate(desk, step_gate(1, **late))
    assert refused.value.code == "gate_invalid"
    assert "extract" in refused.value.extra["fields"]


# --- killed


POINTS = ("work.leased", "work.begun", "guard.after_settle", "work.before_ack", "work.after_ack")
# One start for all: each child is killed at its own point.
WORKER = """
import django, os, pathlib, sys, uuid; django.setup()
from tests.factories.work import Hands
tenant = uuid.UUID(sys.argv[1])
for point in sys.argv[2:]:
    pathlib.Path(os.environ["SILAS_FAULT_POINTS"], point).write_text("kill")
    child = os.fork()
    if child == 0:
        Hands(tenant).work(consumer=point)
        os._exit(3)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == 9, point
"""


def killed_at(desk: Desk, folder: Path, *points: str) -> None:
    folder.mkdir()
    nursery.run(
        [sys.executable, "-c", WORKER, str(desk.tenant.pk), *points],
        env={**os.environ, VARIABLE: str(folder)},
        check=True,
        timeout=300,
    )


def deliver_again(desk: Desk) -> None:
    let_leases_run_out(desk.tenant)
    with tenant_scope(desk.tenant):
        expire_leases()
    desk.work(consumer="second")


def approve_each(desk: Desk, user: Any) -> Iterator[str]:
    with tenant_scope(desk.tenant):
        found = list(Card.objects.filter(kind="gate", status=CardStatus.OPEN))
    for card in found:
        answer(desk.tenant, user, "approve", card)
        yield str(card.pk)


@pytest.mark.slow
def test_worker_killed_anywhere_loses_no_pause_and_does_nothing_twice(
    gated: Desk, tmp_path: Path, approver: Any, owner: Any
) -> None:
    """Killed while it pauses, and again while it continues."""
    items = []
    for number in range(len(POINTS)):
        orders, customer = [f"K-{number}-a", f"K-{number}-b"], f"C-{number}-k"
        for order in orders:
            save_record(gated.tenant, "orders", order, subject=customer, total=1)
        items.append(gated.propose(note(30, orders[0]), note(31, orders[1]), subject=customer).work_item_id)
        gated.decide(gated.item(items[-1]), approver)
    killed_at(gated, tmp_path / "pausing", *POINTS)
    deliver_again(gated)
    gated.work(Queue.TRUSTED)
    assert {gated.item(each).status for each in items} == {WorkItemStatus.PAUSED}
    assert {gated.order(f"K-{number}-b").revision for number in range(len(POINTS))} == {1}
    assert len(list(approve_each(gated, owner))) == len(POINTS)
    killed_at(gated, tmp_path / "resuming", *POINTS)
    deliver_again(gated)
    assert {gated.item(each).status for each in items} == {WorkItemStatus.DONE}
    assert {gated.order(f"K-{number}-a").revision for number in range(len(POINTS))} == {2}
    assert {gated.order(f"K-{number}-b").revision for number in range(len(POINTS))} == {2}
    assert gate_cards(gated.tenant) == len(POINTS)
