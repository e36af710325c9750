"""A rule is made, checked against last week and activated, and acts on a visitor's message, in a real browser."""

from __future__ import annotations

import os
from typing import Any

from playwright.async_api import Page, expect

from apps.bus.enums import Kind
from apps.inbox import labels_and_replies
from kernel.tenancy import in_scope, in_thread
from tests.e2e.axe import violations
from tests.e2e.console import log_in
from tests.factories.bus import carry_out_due
from tests.factories.sessions import make_session, say

SHOTS = os.environ.get("SILAS_SHOTS", "")
SIZES = {"wide": (1366, 768), "narrow": (390, 812)}


async def _look(page: Page, name: str) -> None:
    """No rule of accessibility is broken, nothing is cut off at the side; pictures where they are asked for."""
    for size, (width, height) in SIZES.items():
        await page.set_viewport_size({"width": width, "height": height})
        assert await violations(page) == []
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        if SHOTS:
            await page.screenshot(path=f"{SHOTS}/{name}-{size}.png", full_page=True)
    await page.set_viewport_size({"width": 1366, "height": 768})


async def test_rule_is_made_checked_and_activated(web: str, open_page: Any, deployment: Any, owner: Any) -> None:
    await in_scope(deployment.tenant_id, labels_and_replies.save_label, owner, name="Refunds", colour="red")
    session = await in_thread(make_session, deployment)
    await in_thread(say, session, "I want a refund")
    page = await log_in(open_page, web, owner, "/console/inbox-rules/new/")
    await page.get_by_label("Name", exact=True).fill("Refunds to billing")
    await page.get_by_label("Condition 1", exact=True).select_option(label="Message text contains …")
    await page.get_by_label("Text of condition 1").fill("refund")
    await page.get_by_label("Step 1", exact=True).select_option(label="Add a label: Refunds")
    await _look(page, "rule-new")
    await page.get_by_role("button", name="Create rule").click()
    await expect(page.get_by_text("would have run on 1 conversation")).to_be_visible()
    await _look(page, "rule")
    await page.get_by_role("button", name="Activate").click()
    await expect(page.get_by_role("button", name="Deactivate")).to_be_visible()
    await in_thread(say, session, "Where is my refund")
    await carry_out_due(deployment.tenant_id, Kind.INBOX_RULES)
    await page.goto(f"{web}/console/inbox-rules/")
    await expect(page.get_by_text("Message text contains “refund”")).to_be_visible()
    await _look(page, "rules")
    await page.goto(f"{web}/console/activity/?show=everything")
    await expect(page.get_by_text("Rule “Refunds to billing” changed the labels")).to_be_visible()
