"""Approvals of drafts, batches, projects and undo also count only while the records are as shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from apps.approvals import queries as cards
from apps.approvals.cards.schemas import AnswerDetails, AnswerRefused
from apps.approvals.cards.services import answer_card
from apps.approvals.enums import CardKind
from apps.approvals.models import ApprovalToken, Card
from apps.approvals.queries import face_hash
from apps.bus.enums import Queue
from apps.sessions.enums import EntryKind
from apps.sessions.models import ChronicleEntry
from apps.skills.models import Record
from apps.skills.services import save_record
from apps.work.enums import BatchStatus, WorkItemStatus, WorkReason
from apps.work.models import Batch, WorkItem
from apps.work.services.undo import PARTLY_CHANGED
from kernel.language import in_language
from kernel.tenancy import tenant_scope
from tests.factories.batches import again, card_of, carry_out, found, items, notes, route, undoable_desk
from tests.factories.work import ARGS, PROJECT, Desk, make_desk, note
from tests.rivals import race

NOTE = {"label": "Note", "book": "orders", "key": "{order}", "field": "note", "after": "{note}"}
WORDED = {**ARGS, "properties": {**ARGS["properties"], "words": {"type": "string", "maxLength": 60}}}
OLD = "We have sent your lamp."


@pytest.fixture
def desk(tenant: Any, tmp_path: Path) -> Desk:
    """A desk whose cards show the note before the change, and whose tool can be undone."""
    return undoable_desk(tenant, tmp_path, facts=[NOTE])


def change(desk: Desk, number: int, value: float) -> None:
    """A change by a colleague or another system in the meantime."""
    with tenant_scope(desk.tenant):
        row = Record.objects.get(book="orders", key=f"H-{number}")
        save_record("orders", row.key, subject=row.subject, data={**row.data, "note": value})


def press(desk: Desk, card: Card, user: Any, choice: str = "approve", **words: Any) -> Any:
    with tenant_scope(desk.tenant):
        return answer_card(card.pk, user=user, choice=choice, face=face_hash(card), details=AnswerDetails(**words))


def stored(desk: Desk, card: Card) -> Card:
    with tenant_scope(desk.tenant):
        found: Card = Card.objects.get(pk=card.pk)
        return found


def tokens(desk: Desk) -> int:
    with tenant_scope(desk.tenant):
        return int(ApprovalToken.objects.count())


def open_cards(desk: Desk) -> list[Card]:
    with tenant_scope(desk.tenant):
        return list(cards.open_cards())


# --- drafts


@pytest.fixture
def writer(tenant: Any, tmp_path: Path) -> Desk:
    return undoable_desk(tenant, tmp_path, args=WORDED, facts=[NOTE])


def drafted(desk: Desk) -> WorkItem:
    args = {"order": "H-1", "note": 11, "words": OLD}
    (item,) = route(desk, found(1, confidence=0.6).model_copy(update={"args": args})).drafts
    return item


def before(card: Card) -> str:
    (fact,) = [fact for fact in card.facts if fact["label"] == "Note"]
    return str(fact["before"])


def test_draft_shows_the_records_that_it_would_change(writer: Desk) -> None:
    card = card_of(writer, drafted(writer).pk)
    assert before(card) == "not on record"
    assert card.reads == [{"book": "orders", "key": "H-1", "revision": 1}]


def test_approval_of_a_draft_whose_record_changed_mints_nothing_and_shows_the_present(
    writer: Desk, approver: Any
) -> None:
    item = drafted(writer)
    old = card_of(writer, item.pk)
    change(writer, 1, 5)
    fresh = press(writer, old, approver)
    carry_out(writer)
    assert isinstance(fresh, Card)
    assert fresh.kind == CardKind.DRAFT_REVIEW
    assert fresh.supersedes_id == old.pk
    assert fresh.body["draft"] == OLD
    assert before(fresh) == "5"
    assert tokens(writer) == 0
    assert notes(writer, 1) == [5]
    press(writer, fresh, approver)
    carry_out(writer)
    assert notes(writer, 1) == [11]


def test_draft_whose_record_changes_between_approval_and_work_is_asked_about_again(writer: Desk, approver: Any) -> None:
    item = drafted(writer)
    old = card_of(writer, item.pk)
    press(writer, old, approver)
    change(writer, 1, 5)
    carry_out(writer)
    fresh = card_of(writer, item.pk)
    assert notes(writer, 1) == [5]
    assert fresh.kind == CardKind.DRAFT_REVIEW
    assert fresh.supersedes_id == old.pk
    assert before(fresh) == "5"
    press(writer, fresh, approver)
    carry_out(writer)
    assert notes(writer, 1) == [11]


# --- batches


def proposed(desk: Desk, *numbers: int) -> Batch:
    (batch,) = route(desk, *(found(number) for number in numbers)).batches
    return batch


def line(card: Card, place: int) -> dict[str, Any]:
    fact: dict[str, Any] = card.body["items"][place]["facts"][0]
    return fact


def test_batch_shows_each_line_with_its_record(desk: Desk) -> None:
    change(desk, 2, 7)
    batch = proposed(desk, 1, 2)
    card = card_of(desk, batch.pk)
    first, second = (item.plan_hash for item in items(desk, batch))
    assert line(card, 0) == {"label": "Note", "before": "not on record", "after": "11"}
    assert line(card, 1) == {"label": "Note", "before": "7", "after": "12"}
    assert card.reads == [
        {"book": "orders", "key": "H-1", "revision": 1, "item": first},
        {"book": "orders", "key": "H-2", "revision": 2, "item": second},
    ]


def test_line_whose_record_changed_before_the_approval_is_left_out_and_asked_about_again(
    desk: Desk, approver: Any
) -> None:
    batch = proposed(desk, 1, 2, 3)
    left_out = items(desk, batch)[1]
    change(desk, 2, 7)
    press(desk, card_of(desk, batch.pk), approver)
    fresh = card_of(desk, left_out.pk)
    carry_out(desk)
    assert notes(desk, 1, 2, 3) == [11, 7, 13]
    assert desk.item(left_out.pk).status == WorkItemStatus.PENDING
    assert before(fresh) == "7"
    assert again(desk, batch).status == BatchStatus.FINISHED
    press(desk, fresh, approver)
    carry_out(desk)
    assert notes(desk, 2) == [12]


def test_line_whose_record_changes_between_approval_and_work_is_left_out_and_asked_about_again(
    desk: Desk, approver: Any
) -> None:
    batch = proposed(desk, 1, 2, 3)
    left_out = items(desk, batch)[1]
    press(desk, card_of(desk, batch.pk), approver)
    change(desk, 2, 7)
    carry_out(desk)
    desk.work(Queue.TRUSTED)
    fresh = card_of(desk, left_out.pk)
    assert notes(desk, 1, 2, 3) == [11, 7, 13]
    assert before(fresh) == "7"
    assert again(desk, batch).status == BatchStatus.FINISHED
    press(desk, fresh, approver)
    carry_out(desk)
    assert notes(desk, 2) == [12]


def test_batch_all_of_whose_records_changed_is_asked_about_once_more_as_one(desk: Desk, approver: Any) -> None:
    batch = proposed(desk, 1, 2)
    old = card_of(desk, batch.pk)
    change(desk, 1, 5)
    change(desk, 2, 7)
    fresh = press(desk, old, approver)
    carry_out(desk)
    assert isinstance(fresh, Card)
    assert fresh.supersedes_id == old.pk
    assert stored(desk, old).withdrawal == "replaced"
    assert [line(fresh, place)["before"] for place in (0, 1)] == ["5", "7"]
    assert tokens(desk) == 0
    assert notes(desk, 1, 2) == [5, 7]
    press(desk, fresh, approver)
    carry_out(desk)
    assert notes(desk, 1, 2) == [11, 12]


def test_selection_rests_on_the_records_of_its_own_lines(desk: Desk, approver: Any) -> None:
    batch = proposed(desk, 1, 2, 3)
    kept = [item.plan_hash for item in items(desk, batch)[:2]]
    card = press(desk, card_of(desk, batch.pk), approver, "edit_selection", selected=kept)
    assert [each["item"] for each in card.reads] == kept
    change(desk, 3, 9)
    press(desk, card, approver)
    carry_out(desk)
    assert notes(desk, 1, 2, 3) == [11, 12, 9]


def test_item_that_left_its_batch_does_not_run_on_the_batchs_approval(desk: Desk, approver: Any) -> None:
    """Also not if SQL puts it back into the batch, with the token of the others."""
    batch = proposed(desk, 1, 2)
    left_out = items(desk, batch)[1]
    change(desk, 2, 7)
    press(desk, card_of(desk, batch.pk), approver)
    with tenant_scope(desk.tenant):
        token = Batch.objects.get(pk=batch.pk).approval_token
        WorkItem.objects.filter(pk=left_out.pk).update(batch=batch, approval_token=token)
    carry_out(desk)
    assert notes(desk, 2) == [7]


def test_two_presses_at_once_leave_a_changed_line_out_once(desk: Desk, approver: Any, owner: Any) -> None:
    batch = proposed(desk, 1, 2)
    left_out = items(desk, batch)[1]
    card = card_of(desk, batch.pk)
    change(desk, 2, 7)
    race(lambda: press(desk, card, approver), lambda: press(desk, card, owner))
    carry_out(desk)
    with tenant_scope(desk.tenant):
        asked = Card.objects.filter(subject_id=left_out.pk).count()
    assert asked == 1
    assert tokens(desk) == 1
    assert notes(desk, 1, 2) == [11, 7]


# --- projects


@pytest.fixture
def builder(tenant: Any, tmp_path: Path) -> Desk:
    return make_desk(tenant, tmp_path, facts=[NOTE])


def project(desk: Desk, user: Any) -> WorkItem:
    asked = desk.propose(plan_markdown=PROJECT)
    assert asked.work_item_id is not None
    press(desk, card_of(desk, asked.work_item_id), user)
    return desk.item(asked.work_item_id)


def tasks(desk: Desk, whole: WorkItem) -> dict[str, WorkItem]:
    with tenant_scope(desk.tenant):
        parts = WorkItem.objects.filter(parent=whole)
        return {part.spec.calls[0].args["order"]: part for part in parts}


def test_project_whose_records_stay_runs_on_its_one_approval(builder: Desk, approver: Any) -> None:
    whole = project(builder, approver)
    builder.work()
    assert builder.item(whole.pk).status == WorkItemStatus.DONE
    assert tokens(builder) == 1


def test_task_whose_record_changed_since_the_project_was_approved_is_asked_about_again(
    builder: Desk, approver: Any
) -> None:
    whole = project(builder, approver)
    change(builder, 3, 7)
    builder.work()
    builder.work(Queue.TRUSTED)
    task = tasks(builder, whole)["H-3"]
    assert notes(builder, 1, 3) == [31, 7]
    assert builder.item(whole.pk).status == WorkItemStatus.RUNNING
    fresh = card_of(builder, task.pk)
    assert before(fresh) == "7"
    press(builder, fresh, approver)
    builder.work()
    assert notes(builder, 3) == [31]
    assert builder.item(whole.pk).status == WorkItemStatus.DONE


def test_visitor_reads_the_values_of_all_tasks_of_a_project_that_is_asked_about_again(
    builder: Desk, approver: Any
) -> None:
    asked = builder.propose(plan_markdown=PROJECT)
    assert asked.work_item_id is not None
    change(builder, 3, 7)
    press(builder, card_of(builder, asked.work_item_id), approver)
    whole = builder.item(asked.work_item_id)
    with tenant_scope(builder.tenant):
        told = ChronicleEntry.objects.filter(session_id=whole.session_id, kind=EntryKind.STATUS).order_by("seq")
        first, again = [entry.payload["changes"] for entry in told]
    assert [change["after"] for change in first] == ["31", "H-1", "31", "H-3"]
    assert [change["after"] for change in again] == [change["after"] for change in first]


def test_task_that_is_declined_ends_its_project(builder: Desk, approver: Any) -> None:
    whole = project(builder, approver)
    change(builder, 3, 7)
    builder.work()
    builder.work(Queue.TRUSTED)
    press(builder, card_of(builder, tasks(builder, whole)["H-3"].pk), approver, "decline")
    builder.work()
    assert notes(builder, 3) == [7]
    assert builder.item(whole.pk).status == WorkItemStatus.FAILED


# Two tasks about one record, the second after the first.
SAME = PROJECT.replace('"order":"H-3"', '"order":"H-1"').replace("title: two\n", "title: two\ndepends_on: [one]\n")


def test_project_follows_its_own_changes_of_a_record(builder: Desk, approver: Any) -> None:
    second = SAME.rindex('"note":31')
    plan = SAME[:second] + '"note":32' + SAME[second + len('"note":31') :]
    asked = builder.propose(plan_markdown=plan)
    assert asked.work_item_id is not None
    press(builder, card_of(builder, asked.work_item_id), approver)
    builder.work()
    assert builder.item(asked.work_item_id).status == WorkItemStatus.DONE
    assert notes(builder, 1) == [32]
    assert tokens(builder) == 1


# --- undo


def done(desk: Desk, user: Any, *numbers: int) -> Batch:
    batch = proposed(desk, *numbers)
    press(desk, card_of(desk, batch.pk), user)
    carry_out(desk)
    return batch


def offered(desk: Desk, subject_id: Any) -> Card:
    with tenant_scope(desk.tenant):
        undo = Batch.objects.get(undo_of=subject_id)
    return card_of(desk, undo.pk)


def test_undo_rests_on_what_the_change_left(desk: Desk, approver: Any) -> None:
    card = offered(desk, done(desk, approver, 1, 2).pk)
    assert sorted((each["key"], each["revision"]) for each in card.reads) == [("H-1", 2), ("H-2", 2)]


def test_undo_of_records_that_changed_since_is_refused_and_changes_nothing(desk: Desk, approver: Any) -> None:
    card = offered(desk, done(desk, approver, 1).pk)
    minted = tokens(desk)
    change(desk, 1, 11.5)
    change(desk, 1, 11)
    outcome = press(desk, card, approver)
    carry_out(desk)
    assert isinstance(outcome, AnswerRefused)
    assert stored(desk, card).withdrawal == "outdated"
    assert notes(desk, 1) == [11]
    assert tokens(desk) == minted
    assert open_cards(desk) == []


def test_undo_of_a_batch_offers_the_rest_where_some_records_changed(desk: Desk, approver: Any) -> None:
    old = offered(desk, done(desk, approver, 1, 2, 3).pk)
    change(desk, 2, 50)
    with in_language("de"):
        fresh = press(desk, old, approver)
    carry_out(desk)
    assert isinstance(fresh, Card)
    assert fresh.supersedes_id == old.pk
    assert fresh.expires_at == old.expires_at
    assert fresh.rationale == PARTLY_CHANGED
    assert notes(desk, 1, 2, 3) == [11, 50, 13]
    press(desk, fresh, approver)
    carry_out(desk)
    assert notes(desk, 1, 2, 3) == [0, 50, 0]


def test_record_that_changes_between_the_press_and_the_undo_stays(desk: Desk, approver: Any) -> None:
    batch = done(desk, approver, 1)
    press(desk, offered(desk, batch.pk), approver)
    change(desk, 1, 11.5)
    change(desk, 1, 11)
    carry_out(desk)
    with tenant_scope(desk.tenant):
        (item,) = items(desk, Batch.objects.get(undo_of=batch.pk))
    assert notes(desk, 1) == [11]
    assert item.status == WorkItemStatus.BLOCKED
    assert item.reason == WorkReason.NOT_APPROVED
    assert item.last_error == "record_changed"


def test_what_changed_before_the_results_are_shown_is_not_offered(desk: Desk, approver: Any) -> None:
    batch = proposed(desk, 1, 2)
    press(desk, card_of(desk, batch.pk), approver)
    desk.work()
    change(desk, 1, 50)
    desk.work(Queue.TRUSTED)
    card = offered(desk, batch.pk)
    assert [each["key"] for each in card.reads] == ["H-2"]
    press(desk, card, approver)
    carry_out(desk)
    assert notes(desk, 1, 2) == [50, 0]


def test_undo_of_two_lines_about_one_record_puts_back_the_first_state(
    tenant: Any, tmp_path: Path, approver: Any
) -> None:
    """Their tool shows no record, so both lines run; the undo follows its own changes, the last effect first."""
    desk = undoable_desk(tenant, tmp_path)
    other = found(1).model_copy(update={"args": {"order": "H-1", "note": 20}})
    (batch,) = route(desk, found(1), other).batches
    press(desk, card_of(desk, batch.pk), approver)
    carry_out(desk)
    card = offered(desk, batch.pk)
    assert [each["revision"] for each in card.reads] == [3, 3]
    press(desk, card, approver)
    carry_out(desk)
    assert notes(desk, 1) == [0]


# --- cards about one record


def test_cards_of_every_kind_about_one_record_lead_to_each_other(writer: Desk) -> None:
    draft = card_of(writer, drafted(writer).pk)
    other = writer.propose(note(40), subject="C-1")
    plan = card_of(writer, other.work_item_id)
    batch = card_of(writer, proposed(writer, 1).pk)
    apart = card_of(writer, proposed(writer, 3).pk)
    with tenant_scope(writer.tenant):
        assert {card.pk for card in cards.cards_sharing_records(draft)} == {plan.pk, batch.pk}
        assert {card.pk for card in cards.cards_sharing_records(batch)} == {draft.pk, plan.pk}
        assert cards.cards_sharing_records(apart) == []
