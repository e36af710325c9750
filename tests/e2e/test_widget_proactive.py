"""Proactive messages on a customer's page: when they appear, that they move nothing, and what becomes of them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from playwright.async_api import Locator, Page, expect

from apps.sessions.models import ChronicleEntry
from apps.visitors import proactive_messages
from kernel.tenancy import in_scope
from tests.e2e.axe import violations
from tests.e2e.conftest import OpenPage, Site
from tests.e2e.widget import Widget
from tests.factories.tenants import make_deployment

TEXT = "Questions about our prices?"


@pytest.fixture
def place(site: Site, web: str, tenant: Any) -> Any:
    made = make_deployment(tenant, allowed_origins=[site.origin])
    site.body = (
        "<!doctype html><html lang=en><meta name=viewport content='width=device-width'><title>Site</title>"
        "<main><h1>Prices</h1><p>Ten a month.</p></main>"
        f'<script src="{web}/widget/v1/loader.js" data-deployment="{made.public_key}" async></script>'
    )
    return made


@pytest.fixture
def other(tenant: Any) -> Any:
    return make_deployment(tenant)


async def _put(place: Any, **fields: Any) -> Any:
    def make() -> Any:
        what = {"text": TEXT, "seconds": 0, "is_active": True, **fields}
        return proactive_messages.create(place, actor="user:test", **what)

    return await in_scope(place.tenant_id, make)


def _nudge(page: Page) -> Locator:
    return page.locator("[data-silas] .nudge")


async def _is_not_shown(page: Page) -> None:
    await expect(Widget(page).bubble).to_be_visible()
    await asyncio.sleep(1.5)
    await expect(_nudge(page)).to_be_hidden()


def _said(place: Any) -> list[tuple[str, str]]:
    rows = ChronicleEntry.objects.filter(session__deployment=place, kind="message").order_by("seq")
    return list(rows.values_list("sender", "text"))


async def test_message_appears_above_the_button_and_moves_nothing(open_page: OpenPage, site: Site, place: Any) -> None:
    await _put(place, seconds=1)
    page = await open_page(site.origin)
    before = await page.locator("h1").bounding_box()
    await expect(_nudge(page)).to_have_text(TEXT)
    await expect(_nudge(page)).to_have_attribute("role", "status")
    assert await page.locator("h1").bounding_box() == before
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    await expect(Widget(page).panel).to_be_hidden()
    message, button = await _nudge(page).bounding_box(), await Widget(page).bubble.bounding_box()
    assert message is not None
    assert button is not None
    assert message["y"] + message["height"] < button["y"]
    assert await violations(page) == []


async def test_message_on_a_phone_stays_inside_the_screen(open_page: OpenPage, site: Site, place: Any) -> None:
    await _put(place, text="A longer offer of help with choosing the right one of our plans. " * 3)
    page = await open_page(site.origin, viewport={"width": 390, "height": 700})
    await expect(_nudge(page)).to_be_visible()
    box = await _nudge(page).bounding_box()
    assert box is not None
    assert box["x"] >= 16
    assert box["x"] + box["width"] <= 374


async def test_message_that_is_selected_is_the_first_line_and_recorded_with_the_answer(
    open_page: OpenPage, site: Site, place: Any
) -> None:
    await _put(place)
    page = await open_page(site.origin)
    widget = Widget(page)
    await _nudge(page).get_by_role("button", name=TEXT).click()
    await expect(widget.bot).to_have_text([TEXT])
    await expect(_nudge(page)).to_be_hidden()
    assert await in_scope(place.tenant_id, _said, place) == []
    await widget.say("Yes, please")
    await expect(widget.log.locator(".mine[data-seq='2']")).to_have_text("Yes, please")
    await expect(widget.bot.first).to_have_text(TEXT)
    await expect(widget.bot.filter(has_text=TEXT)).to_have_count(1)
    assert (await in_scope(place.tenant_id, _said, place))[:2] == [("bot", TEXT), ("visitor", "Yes, please")]


async def test_message_that_was_dismissed_does_not_come_back(open_page: OpenPage, site: Site, place: Any) -> None:
    await _put(place)
    page = await open_page(site.origin)
    await _nudge(page).get_by_role("button", name="Dismiss this message").click()
    await expect(_nudge(page)).to_be_hidden()
    await expect(Widget(page).panel).to_be_hidden()
    await page.reload()
    await _is_not_shown(page)


async def test_message_for_other_pages_visitors_or_languages_is_not_shown(
    open_page: OpenPage, site: Site, place: Any
) -> None:
    await _put(place, page="/pricing*")
    await _put(place, audience="returning")
    await _put(place, audience="identified")
    await _put(place, language="de")
    await _put(place, is_active=False)
    await _is_not_shown(await open_page(site.origin))


async def test_message_appears_when_the_site_shows_its_page_without_loading_it(
    open_page: OpenPage, site: Site, place: Any
) -> None:
    await _put(place, page="/shop/*/cart")
    page = await open_page(site.origin)
    await _is_not_shown(page)
    await page.evaluate("history.pushState({}, '', '/shop/shoes/cart/?step=1')")
    await expect(_nudge(page)).to_have_text(TEXT)
    await page.evaluate("history.pushState({}, '', '/')")
    await expect(_nudge(page)).to_be_hidden()


async def test_message_of_another_chatbot_is_not_shown(open_page: OpenPage, site: Site, place: Any, other: Any) -> None:
    await _put(other)
    await _is_not_shown(await open_page(site.origin))


async def test_message_is_not_shown_while_the_chat_is_open(open_page: OpenPage, site: Site, place: Any) -> None:
    await _put(place, seconds=2)
    page = await open_page(site.origin)
    await Widget(page).open()
    await asyncio.sleep(2.5)
    await page.evaluate("Silas.close()")
    await _is_not_shown(page)


async def test_message_without_motion_appears_at_once(open_page: OpenPage, site: Site, place: Any) -> None:
    await _put(place)
    page = await open_page(site.origin, reduced_motion="reduce")
    await expect(_nudge(page)).to_be_visible()
    name = await _nudge(page).locator("button").first.evaluate("(node) => getComputedStyle(node).animationName")
    assert name == "none"


PATTERNS = {
    ("", "/anything"): True,
    ("/", "/"): True,
    ("/pricing", "/pricing"): True,
    ("/pricing", "/pricing/"): True,
    ("/pricing", "/pricing/plans"): False,
    ("/pricing*", "/pricing/plans"): True,
    ("/shop/*/cart", "/shop/a/b/cart"): True,
    ("/shop/*/cart", "/shop/cart"): False,
    ("/a*a", "/a"): False,
    ("*/cart", "/shop/cart"): True,
    ("shop.example.com/*", "/cart"): True,
    ("example.com/*", "/cart"): False,
    ("*.example.com/cart", "/cart"): True,
    ("/.*", "/pricing"): False,
}
MATCH = """async (cases) => {
  const main = document.querySelector("script").src;
  const { isOnPage } = await import(main.replace("main.js", "proactive.js"));
  return cases.map(([pattern, path]) => isOnPage(pattern, { host: "shop.example.com", path }));
}"""


async def test_star_in_a_page_stands_for_any_characters_and_nothing_else_does(
    open_page: OpenPage, web: str, deployment: Any
) -> None:
    page = await open_page(f"{web}/widget/v1/{deployment.public_key}/")
    found = await page.evaluate(MATCH, [list(case) for case in PATTERNS])
    assert dict(zip(PATTERNS, found, strict=True)) == PATTERNS
