"""Undo: by the skill's inverse, within the window, the last effect first, once (spec 0.5.5)."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import time_machine
from django.conf import settings

from apps.approvals.enums import CardKind, Risk
from apps.approvals.models import Card
from apps.audit.models import AuditEntry
from apps.bus.enums import Kind, Queue
from apps.bus.models import QueueMessage
from apps.guard.models import ToolCall
from apps.skills.models import Record
from apps.work.enums import WorkItemStatus, WorkReason
from apps.work.locks import lock_item
from apps.work.models import Batch, UndoEntry, WorkItem
from apps.work.services import cancellation, completion, undo
from kernel.clock import now
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope
from tests.factories.approvals import expire_cards
from tests.factories.batches import answer, card_of, carry_out, found, items, notes, route, undoable_desk
from tests.factories.work import Desk, note
from tests.rivals import race


@pytest.fixture
def desk(tenant: Any, tmp_path: Path) -> Desk:
    return undoable_desk(tenant, tmp_path)


def done(desk: Desk, user: Any, *numbers: int) -> Batch:
    """A finished batch."""
    (batch,) = route(desk, *(found(number) for number in numbers)).batches
    answer(desk, card_of(desk, batch.pk), user, "approve")
    carry_out(desk)
    return batch


def offered(desk: Desk, subject_id: Any) -> Card:
    with tenant_scope(desk.tenant):
        return card_of(desk, Batch.objects.get(undo_of=subject_id).pk)


def has_offer(desk: Desk, subject_id: Any) -> bool:
    with tenant_scope(desk.tenant):
        return bool(Batch.objects.filter(undo_of=subject_id).exists())


def undo_items(desk: Desk, subject_id: Any) -> list[WorkItem]:
    with tenant_scope(desk.tenant):
        return items(desk, Batch.objects.get(undo_of=subject_id))


def told_over(desk: Desk, subject_id: Any) -> tuple[str, str, str]:
    """What was reported when it was over: the status, the error's code, the state of the message."""
    with tenant_scope(desk.tenant):
        told = QueueMessage.objects.get(queue=Queue.TRUSTED, kind=Kind.EXECUTION_STATUS, task_id=subject_id)
    return told.payload["status"], told.error_code, told.state


# --- offered


@pytest.mark.parametrize("numbers", [(1,), (1, 2)])
def test_web_processes_are_told_of_a_batch_that_is_done(desk: Desk, approver: Any, numbers: tuple[int, ...]) -> None:
    assert told_over(desk, done(desk, approver, *numbers).pk) == ("done", "", "acked")


def test_web_processes_are_told_of_an_item_that_is_done(desk: Desk, approver: Any) -> None:
    item = desk.approved(approver)
    carry_out(desk)
    assert told_over(desk, item.pk) == ("done", "", "acked")


@pytest.mark.parametrize(
    ("reason", "code"), [(WorkReason.VERIFICATION, "verification_failed"), (WorkReason.CANCELLED, "tool_failure")]
)
def test_web_processes_are_told_why_a_batch_is_not_wholly_done(
    desk: Desk, approver: Any, reason: WorkReason, code: str
) -> None:
    (batch,) = route(desk, found(1), found(2)).batches
    answer(desk, card_of(desk, batch.pk), approver, "approve")
    with tenant_scope(desk.tenant):
        completion.end_item(lock_item(items(desk, batch)[0].pk), WorkItemStatus.FAILED, reason)
    carry_out(desk)
    assert told_over(desk, batch.pk) == ("failed", code, "acked")


def test_finished_batch_shows_its_results_with_undo_by_one_tap(desk: Desk, approver: Any) -> None:
    card = offered(desk, done(desk, approver, 1, 2).pk)
    assert card.kind == CardKind.POST_EXECUTION
    assert card.risk == Risk.LOW
    assert [result["ok"] for result in card.body["results"]] == [True, True]


def test_undo_is_listed_with_the_last_effect_first(desk: Desk, approver: Any) -> None:
    batch = done(desk, approver, 1, 2, 3)
    with tenant_scope(desk.tenant):
        made = list(UndoEntry.objects.order_by("created_at").values_list("work_item_id", flat=True))
    assert [item.follow_up_of_id for item in undo_items(desk, batch.pk)] == made[::-1]


