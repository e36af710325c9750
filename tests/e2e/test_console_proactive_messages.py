"""A proactive message is written, seen in its preview and found in the list, in a real browser."""

from __future__ import annotations

from typing import Any

from playwright.async_api import expect

from tests.e2e.console import log_in
from tests.e2e.test_console_inbox_rules import _look


async def test_message_is_written_and_previewed(web: str, open_page: Any, deployment: Any, owner: Any) -> None:
    page = await log_in(open_page, web, owner, f"/console/studio/{deployment.pk}/")
    await page.get_by_role("link", name="Proactive messages").click()
    await expect(page.get_by_text("No messages yet.")).to_be_visible()
    await page.get_by_role("link", name="New message").click()
    await page.get_by_label("Message", exact=True).fill("Questions about our prices?")
    await expect(page.locator("[data-nudge]")).to_have_text("Questions about our prices?")
    await page.get_by_label("Pages", exact=True).fill("/pricing*")
    await page.get_by_label("Active", exact=True).check()
    await _look(page, "proactive-new")
    await page.get_by_role("button", name="Create message").click()
    await expect(page.get_by_role("link", name="Questions about our prices?")).to_be_visible()
    await _look(page, "proactive-list")
