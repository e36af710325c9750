"""What holds the pages together, in a real browser: the palette, the line and what stands in for it, no connection."""

from __future__ import annotations

import re
from typing import Any

from playwright.async_api import Page, WebSocketRoute, expect

from apps.approvals.enums import Risk
from kernel.tenancy import in_thread
from tests.e2e.console import log_in
from tests.factories.cards import batch, make_kind
from tests.factories.console import make_card

PHONE = {"viewport": {"width": 375, "height": 812}, "has_touch": True}
INTERVAL = 16_000


async def test_palette_leads_somewhere_with_the_keyboard_alone(
    web: str, open_page: Any, tenant: Any, owner: Any
) -> None:
    card = await in_thread(make_card, tenant, intent="Refund the lamp")
    page = await log_in(open_page, web, owner, "/console/activity/")
    await page.keyboard.press("Control+k")
    field = page.get_by_role("combobox")
    await expect(field).to_be_focused()
    await page.keyboard.type("lamp")
    await expect(page.get_by_role("option", name="Refund the lamp")).to_have_attribute("aria-selected", "true")
    await page.keyboard.press("Enter")
    await page.wait_for_url(f"**/console/review/{card.pk}/")


async def test_keys_of_the_page_rest_while_the_palette_is_open(
    web: str, open_page: Any, tenant: Any, owner: Any
) -> None:
    await in_thread(make_card, tenant)
    page = await log_in(open_page, web, owner, "/console/review/")
    await page.keyboard.press("Control+k")
    await page.keyboard.type("a3?")
    await expect(page.get_by_role("combobox")).to_have_value("a3?")
    await page.keyboard.press("Escape")
    await expect(page.locator("#palette")).to_be_hidden()
    await expect(page.get_by_role("button", name="Change the address")).to_be_visible()


async def test_title_of_the_tab_counts_what_waits(web: str, open_page: Any, tenant: Any, owner: Any) -> None:
    page = await log_in(open_page, web, owner, "/console/activity/")
    name = await page.title()
    assert not name.startswith("(")
    for number in (1, 2):
        await in_thread(make_card, tenant)
        await expect(page).to_have_title(f"({number}) {name}")
    await page.locator("#rail-insights").click()
    await expect(page).to_have_title(re.compile(r"^\(2\) Insights"))


async def _without_a_line(page: Page) -> None:
    """From now on nobody answers at the socket; the page's clock can be put forward."""

    async def refuse(line: WebSocketRoute) -> None:
        await line.close(code=1012)

    await page.clock.install()
    await page.route_web_socket("**/ws/console/", refuse)
    await page.reload()
    async with page.expect_response("**/console/rail/**"):
        await page.clock.run_for(5_000)


async def test_pages_without_a_line_keep_up_by_asking(web: str, open_page: Any, tenant: Any, owner: Any) -> None:
    page = await log_in(open_page, web, owner, "/console/review/")
    await _without_a_line(page)
    await in_thread(make_card, tenant, intent="Refund the lamp")
    await page.clock.run_for(INTERVAL)
    await expect(page.locator("#intent")).to_have_text("Refund the lamp")
    await expect(page.locator("#review-count")).to_have_text("1")
    await expect(page.locator("#offline")).to_be_hidden()


async def test_no_connection_at_all_shows_a_page_of_its_own(web: str, open_page: Any, tenant: Any, owner: Any) -> None:
    page = await log_in(open_page, web, owner, "/console/review/", service_workers="allow")
    await page.evaluate("navigator.serviceWorker.ready.then(() => true)")
    await page.reload()
    await page.context.set_offline(True)
    await page.goto(f"{web}/console/inbox/")
    await expect(page.get_by_role("heading")).to_have_text("No connection")
    assert await page.evaluate("caches.keys().then((names) => names.length)") == 1
    await page.context.set_offline(False)
    await page.get_by_role("link", name="Try again").click()
    await expect(page.locator("#rail")).to_be_visible()
    open_page.errors.clear()  # the browser reports what did not arrive


async def test_body_of_a_long_card_scrolls_by_itself_on_a_phone(
    web: str, open_page: Any, tenant: Any, owner: Any
) -> None:
    """Spec 0.5.3: at most 300 px at 375 px, whatever a card has to say."""
    card = await in_thread(make_card, tenant, risk=Risk.MEDIUM, rationale="Maria moved. " * 60)
    page = await log_in(open_page, web, owner, f"/console/review/{card.pk}/", **PHONE)
    body = page.locator("#card > .body")
    box = await body.bounding_box()
    assert box
    assert box["height"] <= 300
    await expect(body).to_have_attribute("tabindex", "0")


async def test_login_that_ran_out_leads_back_to_the_card(web: str, open_page: Any, tenant: Any, owner: Any) -> None:
    card = await in_thread(make_card, tenant)
    page = await log_in(open_page, web, owner, f"/console/review/{card.pk}/")
    await page.context.clear_cookies(name="sessionid")
    await page.get_by_role("button", name="Change the address").click()
    await expect(page.locator("#unanswered")).to_be_visible()
    await page.fill("#username", owner.email)
    await page.fill("#password", "a-long-password")
    await page.get_by_role("button", name="Log in").click()
    await page.wait_for_url(f"**/console/review/{card.pk}/")
    await expect(page.get_by_role("button", name="Change the address")).to_be_visible()
    open_page.errors.clear()  # the browser reports the 401


async def test_whole_of_a_mixed_batch_waits_for_every_tick(web: str, open_page: Any, tenant: Any, owner: Any) -> None:
    card = await in_thread(make_kind, tenant, "batch_review", **batch(3))
    page = await log_in(open_page, web, owner, f"/console/review/{card.pk}/")
    await page.get_by_role("button", name="Archive all 3").click()
    await page.get_by_role("button", name="Confirm").click()
    await expect(page.locator("#card [role=alert]")).to_contain_text("1 line is not ticked")
    await page.get_by_role("checkbox", name="Ticket T-2").check()
    await page.get_by_role("button", name="Archive all 3").click()
    await page.get_by_role("button", name="Confirm").click()
    await expect(page.locator("#decided")).to_contain_text("Approved")
    open_page.errors.clear()  # the browser reports the 409
