"""The frame of the console in a real browser: one left edge and one width, the rail, the account menu, Settings.

With SILAS_SHOTS=<folder> the frame is also photographed.
"""

from __future__ import annotations

import os
from typing import Any

import pytest
from playwright.async_api import Page, expect

from apps.console.navigation import PAGES
from apps.tenants.models import Membership
from kernel.tenancy import in_thread, tenant_scope
from tests.e2e.axe import violations
from tests.e2e.console import log_in
from tests.factories.console import make_card
from tests.factories.sessions import make_session, say
from tests.factories.tenants import make_deployment

SHOTS = os.environ.get("SILAS_SHOTS", "")
PHONE = {"viewport": {"width": 375, "height": 812}, "has_touch": True}
LAPTOP = {"viewport": {"width": 1366, "height": 768}}
# The Inbox fills the window with its three columns, and Django's pages have a frame of their own.
OWN_FRAME = ("console-inbox", "admin:index")
# The laptop's comes last: axe reads the page at it.
WIDTHS = (1440, 1366)
_PLACE = """() => {
  const main = document.querySelector("#main"), style = getComputedStyle(main), box = main.getBoundingClientRect();
  const width = box.width - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
  return [document.querySelector("h1").getBoundingClientRect().left, Math.round(width)];
}"""


async def _shot(page: Page, name: str) -> None:
    if SHOTS:
        await page.screenshot(path=f"{SHOTS}/{name}.png")


async def test_every_page_passes_every_rule_of_axe_and_keeps_the_place_of_title_and_content(
    web: str, open_page: Any, owner: Any
) -> None:
    page = await log_in(open_page, web, owner, "/console/insights/", **LAPTOP)
    expected = {width: await _place(page, width) for width in WIDTHS}
    wrong, moved = [], {}
    for place in PAGES:
        if place.name == "admin:index":
            continue
        await page.goto(f"{web}{place.address}")
        for width in () if place.name in OWN_FRAME else WIDTHS:
            found = await _place(page, width)
            if any(abs(one - other) > 1 for one, other in zip(found, expected[width], strict=True)):
                moved[f"{place.name} {width}"] = found
        for each in await violations(page):
            wrong += [f"{place.name}: {each['id']} at {node['target']}" for node in each["nodes"]]
    assert moved == {}, f"expected {expected}"
    assert wrong == []


async def _place(page: Page, width: int) -> list[float]:
    """Where the title begins and how wide the content is in a window of this width."""
    await page.set_viewport_size({"width": width, "height": 768})
    found: list[float] = await page.evaluate(_PLACE)
    return found


async def test_badge_stands_beside_the_name_and_never_on_the_icon(
    web: str, open_page: Any, tenant: Any, owner: Any
) -> None:
    await in_thread(make_card, tenant)
    page = await log_in(open_page, web, owner, "/console/insights/", **LAPTOP)
    link = page.get_by_role("link", name="Review 1 open")
    await expect(link).to_be_visible()
    for width in (1366, 1100, 375):
        await page.set_viewport_size({"width": width, "height": 768})
        icon, count = await link.locator("svg").bounding_box(), await link.locator(".count").bounding_box()
        assert icon
        assert count
        over = icon["x"] < count["x"] + count["width"] and count["x"] < icon["x"] + icon["width"]
        assert not (over and icon["y"] < count["y"] + count["height"] and count["y"] < icon["y"] + icon["height"]), (
            width
        )
        await _shot(page, f"rail-{width}")


async def test_names_are_seen_from_1200_pixels_up_and_as_tooltips_below(web: str, open_page: Any, owner: Any) -> None:
    page = await log_in(open_page, web, owner, "/console/insights/", viewport={"width": 1200, "height": 768})
    name = page.locator("#rail-contacts .name")
    assert (await name.evaluate("one => getComputedStyle(one).clipPath")) == "none"
    await page.set_viewport_size({"width": 1199, "height": 768})
    assert (await name.evaluate("one => getComputedStyle(one).clipPath")) != "none"
    await page.locator("#rail-contacts").hover()
    assert (await name.evaluate("one => getComputedStyle(one).clipPath")) == "none"
    await expect(page.get_by_role("link", name="Contacts")).to_be_visible()


