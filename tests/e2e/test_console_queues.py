"""Look after the queues in a real browser."""

from __future__ import annotations

from typing import Any

from playwright.async_api import expect

from apps.bus import services
from kernel.tenancy import in_scope, in_thread
from tests.e2e.console import log_in
from tests.factories.bus import make_message


def _bury(tenant: Any) -> None:
    message = make_message(tenant, scope_id="dead", queue="runtime")
    lease = services.lease("runtime", consumer="worker:desk:1", scope_id=message.scope_id)
    assert lease is not None
    services.dead_letter(lease, "tool_failure")


async def test_message_that_failed_is_tried_again_with_one_press(
    web: str, open_page: Any, tenant: Any, owner: Any
) -> None:
    await in_scope(tenant, _bury, tenant)
    page = await log_in(open_page, web, owner, "/console/queues/")
    await page.get_by_role("button", name="Try again").click()
    await expect(page.locator("#line-runtime td").first).to_have_text("1")


async def test_what_comes_in_appears_by_itself(web: str, open_page: Any, tenant: Any, owner: Any) -> None:
    page = await log_in(open_page, web, owner, "/console/queues/")
    await in_thread(make_message, tenant, queue="runtime")
    await expect(page.locator("#line-runtime td").first).to_have_text("1")


async def test_queues_are_found_from_any_page(web: str, open_page: Any, tenant: Any, owner: Any) -> None:
    page = await log_in(open_page, web, owner, "/console/activity/")
    await page.locator("#rail-settings").click()
    await page.get_by_role("main").get_by_role("link", name="Queues").click()
    await expect(page.locator("h1")).to_have_text("Queues")
