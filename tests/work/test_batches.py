"""Reviewed batches: exactly what is listed is bound, and exactly what is bound runs (spec 5.2.4, 5.9)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from apps.approvals.models import Card, TokenUse
from apps.approvals.tokens.payloads import batch_payload, payload_hash
from apps.audit.models import AuditEntry
from apps.bus.enums import Kind
from apps.bus.models import QueueMessage
from apps.console.pages.review.presenter import buttons_of
from apps.work.attempt_jobs import gates_of
from apps.work.enums import BatchStatus, WorkReason
from apps.work.models import Batch, BatchItem, ReviewPolicy, WorkItem
from apps.work.services import cancellation, edits
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope
from tests.factories.batches import again, answer, card_of, carry_out, found, items, notes, route, undoable_desk
from tests.factories.work import ARGS, CAP, Desk
from tests.rivals import race


@pytest.fixture
def desk(tenant: Any, tmp_path: Path) -> Desk:
    return undoable_desk(tenant, tmp_path)


def proposed(desk: Desk, *numbers: int) -> Batch:
    (batch,) = route(desk, *(found(number) for number in numbers)).batches
    return batch


def approved(desk: Desk, user: Any, *numbers: int) -> Batch:
    batch = proposed(desk, *numbers)
    answer(desk, card_of(desk, batch.pk), user, "approve")
    return again(desk, batch)


# --- put together


def test_sure_things_are_chunked_by_the_house_s_size(desk: Desk) -> None:
    batches = route(desk, *(found(number) for number in range(1, 13))).batches
    assert [len(items(desk, batch)) for batch in batches] == [10, 2]


def test_card_says_once_what_its_approval_does(desk: Desk) -> None:
    (batch,) = route(desk, found(1), found(2)).batches
    words = {button.label for button in buttons_of(card_of(desk, batch.pk))}
    assert {"Approve, carry out 2 actions", "Decline, change nothing"} <= words


def test_deployment_may_have_smaller_batches(desk: Desk) -> None:
    with tenant_scope(desk.tenant):
        ReviewPolicy.objects.create(deployment=desk.deployment, default_size=3)
    batches = route(desk, *(found(number) for number in range(1, 8))).batches
    assert [len(items(desk, batch)) for batch in batches] == [3, 3, 1]


def test_deployment_may_ask_for_more_confidence(desk: Desk) -> None:
    with tenant_scope(desk.tenant):
        ReviewPolicy.objects.create(deployment=desk.deployment, high_min=0.99)
    routed = route(desk, found(1))
    assert len(routed.batches) == 0
    assert len(routed.drafts) == 1


@pytest.mark.parametrize(
    ("confidence", "where", "kind"),
    [(0.6, "drafts", "plan"), (0.2, "attention", "decision"), (None, "teaching", "decision")],
)
def test_thing_that_is_not_sure_gets_a_card_of_its_own(
    desk: Desk, confidence: float | None, where: str, kind: str
) -> None:
    (item,) = getattr(route(desk, found(1, confidence=confidence)), where)
    assert card_of(desk, item.pk).kind == kind


@pytest.mark.parametrize("confidence", [0.95, 0.6, 0.2, None])
def test_card_that_nobody_waits_for_waits_for_a_day(desk: Desk, confidence: float | None) -> None:
    """A conversation's plan is decided within minutes; what a goal found at night is reviewed by day."""
    route(desk, found(1, confidence=confidence))
    with tenant_scope(desk.tenant):
        card = Card.objects.get()
    assert (card.expires_at - card.created_at).total_seconds() == settings.CARD_SECONDS["calm"]