@pytest.mark.parametrize("size", [LAPTOP, PHONE], ids=["laptop", "phone"])
async def test_account_menu_fits_the_window_and_closes(
    web: str, open_page: Any, other_tenant: Any, owner: Any, size: dict[str, Any]
) -> None:
    def joined() -> None:
        with tenant_scope(other_tenant):
            Membership.objects.create(user=owner, role="owner")

    await in_thread(joined)
    page = await log_in(open_page, web, owner, "/console/insights/", **size)
    summary, menu = page.locator("#account > summary"), page.locator("#account > .menu")
    await summary.click()
    box = await menu.bounding_box()
    assert box
    assert box["x"] >= 0
    assert box["y"] >= 0
    assert box["x"] + box["width"] <= size["viewport"]["width"]
    assert box["y"] + box["height"] <= size["viewport"]["height"]
    await expect(menu.get_by_role("button", name=f"Switch to {other_tenant.name}")).to_be_visible()
    await _shot(page, f"account-{size['viewport']['width']}")
    assert [each["id"] for each in await violations(page)] == []
    await page.keyboard.press("Escape")
    await expect(menu).to_be_hidden()
    await expect(summary).to_be_focused()
    await summary.click()
    await expect(menu).to_be_visible()
    await page.mouse.click(size["viewport"]["width"] // 2 if size is LAPTOP else 20, 40)
    await expect(menu).to_be_hidden()


async def test_account_menu_is_walked_with_the_keyboard(web: str, open_page: Any, owner: Any) -> None:
    page = await log_in(open_page, web, owner, "/console/insights/", **LAPTOP)
    await page.locator("#account > summary").focus()
    await page.keyboard.press("Enter")
    await page.keyboard.press("ArrowDown")
    await expect(page.get_by_role("link", name="My account")).to_be_focused()
    await page.keyboard.press("End")
    await expect(page.get_by_role("button", name="Log out")).to_be_focused()
    await page.keyboard.press("ArrowDown")
    await expect(page.get_by_role("link", name="My account")).to_be_focused()


async def test_theme_is_kept_in_the_browser_and_system_gives_it_back(web: str, open_page: Any, owner: Any) -> None:
    page = await log_in(open_page, web, owner, "/console/insights/", color_scheme="light", **LAPTOP)
    background = "getComputedStyle(document.body).backgroundColor"
    light = await page.evaluate(background)
    await page.locator("#account > summary").click()
    await page.get_by_role("button", name="Dark").click()
    await expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    await page.wait_for_url("**/console/insights/")
    dark = await page.evaluate(background)
    assert dark != light
    await page.goto(f"{web}/console/activity/")
    assert await page.evaluate(background) == dark
    await page.locator("#account > summary").click()
    await page.get_by_role("button", name="System").click()
    await expect(page.locator("html")).not_to_have_attribute("data-theme", "dark")
    assert await page.evaluate(background) == light


async def test_language_changes_at_once_and_stays_on_the_page(web: str, open_page: Any, owner: Any) -> None:
    page = await log_in(open_page, web, owner, "/console/insights/", **LAPTOP)
    await page.locator("#account > summary").click()
    await page.get_by_label("Language").select_option("de")
    await expect(page.locator("html")).to_have_attribute("lang", "de")
    assert page.url == f"{web}/console/insights/"


async def test_menu_stays_open_when_the_counts_are_drawn_anew(
    web: str, open_page: Any, tenant: Any, owner: Any
) -> None:
    page = await log_in(open_page, web, owner, "/console/insights/", **LAPTOP)
    await page.locator("#account > summary").click()
    await in_thread(make_card, tenant)
    await expect(page.locator("#review-count")).to_have_text("1")
    await expect(page.locator("#account > .menu")).to_be_visible()


async def test_settings_are_found_by_words_in_the_sidebar_and_the_palette(web: str, open_page: Any, owner: Any) -> None:
    page = await log_in(open_page, web, owner, "/console/gates/", **LAPTOP)
    sidebar = page.get_by_role("navigation", name="Settings")
    await expect(sidebar.get_by_role("link", name="Gates")).to_have_attribute("aria-current", "page")
    await _shot(page, "settings-gates-1366")
    await sidebar.get_by_role("searchbox").fill("rest tok")
    await expect(sidebar.get_by_role("listitem")).to_have_text(["API keys"])
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/console/api-keys/")
    await sidebar.get_by_role("searchbox").fill("zzz")
    await expect(sidebar.get_by_text("No settings found.")).to_be_visible()
    await page.keyboard.press("Control+k")
    await page.keyboard.type("web search tool")
    await expect(page.get_by_role("option", name="Web search")).to_have_attribute("aria-selected", "true")
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/console/tool-servers/#web-search")


async def test_settings_on_a_phone_are_a_list_that_opens_pages(web: str, open_page: Any, owner: Any) -> None:
    page = await log_in(open_page, web, owner, "/console/insights/", **PHONE)
    await page.locator("#account > summary").click()
    await page.get_by_role("link", name="Settings").click()
    await expect(page.get_by_role("heading", name="Settings")).to_be_visible()
    await _shot(page, "settings-375")
    await page.get_by_role("main").get_by_role("link", name="Members and roles").click()
    await expect(page.get_by_role("heading", name="Members and roles")).to_be_visible()
    await expect(page.get_by_role("navigation", name="Settings")).to_be_hidden()
    await page.locator(".to-settings").click()
    await page.wait_for_url("**/console/settings/")


async def test_day_to_day_pages_are_photographed(web: str, open_page: Any, tenant: Any, owner: Any) -> None:
    """The Inbox keeps its three columns beside the wide rail."""

    def talked() -> None:
        session = make_session(make_deployment(tenant))
        say(session, "Hello")

    await in_thread(talked)
    page = await log_in(open_page, web, owner, "/console/inbox/", **LAPTOP)
    box = await page.locator(".inbox > .list").bounding_box()
    assert box
    assert box["width"] >= 280
    for name in ("inbox", "settings", "account", "skills", "review", "work"):
        await page.goto(f"{web}/console/{name}/")
        await _shot(page, f"{name}-1366")
