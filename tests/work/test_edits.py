"""A plan with edited values needs a new approval, is shown as it is now, and never runs on the old one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from apps.approvals.cards.services import answer_card
from apps.approvals.models import OPEN_STATUSES, ApprovalToken, Card
from apps.approvals.queries import face_hash
from apps.gates.services import save_gate
from apps.work import services
from apps.work.enums import WorkItemStatus
from apps.work.models import WorkItem
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope
from llm.calls import PlannedCall, call_block, parse_calls, replace_calls
from tests.factories.work import CAP, Desk, make_desk, note


@pytest.fixture
def desk(tenant: Any, tmp_path: Path) -> Desk:
    return make_desk(tenant, tmp_path)


def edit(desk: Desk, item: WorkItem, user: Any, *calls: PlannedCall) -> Card | SilasError:
    try:
        with tenant_scope(desk.tenant):
            return services.edit_plan(
                asked(desk, item).pk, user=user, calls=[{"tool": call.tool, "args": call.args} for call in calls]
            )
    except SilasError as refused:
        return refused


def asked(desk: Desk, item: WorkItem) -> Card:
    """Return the card that asks now."""
    with tenant_scope(desk.tenant):
        card: Card = Card.objects.get(subject_id=item.pk, status__in=OPEN_STATUSES)
        return card


def code(refused: Card | SilasError) -> str:
    assert isinstance(refused, SilasError)
    return refused.code


def test_edited_plan_asks_anew_with_its_values(desk: Desk, owner: Any) -> None:
    item = desk.waiting(50)
    edit(desk, item, owner, note(60))
    assert [call.args for call in desk.item(item.pk).spec.calls] == [note(60).args]


def test_edited_card_shows_the_new_values(desk: Desk, owner: Any) -> None:
    item = desk.waiting(50)
    new = edit(desk, item, owner, note(60))
    assert isinstance(new, Card)
    (call,) = new.details["calls"]
    assert call["tool"] == "act"
    assert call["args"] == note(60).args
    assert call["runs"] == "By the script of test-desk in a sandbox without network"


def test_edit_is_no_approval(desk: Desk, owner: Any) -> None:
    edit(desk, desk.waiting(50), owner, note(60))
    with tenant_scope(desk.tenant):
        assert not ApprovalToken.objects.exists()


def test_edit_beyond_what_policy_allows_changes_nothing(desk: Desk, owner: Any) -> None:
    item = desk.waiting(50)
    with tenant_scope(desk.tenant):
        save_gate(CAP, deployment_id=desk.deployment.pk)
    assert code(edit(desk, item, owner, note(5000))) == "edit_refused"
    assert desk.card(item).is_open
    assert desk.item(item.pk).spec.calls == (note(50),)


def test_edit_to_what_the_tool_does_not_take_is_refused(desk: Desk, owner: Any) -> None:
    call = PlannedCall("act", {"order": "H-1", "note": "sixty"})
    assert code(edit(desk, desk.waiting(50), owner, call)) == "edit_refused"


def test_edit_with_hidden_characters_is_refused(desk: Desk, owner: Any) -> None:
    assert code(edit(desk, desk.waiting(50), owner, note(50, "H-1\u202e"))) == "edit_refused"


@pytest.mark.parametrize("calls", [[], [note(60), note(61)], [PlannedCall("look", note(60).args)]])
def test_edit_to_other_calls_is_refused(desk: Desk, owner: Any, calls: list[PlannedCall]) -> None:
    assert code(edit(desk, desk.waiting(50), owner, *calls)) == "edit_unfit"


def test_edit_that_changes_nothing_is_refused(desk: Desk, owner: Any) -> None:
    assert code(edit(desk, desk.waiting(50), owner, note(50))) == "edit_changes_nothing"


@pytest.mark.parametrize("role", ["agent", "viewer", "stranger"])
def test_plan_is_edited_by_nobody_who_could_not_decide(desk: Desk, role: str, request: Any) -> None:
    assert code(edit(desk, desk.waiting(50), request.getfixturevalue(role), note(60))) == "approver_required"


def test_edited_plan_is_approved_and_runs_with_the_new_values(desk: Desk, owner: Any) -> None:
    item = desk.waiting(50)
    edit(desk, item, owner, note(60))
    with tenant_scope(desk.tenant):
        answer_card(asked_in(item).pk, user=owner, choice="approve", face=face_hash(asked_in(item)))
    desk.work()
    assert desk.item(item.pk).status == WorkItemStatus.DONE
    assert desk.order().data["note"] == 60


def asked_in(item: WorkItem) -> Card:
    card: Card = Card.objects.get(subject_id=item.pk, status__in=OPEN_STATUSES)
    return card


def test_calls_are_put_in_their_places() -> None:
    body = "First\n\n" + call_block(PlannedCall("a", {})) + "\n\nthen\n\n" + call_block(PlannedCall("b", {})) + "\nlast"
    calls = (PlannedCall("a", {"x": "```call\n"}), PlannedCall("b", {"y": 2}))
    assert parse_calls(replace_calls(body, calls)) == calls
    assert replace_calls(body, calls).endswith("last")