def test_undo_is_offered_for_exactly_its_window(desk: Desk, approver: Any) -> None:
    card = offered(desk, done(desk, approver, 1).pk)
    with tenant_scope(desk.tenant):
        entry = UndoEntry.objects.get()
    assert card.expires_at == entry.expires_at + timedelta(microseconds=1)
    assert entry.expires_at == entry.created_at + timedelta(seconds=settings.UNDO_SECONDS)


def window_end(desk: Desk) -> datetime:
    with tenant_scope(desk.tenant):
        end: datetime = UndoEntry.objects.get().expires_at
        return end


@pytest.mark.parametrize("left", [timedelta(seconds=1), timedelta(milliseconds=1), timedelta(0)], ids=str)
def test_undo_in_the_last_second_of_its_window_is_carried_out(desk: Desk, approver: Any, left: timedelta) -> None:
    card = offered(desk, done(desk, approver, 1).pk)
    with time_machine.travel(window_end(desk) - left, tick=False):
        answer(desk, card, approver, "approve")
    carry_out(desk)
    assert notes(desk, 1) == [0]


@pytest.mark.parametrize(("after", "ended"), [(timedelta(0), 0), (timedelta(microseconds=1), 1)], ids=str)
def test_sweep_ends_an_undo_behind_its_window_and_not_before(
    desk: Desk, approver: Any, after: timedelta, ended: int
) -> None:
    offered(desk, done(desk, approver, 1).pk)
    with time_machine.travel(window_end(desk) + after, tick=False):
        expire_cards(desk.tenant)
    with tenant_scope(desk.tenant):
        assert Card.objects.filter(status="expired").count() == ended


def test_undo_is_refused_as_soon_as_its_window_has_ended(desk: Desk, approver: Any) -> None:
    card = offered(desk, done(desk, approver, 1).pk)
    moment = window_end(desk) + timedelta(microseconds=1)
    with time_machine.travel(moment, tick=False), pytest.raises(SilasError) as refused:
        answer(desk, card, approver, "approve")
    assert refused.value.code == "card_expired"


@pytest.mark.parametrize(("after", "offers"), [(timedelta(0), True), (timedelta(microseconds=1), False)], ids=str)
def test_undo_is_offered_until_its_window_ends(desk: Desk, approver: Any, after: timedelta, offers: bool) -> None:
    (batch,) = route(desk, found(1)).batches
    answer(desk, card_of(desk, batch.pk), approver, "approve")
    desk.work()
    with time_machine.travel(window_end(desk) + after, tick=False), tenant_scope(desk.tenant):
        undo.offer_undo(batch.pk)
    assert has_offer(desk, batch.pk) is offers


def test_batch_that_took_long_can_be_taken_back_whole_until_the_window_of_its_last_item_ends(
    desk: Desk, approver: Any
) -> None:
    (batch,) = route(desk, found(1), found(2)).batches
    answer(desk, card_of(desk, batch.pk), approver, "approve")
    desk.work()
    with tenant_scope(desk.tenant):
        first, last = UndoEntry.objects.order_by("created_at")
        earlier = timedelta(seconds=settings.UNDO_SECONDS + 60)
        UndoEntry.objects.filter(pk=first.pk).update(
            created_at=first.created_at - earlier, expires_at=first.expires_at - earlier
        )
    desk.work(Queue.TRUSTED)
    card = offered(desk, batch.pk)
    assert card.expires_at == last.expires_at + timedelta(microseconds=1)
    assert len(card.payload["item_ids"]) == 2


def test_results_of_which_one_failed_are_not_called_done(desk: Desk, approver: Any) -> None:
    (batch,) = route(desk, found(1), found(2)).batches
    answer(desk, card_of(desk, batch.pk), approver, "approve")
    with tenant_scope(desk.tenant):
        Record.objects.filter(book="orders", key="H-2").update(key="H-none")
    carry_out(desk)
    carry_out(desk)
    card = offered(desk, batch.pk)
    assert card.intent == "Done: 1 of 2 actions"
    assert card.rationale.startswith("Partly done")


