"""Look after the money in a real browser: told when it runs out, and work that waits let go on."""

from __future__ import annotations

from typing import Any

from playwright.async_api import expect

from kernel.tenancy import in_thread
from tests.console.test_spending import spend
from tests.e2e.console import log_in
from tests.factories.guard import make_budget


async def test_reached_limit_appears_by_itself_and_waiting_work_goes_on_with_one_press(
    web: str, open_page: Any, tenant: Any, owner: Any
) -> None:
    await in_thread(make_budget, tenant, "1")
    page = await log_in(open_page, web, owner, "/console/inbox/")
    await expect(page.locator("#rail-inbox")).to_be_visible()
    await in_thread(spend, tenant, "1")
    await page.locator("#rail-spending").click()
    await page.get_by_role("button", name="Resume waiting work").click()
    await expect(page.get_by_role("heading", name="Limit reached")).to_have_count(0)
