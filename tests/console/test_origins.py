"""A card says beside each value where it comes from, and marks what an outsider or the assistant decided."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.urls import reverse

from apps.approvals.models import Card
from apps.console.pages.review.origins import origins_of
from apps.work.models import WorkItem
from apps.work.provenance import Tracer
from kernel.provenance import Origin, Source, Sources, Traced
from kernel.tenancy import tenant_scope
from llm.calls import PlannedCall
from tests.factories.console import browser
from tests.factories.work import PROJECT, TYPED, Desk, make_desk

TYPED_AT = Traced(Origin.VISITOR, "seq:1", at="2026-03-02T14:02:00+00:00")
NASTY = "evil.example</dd><script>“\u202e"
CALL = PlannedCall("act", {"order": "H-1", "note": 50})


@pytest.fixture
def desk(tenant: Any, tmp_path: Path) -> Desk:
    return make_desk(tenant, tmp_path, decides=["note"])


def card(desk: Desk, *sources: Source, **fields: Any) -> Card:
    proposal = desk.propose(CALL, **{"tracing": Tracer(Sources(sources), TYPED_AT), **fields})
    assert proposal.work_item_id
    return desk.card(desk.item(proposal.work_item_id))


def page(user: Any, card: Card) -> str:
    return str(browser(user).get(reverse("console-card", args=[card.pk])).content.decode())


def test_value_of_the_customer_says_its_message_and_time(desk: Desk, approver: Any) -> None:
    shown = page(approver, card(desk, Source(TYPED_AT, "50 on H-1")))
    assert "From the customer&#x27;s message" in shown
    assert "#line-1" in shown
    assert "A customer, in a message to the assistant" in shown
    assert "Check this" not in shown


def test_value_from_outside_is_marked_with_its_source(desk: Desk, approver: Any) -> None:
    page_of = Source(Traced(Origin.TOOL, "call:1", "evil.example"), "note 50")
    shown = page(approver, card(desk, Source(TYPED_AT, "on H-1"), page_of))
    assert "From an external tool: evil.example" in shown
    assert shown.count("Check this") == 1
    assert "after reading “evil.example”" in shown
    assert "A customer, in a message" not in shown


def test_value_of_the_assistants_own_is_marked(desk: Desk, approver: Any) -> None:
    shown = page(approver, card(desk, Source(TYPED_AT, "on H-1")))
    assert "Written by the assistant" in shown
    assert shown.count("Check this") == 1
    assert "Not every value came from the customer" in shown


def test_name_of_a_hostile_source_is_shown_as_text(desk: Desk, approver: Any) -> None:
    shown = page(approver, card(desk, Source(Traced(Origin.TOOL, "call:1", NASTY), "note 50")))
    assert "<script>“" not in shown
    assert "\u202e" not in shown


def test_card_of_a_project_shows_the_values_of_every_task(desk: Desk) -> None:
    found = card(desk, plan_markdown=PROJECT, tracing=TYPED)
    with tenant_scope(desk.tenant):
        origins = origins_of(found)
    assert origins is not None
    assert [line.value for line in origins.lines] == ["31", "H-1", "31", "H-3"]


def test_plan_that_is_no_longer_what_the_card_binds_is_not_shown(desk: Desk) -> None:
    found = card(desk, plan_markdown=PROJECT, tracing=TYPED)
    with tenant_scope(desk.tenant):
        for task in WorkItem.objects.filter(parent__pk=found.subject_id):
            task.plan = task.plan.replace('"origin\\":\\"visitor', '"origin\\":\\"records')
            task.save(update_fields=["plan"])
        assert origins_of(found) is None