def test_single_item_is_offered_too(desk: Desk, approver: Any) -> None:
    item = desk.approved(approver)
    carry_out(desk)
    assert offered(desk, item.pk).intent == "Done: Change H-1"


def test_report_that_is_delivered_twice_offers_once(desk: Desk, approver: Any) -> None:
    batch = done(desk, approver, 1)
    with tenant_scope(desk.tenant):
        undo.offer_undo(batch.pk)
        assert Card.objects.filter(kind=CardKind.POST_EXECUTION).count() == 1


@pytest.mark.parametrize(
    "tool", [{"undo": None}, {"undo": None, "reversible": False}, {"undo": {"tool": "unact", "args": {"order": "$no"}}}]
)
def test_what_its_skill_cannot_take_back_is_never_offered(
    tenant: Any, tmp_path: Path, approver: Any, tool: dict[str, Any]
) -> None:
    desk = undoable_desk(tenant, tmp_path, **tool)
    batch = done(desk, approver, 1)
    assert notes(desk, 1) == [11]
    assert has_offer(desk, batch.pk) is False


def test_item_that_failed_is_not_undone(desk: Desk, approver: Any) -> None:
    (batch,) = route(desk, found(1), found(2)).batches
    answer(desk, card_of(desk, batch.pk), approver, "approve")
    first = items(desk, batch)[0]
    with tenant_scope(desk.tenant):
        WorkItem.objects.filter(pk=first.pk).update(plan=first.plan.replace("11", "99"))
    carry_out(desk)
    assert [item.title for item in undo_items(desk, batch.pk)] == ["Undo: Change H-2"]


def test_undo_of_an_undo_is_not_offered(desk: Desk, approver: Any) -> None:
    batch = done(desk, approver, 1)
    answer(desk, offered(desk, batch.pk), approver, "approve")
    carry_out(desk)
    with tenant_scope(desk.tenant):
        assert Card.objects.filter(kind=CardKind.POST_EXECUTION).count() == 1


# --- pressed


def test_one_tap_puts_everything_back(desk: Desk, approver: Any) -> None:
    batch = done(desk, approver, 1, 2, 3)
    answer(desk, offered(desk, batch.pk), approver, "approve")
    carry_out(desk)
    assert notes(desk, 1, 2, 3) == [0, 0, 0]


def test_undo_runs_in_reverse_order_one_after_the_other(desk: Desk, approver: Any) -> None:
    batch = done(desk, approver, 1, 2, 3)
    answer(desk, offered(desk, batch.pk), approver, "approve")
    carry_out(desk)
    expected = [item.pk for item in undo_items(desk, batch.pk)]
    with tenant_scope(desk.tenant):
        calls = ToolCall.objects.filter(tool="unact", state="executed").order_by("settled_at")
        assert list(calls.values_list("run__owner_ref", flat=True)) == expected


def test_undo_is_guarded_proved_and_on_record(desk: Desk, approver: Any) -> None:
    batch = done(desk, approver, 1)
    answer(desk, offered(desk, batch.pk), approver, "approve")
    carry_out(desk)
    (item,) = undo_items(desk, batch.pk)
    with tenant_scope(desk.tenant):
        proof = [result["name"] for result in item.attempts.get().verification.results]
        events = list(
            AuditEntry.objects.filter(event__startswith="undo_").order_by("seq").values_list("event", flat=True)
        )
    assert item.status == "done"
    assert proof == ["undone"]
    assert events == ["undo_offered", "undo_begun"]


def test_undo_happens_once_however_often_it_is_pressed(desk: Desk, approver: Any, owner: Any) -> None:
    batch = done(desk, approver, 1)
    card = offered(desk, batch.pk)
    outcomes = race(lambda: answer(desk, card, approver, "approve"), lambda: answer(desk, card, owner, "approve"))
    carry_out(desk)
    refused = sum(isinstance(outcome, SilasError) for outcome in outcomes)
    assert refused == 1
    assert notes(desk, 1) == [0]
    assert desk.order("H-1").revision == 3


