"""Undo in the demo: a changed address is restored by the demo's own skill."""

from __future__ import annotations

from typing import Any

import pytest

from apps.approvals.models import Card
from apps.guard.models import ToolCall
from apps.skills.models import Record
from apps.work.models import Batch, WorkItem
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope
from llm.calls import PlannedCall
from silas_platform import demo
from tests.factories.batches import answer, card_of, carry_out
from tests.factories.skills import install
from tests.factories.work import Desk, adopt

POLICY, OTHER = "HM-20418", "TR-51190"
GOAL = """---
id: goal
type: goal
title: Serve policyholders
schedule: always_on
skills: [meridian-desk]
access_levels:
  verified: {tools: [update_address]}
---
Be kind.
"""
# What stays on a row for whoever looks later: what stood there last, and since when it is as it is.
HISTORY = ("previous_address", "address_since")


@pytest.fixture
def meridian(tenant: Any) -> Desk:
    install(tenant, demo.SKILLS / "meridian-desk")
    with tenant_scope(tenant):
        demo.load_records(demo.FOLDER / "meridian-insurance")
    return adopt(tenant, GOAL)


def rows(desk: Desk) -> dict[str, dict[str, Any]]:
    """Every policy without its history."""
    with tenant_scope(desk.tenant):
        found = dict(Record.objects.filter(book="policies").values_list("key", "data"))
    return {key: {name: value for name, value in row.items() if name not in HISTORY} for key, row in found.items()}


def move(policy: str, address: str) -> PlannedCall:
    return PlannedCall("update_address", {"policy": policy, "address": address})


def moved(desk: Desk, user: Any, *calls: PlannedCall) -> WorkItem:
    """Approved, carried out and verified."""
    access = frozenset({"update_address"})
    item_id = desk.propose(*calls, access=access, subject="C-1001", gates=()).work_item_id
    assert item_id
    desk.decide(desk.item(item_id), user)
    carry_out(desk)
    return desk.item(item_id)


def offer(desk: Desk, item: WorkItem) -> Card:
    with tenant_scope(desk.tenant):
        return card_of(desk, Batch.objects.get(undo_of=item.pk).pk)


def undo(desk: Desk, item: WorkItem, user: Any) -> None:
    answer(desk, offer(desk, item), user, "approve")
    carry_out(desk)


BRISTOL, LEEDS = "1 Quay Street, Bristol BS1 4DJ", "Flat 3, 41 Canal Wharf, Leeds LS11 5PS"


def test_change_of_address_is_undone_by_one_tap(meridian: Desk, approver: Any) -> None:
    before = rows(meridian)
    item = moved(meridian, approver, move(POLICY, BRISTOL))
    between = rows(meridian)[POLICY]["address"]
    undo(meridian, item, approver)
    assert between == BRISTOL
    assert rows(meridian) == before


def test_two_changes_of_one_address_are_undone_last_first(meridian: Desk, approver: Any) -> None:
    """The skill refuses any other order: it restores an address only in place of the one it set."""
    before = rows(meridian)
    item = moved(meridian, approver, move(POLICY, BRISTOL), move(OTHER, BRISTOL), move(POLICY, LEEDS))
    between = rows(meridian)[POLICY]["address"]
    undo(meridian, item, approver)
    with tenant_scope(meridian.tenant):
        made = ToolCall.objects.filter(tool="restore_address", state="executed").count()
    assert between == LEEDS
    assert rows(meridian) == before
    assert made == 3


def test_undone_change_is_not_undone_again(meridian: Desk, approver: Any, owner: Any) -> None:
    item = moved(meridian, approver, move(POLICY, BRISTOL))
    card = offer(meridian, item)
    undo(meridian, item, approver)
    after = rows(meridian)
    with pytest.raises(SilasError) as refused:
        answer(meridian, card, owner, "approve")
    carry_out(meridian)
    assert refused.value.code == "card_decided"
    assert rows(meridian) == after


def test_change_that_somebody_followed_by_another_stays(meridian: Desk, approver: Any) -> None:
    item = moved(meridian, approver, move(POLICY, BRISTOL))
    moved(meridian, approver, move(POLICY, LEEDS))
    undo(meridian, item, approver)
    assert rows(meridian)[POLICY]["address"] == LEEDS
