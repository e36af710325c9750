"""A team is set up, a handover is assigned to who is there, and a macro answers it, in a real browser."""

from __future__ import annotations

import os
from typing import Any

import pytest
from playwright.async_api import Page, expect

from apps.bus.enums import Kind
from apps.inbox import labels_and_replies
from apps.sessions import person_wanted
from apps.sessions.locks import lock_session
from kernel.tenancy import in_scope, in_thread, tenant_scope
from tests.e2e.axe import violations
from tests.e2e.console import log_in
from tests.factories.bus import carry_out_due
from tests.factories.sessions import make_session, say

SHOTS = os.environ.get("SILAS_SHOTS", "")
SIZES = {"wide": (1366, 768), "narrow": (375, 812)}


@pytest.fixture
def deployment(deployment: Any) -> Any:
    """One whose bot says nothing, so that no list moves by itself."""
    with tenant_scope(deployment.tenant_id):
        deployment.enabled = False
        deployment.save(update_fields=["enabled"])
    return deployment


async def _look(page: Page, name: str) -> None:
    """No rule of accessibility is broken, wide and narrow, light and dark; pictures where they are asked for."""
    for size, (width, height) in SIZES.items():
        await page.set_viewport_size({"width": width, "height": height})
        for scheme in ("light", "dark"):
            await page.emulate_media(color_scheme="dark" if scheme == "dark" else "light", reduced_motion="reduce")
            assert await violations(page) == []
            if SHOTS:
                await page.screenshot(path=f"{SHOTS}/{name}-{size}-{scheme}.png")
    await page.set_viewport_size({"width": 1366, "height": 768})
    await page.emulate_media(color_scheme="light")


def _want(session: Any) -> None:
    with tenant_scope(session.tenant_id):
        person_wanted.want_person(lock_session(session.pk), queue="damage", because=person_wanted.ASKED)


async def test_team_assigns_a_handover_and_a_macro_answers_it(
    web: str, open_page: Any, deployment: Any, owner: Any
) -> None:
    await in_scope(deployment.tenant_id, labels_and_replies.save_label, owner, name="Refunds", colour="red")
    page = await log_in(open_page, web, owner, "/console/teams/new/")
    await page.get_by_label("Name", exact=True).fill("Claims")
    await page.get_by_label("Queues").fill("damage")
    await page.get_by_label("Who gets a new conversation").select_option("least_load")
    await page.get_by_label(owner.display_name, exact=True).check()
    for day in ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"):
        await page.get_by_label(day).fill("00:00-12:00, 12:00-24:00")
    await _look(page, "team")
    await page.get_by_role("button", name="Create team").click()
    await expect(page.get_by_role("heading", name="Claims")).to_be_visible()

    await page.goto(f"{web}/console/macros/new/")
    await page.get_by_label("Name", exact=True).fill("Refund")
    for number, pick in enumerate(("take_over:", "priority:high", "reply:text"), start=1):
        await page.get_by_label(f"Step {number}", exact=True).select_option(pick)
    await page.get_by_label("Text of step 3").fill("Hello {visitor name}, we are on it.")
    await _look(page, "macro")
    await page.get_by_role("button", name="Create macro").click()
    await expect(page.get_by_role("link", name="Refund")).to_be_visible()
    await _look(page, "macros")

    session = await in_thread(make_session, deployment)
    await in_thread(say, session, "My window is broken")
    await in_thread(_want, session)
    await carry_out_due(deployment.tenant_id, Kind.DESK_ROUTING)
    await page.goto(f"{web}/console/teams/")
    await expect(page.get_by_text("Available", exact=True)).to_be_visible()
    await _look(page, "teams")
    await page.goto(f"{web}/console/inbox/{session.pk}/?tab=mine")
    await expect(page.locator("#desk-state")).to_contain_text("Assigned to you")
    await expect(page.locator("#desk-state")).to_contain_text("Claims")
    await _look(page, "conversation")

    await page.locator("#pick-macro > summary").click()
    await page.locator("#pick-macro").get_by_role("link", name="Refund").click()
    await expect(page.get_by_role("heading", name="What this macro will do")).to_be_visible()
    await _look(page, "macro-run")
    await page.get_by_role("button", name="Run macro").press("Enter")
    await expect(page.locator("#reply-text")).to_have_value("Hello, we are on it.")
    await expect(page.locator("#desk-state")).to_contain_text("Priority: High")
