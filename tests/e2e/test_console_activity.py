"""Read what happened in a real browser, as it happens, and ask for its proof."""

from __future__ import annotations

from typing import Any

from playwright.async_api import expect

from kernel.tenancy import in_thread
from tests.e2e.console import log_in
from tests.factories.console import make_card


async def test_what_happens_appears_by_itself(web: str, open_page: Any, tenant: Any, owner: Any) -> None:
    page = await log_in(open_page, web, owner, "/console/activity/")
    await in_thread(make_card, tenant, intent="Pay the refund")
    await expect(page.locator("#story")).to_contain_text("Approval requested Pay the refund")


async def test_line_leads_to_its_card(web: str, open_page: Any, tenant: Any, owner: Any) -> None:
    await in_thread(make_card, tenant, intent="Pay the refund")
    page = await log_in(open_page, web, owner, "/console/activity/")
    mark = await page.locator(".timeline .mark.ask").first.bounding_box()
    assert mark, "a mark is a dot beside the words"
    assert mark["width"] < 12, "a mark is a dot beside the words"
    await page.get_by_role("link", name="Approval requested").click()
    await expect(page.locator("#intent")).to_have_text("Pay the refund")


async def test_chain_is_verified_on_request(web: str, open_page: Any, tenant: Any, owner: Any) -> None:
    await in_thread(make_card, tenant)
    page = await log_in(open_page, web, owner, "/console/activity/")
    await page.get_by_role("button", name="Verify now").click()
    await expect(page.locator("#verdict")).to_contain_text("Intact: all")


async def test_bundle_is_downloaded(web: str, open_page: Any, tenant: Any, owner: Any) -> None:
    page = await log_in(open_page, web, owner, "/console/activity/")
    async with page.expect_download() as download:
        await page.get_by_role("button", name="Export for an auditor").click()
    assert (await download.value).suggested_filename == f"audit-{tenant.slug}.jsonl"