def test_routing_twice_leads_to_the_same_cards(desk: Desk, other_tenant: Any, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = undoable_desk(other_tenant, tmp_path / "other")
    things = [found(number, confidence=share) for number, share in enumerate((0.9, 0.5, 0.49, None, 0.85), start=1)]
    assert _shape(desk, things) == _shape(other, things)


def _shape(desk: Desk, things: list[Any]) -> list[tuple[str, str]]:
    route(desk, *things)
    with tenant_scope(desk.tenant):
        return list(Card.objects.order_by("created_at").values_list("kind", "intent"))


def test_policy_comes_before_confidence(desk: Desk) -> None:
    """A gate of the goal forbids notes above 100 at any confidence."""
    with tenant_scope(desk.tenant):
        goal = WorkItem.objects.get(pk=desk.goal_id)
        spec = goal.spec.model_copy(update={"gates": [CAP]})
        WorkItem.objects.filter(pk=goal.pk).update(plan=spec.as_text())
    wild = found(1).model_copy(update={"args": {"order": "H-1", "note": 101}, "confidence": 1.0})
    routed = route(desk, wild)
    assert routed.refused == ["gate_blocked"]
    assert routed.batches == []


def test_gates_of_the_goal_that_found_it_hold_to_the_end(desk: Desk, approver: Any) -> None:
    """For a goal that governs no conversation: when the card is edited, and again when the call is made."""
    with tenant_scope(desk.tenant):
        desk.deployment.active_goal_id = None
        desk.deployment.save(update_fields=["active_goal_id"])
        spec = WorkItem.objects.get(pk=desk.goal_id).spec.model_copy(update={"gates": [CAP]})
        WorkItem.objects.filter(pk=desk.goal_id).update(plan=spec.as_text())
    (item,) = route(desk, found(1, confidence=0.6)).drafts
    calls = [{"tool": "act", "args": {"order": "H-1", "note": 101}}]
    with tenant_scope(desk.tenant), pytest.raises(SilasError) as refused:
        edits.edit_plan(card_of(desk, item.pk).pk, user=approver, calls=calls)
    with tenant_scope(desk.tenant):
        assert refused.value.code == "edit_refused"
        assert CAP in gates_of(desk.item(item.pk))


def test_thing_that_is_under_way_is_not_asked_about_twice(desk: Desk) -> None:
    route(desk, found(1))
    assert route(desk, found(1)).refused == ["waiting_already"]


def test_card_lists_what_is_bound_in_its_order(desk: Desk) -> None:
    batch = proposed(desk, 1, 2, 3)
    card = card_of(desk, batch.pk)
    ids = [item.plan_hash for item in items(desk, batch)]
    payload = batch_payload(goal_id=str(desk.goal_id), action="act", item_ids=ids)
    assert card.payload == payload
    assert card.payload_hash == payload_hash(payload)


# --- what a search may say


def test_thing_that_no_card_can_show_stops_none_of_the_others(tenant: Any, tmp_path: Path) -> None:
    worded = {**ARGS, "properties": {**ARGS["properties"], "words": {"type": "string"}}}
    desk = undoable_desk(tenant, tmp_path, args=worded)
    args = {"order": "H-1", "note": 11, "words": "x" * 25_000}
    routed = route(desk, found(1, confidence=0.6).model_copy(update={"args": args}), found(2, confidence=0.6))
    with tenant_scope(tenant):
        left = WorkItem.objects.get(requested_by=f"goal:{desk.goal_id}", status="blocked")
    assert routed.refused == ["card_body_unfit"]
    assert [item.title for item in routed.drafts] == ["Change H-2"]
    assert left.reason == WorkReason.TOOL


@pytest.mark.parametrize("confidence", [0.6, 0.2])
def test_thing_without_a_reason_gets_the_house_s(desk: Desk, confidence: float) -> None:
    routed = route(desk, found(1, confidence=confidence, reason=" \n "))
    (item,) = routed.drafts + routed.attention
    assert card_of(desk, item.pk).rationale.strip()


def test_batch_of_a_tool_with_a_long_description_is_asked_about(tenant: Any, tmp_path: Path) -> None:
    desk = undoable_desk(tenant, tmp_path, description="Change an order." * 18)
    assert len(route(desk, found(1)).batches) == 1


# --- approved


def test_approved_batch_carries_out_every_item(desk: Desk, approver: Any) -> None:
    batch = approved(desk, approver, 1, 2, 3)
    carry_out(desk)
    assert notes(desk, 1, 2, 3) == [11, 12, 13]
    assert again(desk, batch).status == BatchStatus.FINISHED


def test_approval_of_a_batch_is_spent_once(desk: Desk, approver: Any) -> None:
    batch = approved(desk, approver, 1, 2)
    carry_out(desk)
    with tenant_scope(desk.tenant):
        uses = list(TokenUse.objects.values_list("bound_hash", flat=True))
    assert uses == [card_of(desk, again(desk, batch).pk).payload_hash]


def test_item_whose_plan_was_changed_after_the_approval_does_not_run(desk: Desk, approver: Any) -> None:
    batch = approved(desk, approver, 1, 2)
    first = items(desk, batch)[0]
    with tenant_scope(desk.tenant):
        WorkItem.objects.filter(pk=first.pk).update(plan=first.plan.replace('note\\":11', 'note\\":99'))
    carry_out(desk)
    assert notes(desk, 1, 2) == [None, 12]
    assert desk.item(first.pk).last_error == "not_covered"


def test_item_that_was_slipped_into_an_approved_batch_does_not_run(desk: Desk, approver: Any) -> None:
    batch, other = approved(desk, approver, 1), proposed(desk, 2)
    (slipped,) = items(desk, other)
    with tenant_scope(desk.tenant):
        WorkItem.objects.filter(pk=slipped.pk).update(batch=batch, approval_token=batch.approval_token)
        QueueMessage.objects.filter(queue="executor").update(task_id=slipped.pk)
    carry_out(desk)
    assert notes(desk, 2) == [None]
    assert desk.item(slipped.pk).last_error == "not_covered"


def test_line_that_was_added_to_an_approved_batch_breaks_its_approval(desk: Desk, approver: Any) -> None:
    batch, other = approved(desk, approver, 1), proposed(desk, 2)
    (slipped,) = items(desk, other)
    with tenant_scope(desk.tenant):
        BatchItem.objects.create(
            batch=batch, position=2, work_item=slipped, item_id=slipped.plan_hash, title=slipped.title
        )
        WorkItem.objects.filter(pk=slipped.pk).update(batch=batch, approval_token=batch.approval_token)
    carry_out(desk)
    assert notes(desk, 1, 2) == [None, None]
    assert items(desk, batch)[0].last_error == "plan_hash_mismatch"


def test_two_approvers_start_a_batch_once(desk: Desk, approver: Any, owner: Any) -> None:
    batch = proposed(desk, 1)
    card = card_of(desk, batch.pk)
    outcomes = race(lambda: answer(desk, card, approver, "approve"), lambda: answer(desk, card, owner, "approve"))
    carry_out(desk)
    assert sum(isinstance(outcome, SilasError) for outcome in outcomes) == 1
    assert desk.order("H-1").revision == 2


# --- not approved


@pytest.mark.parametrize("choice", ["decline"])
def test_declined_batch_changes_nothing(desk: Desk, approver: Any, choice: str) -> None:
    batch = proposed(desk, 1, 2)
    answer(desk, card_of(desk, batch.pk), approver, choice)
    carry_out(desk)
    reasons = {item.reason for item in items(desk, batch)}
    assert notes(desk, 1, 2) == [None, None]
    assert again(desk, batch).status == BatchStatus.DECLINED
    assert reasons == {WorkReason.DECLINED}


# --- a selection


def select(desk: Desk, batch: Batch, user: Any, *places: int) -> None:
    ids = [items(desk, batch)[place].plan_hash for place in places]
    answer(desk, card_of(desk, batch.pk), user, "edit_selection", selected=ids)


def test_selection_runs_nothing_before_an_approval_of_its_own(desk: Desk, approver: Any) -> None:
    batch = proposed(desk, 1, 2, 3)
    select(desk, batch, approver, 0, 2)
    carry_out(desk)
    assert notes(desk, 1, 2, 3) == [None] * 3
    assert again(desk, batch).status == BatchStatus.PROPOSED


def test_selection_is_a_new_payload_with_a_new_card(desk: Desk, approver: Any) -> None:
    batch = proposed(desk, 1, 2, 3)
    old = card_of(desk, batch.pk)
    select(desk, batch, approver, 2, 0)
    new = card_of(desk, batch.pk)
    assert new.payload["item_ids"] == [old.payload["item_ids"][2], old.payload["item_ids"][0]]
    assert new.payload_hash != old.payload_hash
    assert new.supersedes_id == old.pk


def test_card_of_the_whole_batch_is_void_after_a_selection(desk: Desk, approver: Any) -> None:
    batch = proposed(desk, 1, 2, 3)
    old = card_of(desk, batch.pk)
    select(desk, batch, approver, 0)
    with pytest.raises(SilasError):
        answer(desk, old, approver, "approve")
    carry_out(desk)
    assert notes(desk, 1, 2, 3) == [None] * 3


def test_approved_selection_runs_exactly_what_was_ticked(desk: Desk, approver: Any) -> None:
    batch = proposed(desk, 1, 2, 3)
    left_out = items(desk, batch)[1]
    select(desk, batch, approver, 0, 2)
    answer(desk, card_of(desk, batch.pk), approver, "approve")
    carry_out(desk)
    assert notes(desk, 1, 2, 3) == [11, None, 13]
    assert desk.item(left_out.pk).reason == WorkReason.LEFT_OUT


def test_approved_selection_is_owed_in_the_order_of_the_picks(desk: Desk, approver: Any) -> None:
    batch = proposed(desk, 1, 2, 3)
    picked = [items(desk, batch)[place].pk for place in (2, 0)]
    select(desk, batch, approver, 2, 0)
    answer(desk, card_of(desk, batch.pk), approver, "approve")
    assert [item.pk for item in items(desk, batch)] == picked
    with tenant_scope(desk.tenant):
        owed = QueueMessage.objects.filter(kind=Kind.EXECUTION_REQUEST, task_id__in=picked).order_by("position")
        assert [message.task_id for message in owed] == picked
    carry_out(desk)
    assert notes(desk, 1, 2, 3) == [11, None, 13]


@pytest.mark.parametrize("choose", [lambda ids: ids, lambda ids: [], lambda ids: ["0" * 64], lambda ids: [*ids, "x"]])
def test_selection_that_is_no_strict_subset_is_refused(desk: Desk, approver: Any, choose: Any) -> None:
    batch = proposed(desk, 1, 2)
    ids = [item.plan_hash for item in items(desk, batch)]
    with pytest.raises(SilasError, match="Tick some"):
        answer(desk, card_of(desk, batch.pk), approver, "edit_selection", selected=choose(ids))


# --- one by one


def test_draft_without_words_is_an_ordinary_plan(desk: Desk, approver: Any) -> None:
    (item,) = route(desk, found(1, confidence=0.6)).drafts
    answer(desk, card_of(desk, item.pk), approver, "approve")
    carry_out(desk)
    assert notes(desk, 1) == [11]


@pytest.mark.parametrize("confidence", [0.2, None])
def test_answer_to_an_uncertain_thing_runs_nothing_by_itself(
    desk: Desk, approver: Any, confidence: float | None
) -> None:
    routed = route(desk, found(1, confidence=confidence))
    (item,) = routed.attention + routed.teaching
    answer(desk, card_of(desk, item.pk), approver, "prepare", freetext="Looks right.")
    carry_out(desk)
    assert notes(desk, 1) == [None]
    assert card_of(desk, item.pk).kind == "plan"
    assert desk.item(item.pk).status == "pending"


def test_uncertain_thing_that_was_prepared_runs_after_its_own_approval(desk: Desk, approver: Any) -> None:
    (item,) = route(desk, found(1, confidence=0.2)).attention
    answer(desk, card_of(desk, item.pk), approver, "prepare")
    answer(desk, card_of(desk, item.pk), approver, "approve")
    carry_out(desk)
    assert notes(desk, 1) == [11]


def test_batch_whose_items_were_all_called_off_comes_to_an_end(desk: Desk, approver: Any, agent: Any) -> None:
    batch = proposed(desk, 1)
    with tenant_scope(desk.tenant):
        cancellation.cancel_for_staff(items(desk, batch)[0].pk, user=agent)
    answer(desk, card_of(desk, batch.pk), approver, "approve")
    carry_out(desk)
    assert again(desk, batch).status == BatchStatus.FINISHED
    assert notes(desk, 1) == [None]


def test_every_verdict_is_on_record(desk: Desk, approver: Any) -> None:
    approved(desk, approver, 1)
    carry_out(desk)
    with tenant_scope(desk.tenant):
        told = AuditEntry.objects.filter(event="batch_moved").order_by("seq").values_list("data", flat=True)
        assert list(told) == ['{"status":"running"}', '{"status":"finished"}']


@pytest.mark.usefixtures("approver")
def test_batch_of_another_tenant_does_not_exist(desk: Desk, other_tenant: Any) -> None:
    batch = proposed(desk, 1)
    with tenant_scope(other_tenant):
        assert not Batch.objects.filter(pk=batch.pk).exists()
