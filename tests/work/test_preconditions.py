"""An approval counts only while the records are as its card showed them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import psycopg
import pytest

from apps.approvals import queries as cards
from apps.approvals.cards.services import decide_card
from apps.approvals.enums import ApprovalVerdict
from apps.approvals.models import ApprovalToken, Card, TokenUse
from apps.bus.enums import Queue
from apps.skills.schemas import SetChange
from apps.skills.services import apply_changes, save_record
from apps.work.models import WorkItem
from apps.work.services import edit_plan, preconditions
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope
from tests.factories.work import Desk, make_desk, note
from tests.platform.connecting import connected_as

NOTE = {"label": "Note", "book": "orders", "key": "{order}", "field": "note", "after": "{note}"}


@pytest.fixture
def desk(tenant: Any, tmp_path: Path) -> Desk:
    """A desk whose cards show the note before the change."""
    return make_desk(tenant, tmp_path, facts=[NOTE])


def _note_of(card: Card) -> tuple[str, str]:
    (fact,) = [fact for fact in card.facts if fact["label"] == "Note"]
    return fact["before"], fact["after"]


def _cards(desk: Desk, item: WorkItem) -> list[Card]:
    with tenant_scope(desk.tenant):
        return list(Card.objects.filter(subject_id=item.pk).order_by("created_at"))


def _press(desk: Desk, card: Card, user: Any) -> Any:
    with tenant_scope(desk.tenant):
        return decide_card(card.pk, user=user, verdict=ApprovalVerdict.APPROVED)


def _change(desk: Desk, note: float, key: str = "H-1") -> None:
    with tenant_scope(desk.tenant):
        save_record("orders", key, subject="C-1", data={"total": 120, "note": note})


def test_card_carries_the_state_that_it_shows(desk: Desk) -> None:
    (card,) = _cards(desk, desk.waiting(30))
    assert card.reads == [{"book": "orders", "key": "H-1", "revision": 1}]


def test_of_three_cards_about_one_record_the_second_shows_what_the_first_did_before_it_runs(
    desk: Desk, approver: Any
) -> None:
    first, second, third = desk.waiting(30), desk.waiting(40), desk.waiting(50)
    desk.decide(first, approver)
    desk.work()
    (old,) = _cards(desk, second)
    fresh = _press(desk, old, approver)
    desk.work()
    assert desk.order().data["note"] == 30
    assert isinstance(fresh, Card)
    assert fresh.supersedes_id == old.pk
    assert _note_of(old) == ("not on record", "40")
    assert _note_of(fresh) == ("30", "40")
    assert _cards(desk, second)[0].withdrawal == "replaced"
    assert desk.item(third.pk).status == "pending"
    assert _press(desk, fresh, approver).verdict == "approved"
    desk.work()
    assert desk.order().data["note"] == 40


def test_approval_of_a_card_that_shows_the_past_mints_and_burns_nothing(desk: Desk, approver: Any) -> None:
    item = desk.waiting(40)
    _change(desk, 1)
    _press(desk, _cards(desk, item)[0], approver)
    with tenant_scope(desk.tenant):
        assert ApprovalToken.objects.count() == 0
        assert TokenUse.objects.count() == 0
    assert [card.status for card in _cards(desk, item)] == ["withdrawn", "open"]


def test_card_whose_record_stays_as_it_is_runs(desk: Desk, approver: Any) -> None:
    item = desk.waiting(40)
    _change(desk, 1, key="H-3")
    assert _press(desk, _cards(desk, item)[0], approver).verdict == "approved"
    desk.work()
    assert desk.order().data["note"] == 40


def test_card_about_another_customers_record_runs_into_that_and_changes_nothing(desk: Desk, approver: Any) -> None:
    """The customer has no such record before or after the approval, so nothing has changed since."""
    with tenant_scope(desk.tenant):
        save_record("orders", "H-9", subject="C-2", data={"total": 120})
    item = desk.item(desk.propose(note(40, "H-9")).work_item_id)
    (card,) = _cards(desk, item)
    assert card.reads == [{"book": "orders", "key": "H-9", "revision": 0}]
    assert _press(desk, card, approver).verdict == "approved"
    desk.work()
    assert desk.item(item.pk).status not in ("pending", "running", "done")
    assert desk.order("H-9").data == {"total": 120}


def test_no_to_a_card_that_shows_the_past_is_a_no(desk: Desk, approver: Any) -> None:
    item = desk.waiting(40)
    _change(desk, 1)
    desk.decide(item, approver, ApprovalVerdict.DECLINED)
    assert desk.item(item.pk).reason == "approval_denied"
    assert len(_cards(desk, item)) == 1


def test_worker_that_may_not_read_decisions_hands_back_work_that_had_begun(desk: Desk, approver: Any) -> None:
    """The executor's role reads no decisions, and the conversation is told how the request stands."""
    item = desk.approved(approver, 40)
    _change(desk, 1)
    with connected_as(os.environ["DATABASE_WORK_URL"]), tenant_scope(desk.tenant):
        WorkItem.objects.filter(pk=item.pk).update(status="running")
        preconditions.return_for_approval(WorkItem.objects.get(pk=item.pk))
    assert desk.item(item.pk).status == "pending"
    assert desk.item(item.pk).approval_token is None


