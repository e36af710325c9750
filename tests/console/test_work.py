"""The page about work: who sees it, what it says, who may call off and resume."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import time_machine
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from apps.approvals.models import Card
from apps.console.templatetags.console import status_in_words
from apps.work import queries
from apps.work.models import GoalCycle, WorkItem
from kernel.clock import now
from kernel.tenancy import tenant_scope
from llm.calls import call_block
from tests.factories.approvals import expire_cards
from tests.factories.batches import carry_out, undoable_desk
from tests.factories.console import browser
from tests.factories.work import Desk, make_desk, note

TASKS = "\n".join(
    f"````task\n---\nid: {name}\ntype: task\ntitle: {name}\n---\n{call_block(note(31, order))}\n````"
    for name, order in (("one", "H-1"), ("two", "H-3"))
)
PROJECT = f"---\nid: p\ntype: project\ntitle: P\ntasks: [one, two]\n---\nDo all.\n\n{TASKS}"


@pytest.fixture
def desk(tenant: Any, tmp_path: Path) -> Desk:
    return make_desk(tenant, tmp_path)


def expire(desk: Desk, **which: Any) -> WorkItem:
    """Let the time run out in which the item could be approved."""
    with tenant_scope(desk.tenant):
        end = max(Card.objects.values_list("expires_at", flat=True))
    with time_machine.travel(end + timedelta(seconds=1)):
        expire_cards(desk.tenant)
    with tenant_scope(desk.tenant):
        item = WorkItem.objects.get(**which)
    assert item.reason == "approval_expired"
    return item


def page(user: Any, item: WorkItem | None = None) -> str:
    address = reverse("console-work-item", args=[item.pk]) if item else reverse("console-work")
    return str(browser(user).get(address).content.decode())


@pytest.mark.parametrize(
    ("role", "status"), [("owner", 200), ("approver", 200), ("agent", 200), ("viewer", 200), ("stranger", 403)]
)
def test_work_is_seen_by_all_members(tenant: Any, role: str, status: int, request: pytest.FixtureRequest) -> None:
    assert browser(request.getfixturevalue(role)).get(reverse("console-work")).status_code == status


def test_work_without_a_login_leads_to_it(database: None) -> None:
    assert browser().get(reverse("console-work")).status_code == 302


def test_tenant_without_work_is_told_so(owner: Any) -> None:
    assert "Nothing in progress." in page(owner)


def test_waiting_item_and_its_goal_are_listed(desk: Desk, owner: Any) -> None:
    desk.waiting()
    text = page(owner)
    assert "Change H-1" in text
    assert "Look after orders" in text


def test_item_that_nobody_has_decided_says_what_it_waits_for(desk: Desk, owner: Any) -> None:
    item = desk.waiting()
    assert "waiting for approval" in page(owner)
    assert "Waiting for a decision" in page(owner, item)


def test_approved_item_says_that_it_waits_for_a_worker(desk: Desk, owner: Any) -> None:
    item = desk.approved(owner)
    assert "queued" in page(owner)
    assert "queued" in page(owner, item)


def test_task_of_a_project_waits_for_its_turn(desk: Desk, owner: Any) -> None:
    proposal = desk.propose(plan_markdown=PROJECT)
    assert proposal.work_item_id
    project = desk.item(proposal.work_item_id)
    with tenant_scope(desk.tenant):
        (first, _) = queries.children_of(project)
    assert "queued" in page(owner, project)
    assert "queued" in page(owner, first)


def test_item_shows_what_an_approval_binds(desk: Desk, owner: Any) -> None:
    item = desk.waiting()
    assert item.plan_hash in page(owner, item)


def test_done_item_shows_its_proof(desk: Desk, approver: Any) -> None:
    item = desk.approved(approver)
    desk.work()
    assert "done: passed" in page(approver, item)


def test_words_of_a_plan_are_only_text(desk: Desk, owner: Any) -> None:
    item = desk.waiting()
    with tenant_scope(desk.tenant):
        WorkItem.objects.filter(pk=item.pk).update(title="<script>alert(1)</script>", last_error="<b>x")
    assert "<script>alert" not in page(owner, item)


def test_cycle_of_a_goal_is_listed(desk: Desk, owner: Any) -> None:
    goal = desk.item(desk.goal_id)
    with tenant_scope(desk.tenant):
        GoalCycle.objects.create(goal=goal, due_at=now(), outcome="healthy", ran_at=now())
    assert "all checks passed" in page(owner, goal)


def test_item_of_another_tenant_is_not_found(desk: Desk, other_tenant: Any, tmp_path: Path, owner: Any) -> None:
    (tmp_path / "other").mkdir()
    theirs = make_desk(other_tenant, tmp_path / "other").waiting()
    assert browser(owner).get(reverse("console-work-item", args=[theirs.pk])).status_code == 404


@pytest.mark.parametrize(
    ("role", "status", "after"), [("agent", 302, "failed"), ("viewer", 403, "pending"), ("stranger", 403, "pending")]
)
def test_calling_off_is_for_those_who_answer(
    desk: Desk, role: str, status: int, after: str, request: pytest.FixtureRequest
) -> None:
    item = desk.waiting()
    answer = browser(request.getfixturevalue(role)).post(reverse("console-work-cancel", args=[item.pk]))
    assert answer.status_code == status
    assert desk.item(item.pk).status == after


@pytest.mark.parametrize("word", ["cancel", "resume"])
def test_word_about_another_tenants_item_is_not_found(
    desk: Desk, other_tenant: Any, tmp_path: Path, owner: Any, word: str
) -> None:
    (tmp_path / "other").mkdir()
    theirs = make_desk(other_tenant, tmp_path / "other").waiting()
    assert browser(owner).post(reverse(f"console-work-{word}", args=[theirs.pk])).status_code == 404


@pytest.mark.parametrize("word", ["cancel", "resume"])
def test_word_by_a_link_is_refused(desk: Desk, owner: Any, word: str) -> None:
    item = desk.waiting()
    assert browser(owner).get(reverse(f"console-work-{word}", args=[item.pk])).status_code == 405


def test_resuming_what_is_not_parked_is_a_conflict(desk: Desk, owner: Any) -> None:
    assert browser(owner).post(reverse("console-work-resume", args=[desk.goal_id])).status_code == 409


def test_viewer_sees_no_button(desk: Desk, viewer: Any) -> None:
    assert "Cancel task" not in page(viewer, desk.waiting())


def test_list_asks_no_more_for_more_items(desk: Desk, owner: Any) -> None:
    counts = []
    for value in (30, 31, 32):
        desk.waiting(value)
        with CaptureQueriesContext(
            connection,
        ) as asked:
            page(owner)
        counts.append(len(asked))
    assert len(set(counts[1:])) == 1


def test_request_that_was_not_decided_in_time_is_expired_and_not_blocked(desk: Desk, owner: Any) -> None:
    item = expire(desk, pk=desk.waiting().pk)
    expired = '<span class="state expired">expired</span>'
    assert expired in page(owner)
    assert expired in page(owner, item)
    assert ">blocked<" not in page(owner)
    found = browser(owner).get(reverse("console-palette"), {"q": "Change H-1"}).content.decode()
    assert "expired" in found
    assert "blocked" not in found
    listed = browser(owner).get("/api/v1/work-items", {"reason": "approval_expired"}).json()["work_items"]
    assert [line["id"] for line in listed] == [str(item.pk)]
    assert browser(owner).get("/api/v1/work-items", {"reason": "halted"}).json()["work_items"] == []


def test_offer_to_undo_that_lapsed_is_expired_and_not_blocked(tenant: Any, tmp_path: Path, approver: Any) -> None:
    desk = undoable_desk(tenant, tmp_path)
    item = desk.approved(approver)
    carry_out(desk)
    offer = expire(desk, follow_up_of=item.pk)
    assert '<span class="state expired">expired</span>' in page(approver, offer)
    assert "Undo: Change H-1" not in page(approver)
    assert "blocked" not in browser(approver).get(reverse("console-palette"), {"q": "Undo"}).content.decode()


@pytest.mark.parametrize(
    ("status", "due", "said"),
    [
        ("failed", True, "not met yet"),
        ("healthy", True, "healthy"),
        ("pending", True, "not checked yet"),
        ("pending", False, "active"),
        ("blocked", False, "ended"),
    ],
)
def test_goal_says_how_its_aim_stands_and_not_that_it_failed(status: str, due: bool, said: str) -> None:
    assert status_in_words(WorkItem(type="goal", status=status, due_at=now() if due else None)) == said