def test_undo_after_the_window_is_refused(desk: Desk, approver: Any) -> None:
    batch = done(desk, approver, 1)
    card = offered(desk, batch.pk)
    with time_machine.travel(card.expires_at + timedelta(seconds=1)), pytest.raises(SilasError) as refused:
        answer(desk, card, approver, "approve")
    assert refused.value.code == "card_expired"
    assert notes(desk, 1) == [11]


def test_report_that_comes_after_the_window_offers_nothing(desk: Desk, approver: Any) -> None:
    item = desk.approved(approver)
    desk.work()
    with time_machine.travel(now() + timedelta(seconds=settings.UNDO_SECONDS + 1)):
        desk.work(Queue.TRUSTED)
    assert not has_offer(desk, item.pk)


def test_offer_that_nobody_took_ends_quietly(desk: Desk, approver: Any) -> None:
    batch = done(desk, approver, 1)
    card = offered(desk, batch.pk)
    with time_machine.travel(card.expires_at + timedelta(seconds=1)):
        expire_cards(desk.tenant)
    (item,) = undo_items(desk, batch.pk)
    assert item.reason == WorkReason.EXPIRED
    assert item.session_id is None
    assert notes(desk, 1) == [11]


def test_keeping_it_changes_nothing(desk: Desk, approver: Any) -> None:
    batch = done(desk, approver, 1)
    answer(desk, offered(desk, batch.pk), approver, "decline")
    carry_out(desk)
    assert notes(desk, 1) == [11]


def test_record_that_somebody_changed_since_stays_and_stops_the_undo(desk: Desk, approver: Any) -> None:
    batch = done(desk, approver, 1, 2)
    last = undo_items(desk, batch.pk)[0]
    order = last.spec.calls[0].args["order"]
    answer(desk, offered(desk, batch.pk), approver, "approve")
    with tenant_scope(desk.tenant):
        row = Record.objects.get(book="orders", key=order)
        Record.objects.filter(pk=row.pk).update(data={**row.data, "note": 77}, revision=row.revision + 1)
    carry_out(desk)
    ended = [(item.status, item.reason) for item in undo_items(desk, batch.pk)]
    assert desk.order(order).data["note"] == 77
    assert ended[1] == ("blocked", WorkReason.DEPENDENCY)


def test_undo_of_which_the_last_effect_was_called_off_takes_nothing_back(desk: Desk, approver: Any, agent: Any) -> None:
    batch = done(desk, approver, 1, 2)
    with tenant_scope(desk.tenant):
        cancellation.cancel_for_staff(undo_items(desk, batch.pk)[0].pk, user=agent)
    answer(desk, offered(desk, batch.pk), approver, "approve")
    carry_out(desk)
    assert notes(desk, 1, 2) == [11, 12]
    assert undo_items(desk, batch.pk)[1].reason == WorkReason.DEPENDENCY


@pytest.mark.parametrize("role", ["agent", "viewer"])
def test_undo_is_for_those_who_may_decide(desk: Desk, approver: Any, role: str, request: Any) -> None:
    batch = done(desk, approver, 1)
    with pytest.raises(SilasError) as refused:
        answer(desk, offered(desk, batch.pk), request.getfixturevalue(role), "approve")
    assert refused.value.status == 403
    assert notes(desk, 1) == [11]


def test_visitor_hears_that_their_change_was_taken_back(desk: Desk, approver: Any) -> None:
    item = desk.approved(approver)
    carry_out(desk)
    answer(desk, offered(desk, item.pk), approver, "approve")
    assert [each.session_id for each in undo_items(desk, item.pk)] == [item.session_id]


def test_standing_item_can_be_undone(desk: Desk, owner: Any) -> None:
    desk.allow_standing(owner)
    proposal = desk.propose(note(5))
    carry_out(desk)
    answer(desk, offered(desk, proposal.work_item_id), owner, "approve")
    carry_out(desk)
    assert desk.order("H-1").data["note"] == 0
