"""Drafts: an approval binds the exact text; another text needs another approval (spec 5.9, 8.2)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from apps.approvals.models import Card
from apps.bus import services as bus
from apps.bus.enums import Kind, Queue
from apps.guard.models import Budget
from apps.tenants.models import Deployment
from apps.work.enums import WorkItemStatus, WorkReason
from apps.work.models import WorkItem
from apps.work.services import cancellation, drafts
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope
from tests.factories.batches import answer, card_of, carry_out, found, notes, route, undoable_desk
from tests.factories.bus import lease_any
from tests.factories.planning import MODEL, advice, body_of, course
from tests.factories.work import ARGS, Desk
from tests.fakes.openai_server import FakeOpenAI, Reply

OLD, NEW = "We have sent your lamp.", "Your lamp is on its way."

WORDED = {**ARGS, "properties": {**ARGS["properties"], "words": {"type": "string", "maxLength": 60}}}


@pytest.fixture
def writer(tenant: Any, tmp_path: Path) -> Desk:
    """A desk whose tool also sends a text."""
    return undoable_desk(tenant, tmp_path, args=WORDED)


def drafted(desk: Desk, **fields: Any) -> WorkItem:
    args = {"order": "H-1", "note": 11, "words": OLD}
    (item,) = route(desk, found(1, confidence=0.6, **fields).model_copy(update={"args": args})).drafts
    return item


def test_draft_shows_the_words_that_its_approval_binds(writer: Desk) -> None:
    card = card_of(writer, drafted(writer).pk)
    assert card.kind == "draft_review"
    assert card.body["draft"] == OLD
    assert card.payload["args"]["words"] == OLD


def test_approved_draft_runs(writer: Desk, approver: Any) -> None:
    answer(writer, card_of(writer, drafted(writer).pk), approver, "approve")
    carry_out(writer)
    assert notes(writer, 1) == [11]


def test_approval_of_a_draft_does_not_hold_for_other_words(writer: Desk, approver: Any) -> None:
    item = drafted(writer)
    answer(writer, card_of(writer, item.pk), approver, "approve")
    with tenant_scope(writer.tenant):
        WorkItem.objects.filter(pk=item.pk).update(plan=item.plan.replace("lamp", "boat"))
    carry_out(writer)
    assert notes(writer, 1) == [None]
    assert writer.item(item.pk).reason == WorkReason.NOT_APPROVED


def test_draft_that_was_worded_anew_asks_for_an_approval_of_its_own(writer: Desk, approver: Any) -> None:
    item = drafted(writer)
    old = card_of(writer, item.pk)
    answer(writer, old, approver, "edit", text="We have sent your blue lamp.")
    carry_out(writer)
    new = card_of(writer, item.pk)
    assert notes(writer, 1) == [None]
    assert new.body["draft"] == "We have sent your blue lamp."
    assert new.payload["plan_hash"] == writer.item(item.pk).plan_hash


def test_draft_that_was_worded_anew_runs_after_its_approval(writer: Desk, approver: Any) -> None:
    item = drafted(writer)
    answer(writer, card_of(writer, item.pk), approver, "edit", text="We have sent your blue lamp.")
    answer(writer, card_of(writer, item.pk), approver, "approve")
    carry_out(writer)
    assert notes(writer, 1) == [11]
    assert writer.item(item.pk).spec.calls[0].args["words"] == "We have sent your blue lamp."


def test_words_that_the_tool_does_not_take_are_refused(writer: Desk, approver: Any) -> None:
    card = card_of(writer, drafted(writer).pk)
    with pytest.raises(SilasError, match="incorrect"):
        answer(writer, card, approver, "edit", text="x" * 61)


def test_words_written_by_hand_keep_what_the_card_knew(writer: Desk, approver: Any) -> None:
    item = drafted(writer, reason="Its parcel was scanned.")
    answer(writer, card_of(writer, item.pk), approver, "edit", text="We have sent your blue lamp.")
    card = card_of(writer, item.pk)
    assert card.body["context"] == "Its parcel was scanned."
    assert card.rationale == "Its parcel was scanned."


def test_whoever_words_something_grave_by_hand_cannot_approve_it(
    tenant: Any, tmp_path: Path, approver: Any, owner: Any
) -> None:
    desk = undoable_desk(tenant, tmp_path, args=WORDED, risk="high")
    item = drafted(desk)
    answer(desk, card_of(desk, item.pk), approver, "edit", text="We have sent your blue lamp.")
    with pytest.raises(SilasError) as refused:
        answer(desk, card_of(desk, item.pk), approver, "approve")
    answer(desk, card_of(desk, item.pk), owner, "approve")
    assert refused.value.code == "own_request"
    assert desk.item(item.pk).approval_token_id is not None


# --- worded anew by the planner


@pytest.fixture
def helped(writer: Desk, planner: FakeOpenAI) -> Desk:
    """A desk whose planner is a model that can reword."""
    planner.replies = [advice(NEW)]
    with tenant_scope(writer.tenant):
        Deployment.objects.filter(pk=writer.deployment.pk).update(
            model_names={"proxy": "builtin:grounded", "planner": MODEL, "executor": "builtin:grounded"},
            environment_keys=True,
        )
    return writer


def rephrased(desk: Desk, user: Any, wish: str = "") -> Card:
    """Return the card that asks after the draft was reworded."""
    item = drafted(desk)
    answer(desk, card_of(desk, item.pk), user, "rephrase", freetext=wish)
    carry_out(desk)
    return card_of(desk, item.pk)


def test_rephrased_draft_comes_back_in_other_words(helped: Desk, approver: Any) -> None:
    card = rephrased(helped, approver)
    assert card.is_open is True
    assert card.body["draft"] == NEW
    assert card.payload["args"]["words"] == NEW


def test_rephrased_draft_binds_the_plan_with_the_new_words(helped: Desk, approver: Any) -> None:
    card = rephrased(helped, approver)
    item = helped.item(card.subject_id)
    assert card.payload["plan_hash"] == item.plan_hash
    assert item.spec.calls[0].args["words"] == NEW


def test_rephrased_draft_stands_in_the_place_of_the_one_before(helped: Desk, approver: Any) -> None:
    card = rephrased(helped, approver)
    with tenant_scope(helped.tenant):
        before = Card.objects.select_related("decision").get(pk=card.supersedes_id)
    assert before.body["draft"] == OLD
    assert before.decision.verdict == "edit_requested"


def test_rephrased_draft_runs_nothing_before_an_approval_of_its_own(helped: Desk, approver: Any) -> None:
    card = rephrased(helped, approver)
    before = notes(helped, 1)
    answer(helped, card, approver, "approve")
    carry_out(helped)
    assert before == [None]
    assert notes(helped, 1) == [11]


def test_remark_reaches_the_planner_and_the_next_reader(helped: Desk, planner: FakeOpenAI, approver: Any) -> None:
    card = rephrased(helped, approver, wish="Shorter, and mention the day")
    (asked,) = planner.requests
    assert "Shorter, and mention the day" in body_of(asked)
    assert OLD in body_of(asked)
    assert card.rationale == "Reworded at a colleague's request. “Shorter, and mention the day”"


def test_draft_may_be_rephrased_again(helped: Desk, planner: FakeOpenAI, approver: Any) -> None:
    card = rephrased(helped, approver)
    planner.replies = [advice("It is on its way to you.")]
    answer(helped, card, approver, "rephrase")
    carry_out(helped)
    assert card_of(helped, card.subject_id).body["draft"] == "It is on its way to you."


def test_rewording_is_paid_by_the_plan(helped: Desk, approver: Any) -> None:
    card = rephrased(helped, approver)
    assert course(helped, helped.item(card.subject_id)).used.tokens == 120


@pytest.mark.parametrize("said", ["x" * 61, "Your lamp\u202e is on its way.", "", OLD])
def test_words_that_cannot_be_sent_leave_the_draft_as_it_was(
    helped: Desk, planner: FakeOpenAI, approver: Any, said: str
) -> None:
    planner.replies = [advice(said)]
    card = rephrased(helped, approver)
    assert card.is_open is True
    assert card.body["draft"] == OLD
    assert card.rationale == drafts.BY_HAND


def test_provider_that_fails_leaves_the_draft_as_it_was(helped: Desk, planner: FakeOpenAI, approver: Any) -> None:
    planner.replies = [Reply(status=500)]
    card = rephrased(helped, approver)
    assert card.is_open is True
    assert card.body["draft"] == OLD


def test_budget_that_is_used_up_leaves_the_draft_as_it_was(helped: Desk, planner: FakeOpenAI, approver: Any) -> None:
    with tenant_scope(helped.tenant):
        Budget.objects.create(period="day", limit_usd=0)
    card = rephrased(helped, approver)
    assert card.is_open is True
    assert card.body["draft"] == OLD
    assert planner.requests == []


def test_house_without_a_model_says_that_the_words_are_the_same(writer: Desk, approver: Any) -> None:
    card = rephrased(writer, approver)
    assert card.is_open is True
    assert card.body["draft"] == OLD
    assert card.rationale == drafts.BY_HAND


def test_draft_that_was_called_off_meanwhile_asks_nobody(helped: Desk, approver: Any, agent: Any) -> None:
    item = drafted(helped)
    answer(helped, card_of(helped, item.pk), approver, "rephrase")
    with tenant_scope(helped.tenant):
        cancellation.cancel_for_staff(item.pk, user=agent)
    carry_out(helped)
    assert helped.item(item.pk).reason == WorkReason.CANCELLED
    assert card_of(helped, item.pk).status == "decided"


def test_draft_that_nobody_could_word_anew_ends_and_is_put_before_a_person(helped: Desk, approver: Any) -> None:
    item = drafted(helped)
    answer(helped, card_of(helped, item.pk), approver, "rephrase")
    with tenant_scope(helped.tenant):
        lease = lease_any(Queue.TRUSTED, kind=Kind.SYSTEM_EVENT, consumer="test", seconds=60)
        assert lease is not None
        bus.dead_letter(lease, "lease_expired")
    ended = helped.item(item.pk)
    assert ended.status == WorkItemStatus.BLOCKED
    assert ended.reason == WorkReason.LOST
