"""A fresh owner goes from a document to a chatbot that is simulated and released, and sees which release answered."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from django.urls import reverse
from playwright.async_api import Page, expect

from apps.sessions.models import ChatSession
from kernel.tenancy import in_scope
from tests.e2e.axe import violations
from tests.e2e.conftest import OpenPage, Site
from tests.e2e.console import log_in
from tests.e2e.widget import opened

WIDE, PHONE = {"width": 1366, "height": 768}, {"width": 390, "height": 844}
HOURS = """The bakery is in Mill Lane.

## Opening hours
The shop opens at eight in the morning and closes at six.

## Delivery
We deliver by bicycle within the city for two pounds.
"""


async def _picture(page: Page, name: str) -> None:
    """Kept where `SILAS_PICTURES` says."""
    if folder := os.environ.get("SILAS_PICTURES"):
        for size in (WIDE, PHONE):
            await page.set_viewport_size(size)
            await page.screenshot(path=Path(folder) / f"{name}-{size['width']}.png", full_page=True)
        await page.set_viewport_size(WIDE)


async def _set_up(page: Page, site: Site) -> None:
    await page.get_by_label("The built-in model").check()
    await page.get_by_role("button", name="Continue with this model").click()
    await page.get_by_text("Write text").click()
    await page.get_by_label("Title").fill("Bakery")
    await page.get_by_label("Text", exact=True).fill(HOURS)
    await page.get_by_role("button", name="Add text").click()
    await expect(page.locator("#intakes .chip")).to_have_text("Read")
    await page.get_by_role("button", name="Continue", exact=True).click()
    await page.get_by_label("Websites, one per line").fill(site.origin)
    await page.get_by_role("button", name="Allow and continue").click()
    site.body = f"<!doctype html><html lang=en><title>Bakery</title>{await page.inner_text('#snippet')}"
    await page.get_by_role("button", name="Finish and open settings").click()


async def _simulate(page: Page) -> None:
    """From the page of releases to a passed report, and back."""
    await page.get_by_role("button", name="Simulate this version").click()
    await expect(page.locator("#simulation h2").first).to_contain_text("Passed")
    await expect(page.locator("#simulation dl").first).to_contain_text("3 of 3 played")
    await page.get_by_role("link", name="Releases", exact=True).click()
    await expect(page.locator("#next")).to_contain_text("A simulation of exactly this version passed.")


async def _answer(open_page: OpenPage, site: Site) -> None:
    visitor = await opened(await open_page(site.origin))
    await visitor.say("When does the shop open?")
    await expect(visitor.bot.first).to_contain_text("eight in the morning")


def _newest_conversation() -> Any:
    return ChatSession.objects.filter(is_test=False).latest("created_at").pk


async def test_owner_goes_from_a_document_to_a_released_chatbot(
    web: str, worker: None, open_page: OpenPage, site: Site, tenant: Any, owner: Any
) -> None:
    page = await log_in(open_page, web, owner, "/console/begin/", viewport=WIDE)
    await _set_up(page, site)
    await page.get_by_role("link", name="Releases", exact=True).click()
    await expect(page.get_by_role("heading", name="No releases yet")).to_be_visible()
    releases = page.url
    await page.get_by_label("For all chatbots").select_option(label="Required")
    await page.get_by_role("button", name="Save", exact=True).click()
    await expect(page.get_by_label("Reason to publish without a passed simulation")).to_be_visible()
    await _picture(page, "1-releases-empty")

    await page.get_by_role("link", name="Make a suite").click()
    await _picture(page, "2-simulations-empty")
    await page.get_by_role("button", name="Make suite").click()
    await expect(page.get_by_role("row", name="From documents")).to_contain_text("3")
    await _picture(page, "3-simulations")
    assert await violations(page) == []

    await page.goto(releases)
    await page.get_by_role("button", name="Simulate this version").click()
    await expect(page.locator("#simulation h2").first).to_contain_text("Passed")
    await page.locator("#simulation details summary").first.click()
    await expect(page.locator("#simulation")).to_contain_text("3 of 3 played")
    await _picture(page, "4-report")
    assert await violations(page) == []
    await page.get_by_role("link", name="Releases", exact=True).click()
    await _picture(page, "5-releases-passed")
    await page.get_by_role("button", name="Publish release 1").click()
    await expect(page.locator("#releases li").first).to_contain_text("live, 100%")
    await _answer(open_page, site)

    await page.locator("#main").get_by_role("link", name="Settings", exact=True).click()
    await page.get_by_label("Greeting").fill("Good morning from Mill Lane")
    await page.get_by_role("button", name="Save", exact=True).click()
    await page.get_by_role("link", name="Review and publish").click()
    await _simulate(page)
    await page.get_by_label("Percent of new conversations").fill("30")
    await page.get_by_role("button", name="Publish release 2").click()
    await page.get_by_label("Share of release 2 in percent").fill("100")
    await _picture(page, "6-releases-shared")
    await page.locator("#releases li").first.get_by_role("button", name="Change share").click()
    await expect(page.locator("#releases li").first).to_contain_text("live, 100%")
    await _answer(open_page, site)

    conversation = await in_scope(tenant, _newest_conversation)
    await page.goto(f"{web}{reverse('console-conversation', args=[conversation])}")
    await expect(page.locator(".say.bot .saw")).to_contain_text("release 2")
    await _picture(page, "7-inbox")
