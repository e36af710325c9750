"""Look after work in a real browser: what is under way, a project's tasks, a goal's looks; calling off."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import expect

from apps.work.models import GoalCycle, WorkItem
from kernel.clock import now
from kernel.tenancy import in_thread, tenant_scope
from llm.calls import call_block
from tests.e2e.console import log_in
from tests.factories.batches import carry_out, undoable_desk
from tests.factories.work import Desk, make_desk, note

SHOTS = os.environ.get("SILAS_SHOTS", "")
PHONE = {"viewport": {"width": 375, "height": 760}, "has_touch": True}


def project() -> str:
    blocks = "\n".join(
        f"````task\n---\nid: {name}\ntype: task\ntitle: {name}\n{after}---\n{call_block(note(31, order))}\n````"
        for name, order, after in (("one", "H-1", ""), ("two", "H-3", "depends_on: [one]\n"))
    )
    return f"---\nid: p\ntype: project\ntitle: P\ntasks: [one, two]\n---\nDo all.\n\n{blocks}"


@pytest.fixture
def desk(tenant: Any, tmp_path: Path) -> Desk:
    return make_desk(tenant, tmp_path)


def _project(desk: Desk, user: Any) -> WorkItem:
    proposal = desk.propose(plan_markdown=project())
    assert proposal.work_item_id
    desk.decide(desk.item(proposal.work_item_id), user)
    return desk.item(proposal.work_item_id)


def _cycles(desk: Desk) -> None:
    with tenant_scope(desk.tenant):
        goal = WorkItem.objects.get(pk=desk.goal_id)
        for outcome in ("healthy", "asked"):
            GoalCycle.objects.create(goal=goal, due_at=now(), outcome=outcome, ran_at=now(), results=[{}])


async def _shot(page: Any, name: str) -> None:
    if SHOTS:
        await page.screenshot(path=f"{SHOTS}/{name}.png", full_page=True)


async def test_project_is_called_off_from_its_page(web: str, open_page: Any, desk: Desk, owner: Any) -> None:
    item = await in_thread(_project, desk, owner)
    page = await log_in(open_page, web, owner, "/console/work/")
    await _shot(page, "work-wide")
    await page.get_by_role("link", name=item.title).click()
    await expect(page.get_by_role("heading", name="Tasks")).to_be_visible()
    await _shot(page, "work-project-wide")
    await page.get_by_role("button", name="Cancel task").click()
    await expect(page.locator(".pagehead .state")).to_have_text("failed")
    await _shot(page, "work-project-over")


async def test_looks_at_a_goal_are_listed_on_a_phone(web: str, open_page: Any, desk: Desk, owner: Any) -> None:
    await in_thread(_cycles, desk)
    page = await log_in(open_page, web, owner, f"/console/work/{desk.goal_id}/", **PHONE)
    await expect(page.get_by_text("all checks passed")).to_be_visible()
    await _shot(page, "work-goal-phone")
    wide = await page.evaluate("document.documentElement.scrollWidth > window.innerWidth")
    assert not wide


def _done(tenant: Any, folder: Path, user: Any) -> Desk:
    desk = undoable_desk(tenant, folder)
    desk.approved(user)
    carry_out(desk)
    return desk


async def test_key_that_approves_undoes_nothing(
    web: str, open_page: Any, tenant: Any, owner: Any, tmp_path: Path
) -> None:
    """The result comes up by itself where somebody has just pressed A, perhaps once more than was needed."""
    await in_thread(_done, tenant, tmp_path, owner)
    page = await log_in(open_page, web, owner, "/console/review/")
    await expect(page.locator("#undoable")).to_contain_text("Done: Change H-1")
    await page.keyboard.press("a")
    await page.wait_for_timeout(500)
    await expect(page.locator("#undoable")).to_contain_text("Done: Change H-1")
    await page.keyboard.press("u")
    await expect(page.locator("#decided")).to_be_visible()


async def test_what_was_done_is_taken_back_with_one_tap(
    web: str, open_page: Any, tenant: Any, owner: Any, tmp_path: Path
) -> None:
    desk = await in_thread(_done, tenant, tmp_path, owner)
    page = await log_in(open_page, web, owner, "/console/review/")
    await expect(page.locator("#undoable")).to_contain_text("Done: Change H-1")
    await _shot(page, "undo-offered")
    await page.get_by_role("button", name="Undo").click()
    await expect(page.locator("#decided")).to_be_visible()
    await in_thread(carry_out, desk)
    assert await in_thread(lambda: desk.order().data["note"]) == 0