def test_record_that_changes_between_the_approval_and_the_work_is_asked_about_once_more(
    desk: Desk, approver: Any
) -> None:
    item = desk.approved(approver, 40)
    _change(desk, 1)
    desk.work()
    desk.work(Queue.TRUSTED)
    desk.work(Queue.TRUSTED)
    assert desk.order().data["note"] == 1
    old, fresh = _cards(desk, item)
    assert desk.item(item.pk).status == "pending"
    assert desk.item(item.pk).approval_token is None
    assert fresh.supersedes_id == old.pk
    assert _note_of(fresh) == ("1", "40")
    assert fresh.rationale.startswith("The records have changed")
    _press(desk, fresh, approver)
    desk.work()
    assert desk.order().data["note"] == 40
    assert desk.item(item.pk).status == "done"


def test_record_that_changes_while_the_tool_runs_stays_as_it_was_changed(desk: Desk) -> None:
    seen = {("orders", "H-1"): 1}
    with tenant_scope(desk.tenant):
        save_record("orders", "H-1", subject="C-1", data={"total": 120, "note": 7})
        change = SetChange(book="orders", key="H-1", revision=2, set={"note": 40})
        with pytest.raises(SilasError) as refusal:
            apply_changes([change], customer="C-1", effect_key="e", expected=seen)
    assert refusal.value.code == "record_changed"
    assert desk.order().data["note"] == 7


def test_two_calls_about_one_record_run_on_what_was_shown(desk: Desk) -> None:
    seen = {("orders", "H-1"): 1}
    with tenant_scope(desk.tenant):
        for revision, note in ((1, 40), (2, 41)):
            change = SetChange(book="orders", key="H-1", revision=revision, set={"note": note})
            apply_changes([change], customer="C-1", effect_key="e", expected=seen)
    assert desk.order().data["note"] == 41


def test_token_is_signed_with_all_that_the_card_showed(desk: Desk, approver: Any) -> None:
    item = desk.approved(approver, 40)
    (card,) = _cards(desk, item)
    assert item.approval_token is not None
    assert item.approval_token.conditions["face"] == cards.face_hash(card)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("facts", "'[]'"),
        ("reads", "'[]'"),
        ("intent", "'Something else'"),
        ("risk", "'low'"),
        ("consequence", "'{}'"),
        ("details", "'{}'"),
        ("rationale", "'because'"),
        ("requested_by", "'user:1'"),
    ],
)
def test_work_whose_card_says_something_else_than_was_signed_does_not_begin(
    desk: Desk, approver: Any, superuser_dsn: str, column: str, value: str
) -> None:
    item = desk.approved(approver, 40)
    with psycopg.connect(superuser_dsn) as raw:
        raw.execute("SET session_replication_role = replica")
        raw.execute(f"UPDATE approvals_card SET {column} = {value} WHERE subject_id = %s", [item.pk])  # type: ignore[arg-type]
    desk.work()
    assert desk.item(item.pk).status == "blocked"
    assert desk.item(item.pk).last_error == "card_mismatch"
    assert desk.order().data.get("note") is None


def test_edit_of_a_card_that_shows_the_past_shows_the_present(desk: Desk, approver: Any) -> None:
    item = desk.waiting(40)
    _change(desk, 1)
    with tenant_scope(desk.tenant):
        (card,) = Card.objects.filter(subject_id=item.pk)
        edited = edit_plan(card.pk, user=approver, calls=[{"tool": "act", "args": {"order": "H-1", "note": 45}}])
    assert _note_of(edited) == ("1", "45")
    assert edited.reads == [{"book": "orders", "key": "H-1", "revision": 2}]


def test_cards_about_one_record_are_found_by_each_other(desk: Desk) -> None:
    first, second, other = desk.waiting(30), desk.waiting(40), desk.propose(note(40, "H-3"))
    with tenant_scope(desk.tenant):
        one, two = Card.objects.get(subject_id=first.pk), Card.objects.get(subject_id=second.pk)
        apart = Card.objects.get(subject_id=other.work_item_id)
        assert cards.cards_sharing_records(one) == [two]
        assert cards.cards_sharing_records(apart) == []
