"""Decide in a real browser: presses, keys, the slide; what a colleague does meanwhile; a phone; a lost line."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from playwright.async_api import Page, WebSocketRoute, expect

from apps.approvals.cards.services import decide_card
from apps.approvals.enums import CardKind, Risk
from apps.approvals.models import Card
from kernel.tenancy import in_scope, in_thread
from tests.e2e.console import log_in
from tests.factories.cards import make_kind
from tests.factories.console import make_card

PHONE = {"viewport": {"width": 375, "height": 760}, "has_touch": True}


async def _verdict(card: Card) -> str:
    def read() -> str:
        row = Card.objects.select_related("decision").get(pk=card.pk)
        return str(row.decision.verdict) if row.status == "decided" else str(row.status)

    return str(await in_scope(card.tenant_id, read))


async def _settled(page: Page) -> None:
    await expect(page.locator("#decided")).to_be_visible()


async def test_login_with_wrong_password_says_so(web: str, open_page: Any, owner: Any) -> None:
    page = await open_page(f"{web}/console/login/")
    await page.fill("#username", owner.email)
    await page.fill("#password", "wrong")
    await page.click("button")
    await expect(page.get_by_role("alert")).to_contain_text("Wrong email address or password")
    open_page.errors.clear()  # the browser reports the 400


async def test_badge_rises_without_a_reload(web: str, open_page: Any, tenant: Any, owner: Any) -> None:
    page = await log_in(open_page, web, owner, "/console/inbox/")
    await expect(page.locator("#review-count")).to_have_count(0)
    await in_thread(make_card, tenant)
    await expect(page.locator("#review-count")).to_have_text("1")


async def test_card_appears_on_the_empty_page_by_itself(web: str, open_page: Any, tenant: Any, owner: Any) -> None:
    page = await log_in(open_page, web, owner, "/console/review/")
    await expect(page.locator("#card")).to_contain_text("Nothing to review")
    await in_thread(make_card, tenant)
    await expect(page.locator("#intent")).to_have_text("Change the postal address on policy HM-20418")


async def test_draft_is_rendered_while_it_is_edited(web: str, open_page: Any, tenant: Any, owner: Any) -> None:
    card = await in_thread(make_kind, tenant, CardKind.DRAFT_REVIEW)
    page = await log_in(open_page, web, owner, f"/console/review/{card.pk}/")
    await expect(page.locator("#card")).to_contain_text("Could you confirm the new address in writing?")
    await page.locator("textarea[name=text]").fill("Dear Maria,\n\n- your **new** address is saved")
    await expect(page.get_by_role("region", name="Preview").locator("li strong")).to_have_text("new")


async def test_press_approves_and_says_so(web: str, open_page: Any, tenant: Any, owner: Any) -> None:
    card = await in_thread(make_card, tenant)
    page = await log_in(open_page, web, owner)
    await page.get_by_role("button", name="Change the address").click()
    await _settled(page)
    assert await _verdict(card) == "approved"


async def test_word_about_the_decision_stays_when_the_news_come(
    web: str, open_page: Any, tenant: Any, owner: Any
) -> None:
    await in_thread(make_card, tenant)
    page = await log_in(open_page, web, owner)
    await page.keyboard.press("a")
    await _settled(page)
    await in_thread(make_card, tenant, intent="Another one")
    await expect(page.locator("#intent")).to_have_text("Another one")
    await page.keyboard.press("d")
    await page.keyboard.press("d")
    await expect(page.locator("#decided")).to_contain_text("“Nothing changes”: Another one", timeout=20_000)
    await page.wait_for_timeout(800)
    await expect(page.locator("#decided")).to_contain_text("“Nothing changes”: Another one")


async def test_key_a_twice_approves_a_medium_card(web: str, open_page: Any, tenant: Any, owner: Any) -> None:
    card = await in_thread(make_card, tenant, risk=Risk.MEDIUM)
    page = await log_in(open_page, web, owner)
    await page.keyboard.press("a")
    await expect(page.get_by_role("button", name="Confirm, change the address")).to_be_visible()
    await page.keyboard.press("a")
    await _settled(page)
    assert await _verdict(card) == "approved"


async def test_key_d_declines(web: str, open_page: Any, tenant: Any, owner: Any) -> None:
    card = await in_thread(make_card, tenant, risk=Risk.HIGH)
    page = await log_in(open_page, web, owner)
    await page.keyboard.press("d")
    await page.keyboard.press("d")
    await expect(page.locator("#decided")).to_be_visible(timeout=20_000)
    assert await _verdict(card) == "declined"


async def test_keys_j_and_k_move_through_the_queue(web: str, open_page: Any, tenant: Any, owner: Any) -> None:
    for intent in ("First", "Second"):
        await in_thread(make_card, tenant, intent=intent)
    page = await log_in(open_page, web, owner)
    await page.keyboard.press("j")
    await expect(page.locator("#intent")).to_have_text("Second")
    await page.wait_for_selector("[data-line=open]")  # another page, whose scripts hear no key before they are there
    await page.keyboard.press("k")
    await expect(page.locator("#intent")).to_have_text("First")


async def test_question_mark_shows_the_keys(web: str, open_page: Any, owner: Any) -> None:
    page = await log_in(open_page, web, owner)
    await page.keyboard.press("?")
    await expect(page.locator("#help")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(page.locator("#help")).to_be_hidden()


async def test_grave_card_is_approved_by_the_slide_only(web: str, open_page: Any, tenant: Any, owner: Any) -> None:
    card = await in_thread(make_card, tenant, risk=Risk.IRREVERSIBLE)
    page = await log_in(open_page, web, owner)
    approve = page.get_by_role("button", name="Approve")
    await expect(approve).to_be_disabled()
    slide = page.get_by_role("slider")
    box = await slide.bounding_box()
    assert box
    await page.mouse.move(box["x"] + 20, box["y"] + 20)
    await page.mouse.down()
    await page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 20)
    await page.mouse.up()
    await expect(approve).to_be_disabled()
    await expect(slide).to_have_value("0")
    await page.mouse.move(box["x"] + 20, box["y"] + 20)
    await page.mouse.down()
    await page.mouse.move(box["x"] + box["width"] - 2, box["y"] + 20, steps=5)
    await page.mouse.up()
    await approve.click()
    await _settled(page)
    assert await _verdict(card) == "approved"


async def test_slide_works_with_the_keyboard(web: str, open_page: Any, tenant: Any, owner: Any) -> None:
    await in_thread(make_card, tenant, risk=Risk.HIGH)
    page = await log_in(open_page, web, owner)
    await page.keyboard.press("a")
    await expect(page.get_by_role("slider")).to_be_focused()
    await page.keyboard.press("ArrowRight")
    await expect(page.get_by_role("button", name="Approve")).to_be_disabled()
    await page.keyboard.press("End")
    await expect(page.get_by_role("button", name="Approve")).to_be_enabled()


async def test_card_decided_by_a_colleague_says_who(
    web: str, open_page: Any, tenant: Any, owner: Any, approver: Any
) -> None:
    card = await in_thread(make_card, tenant)
    page = await log_in(open_page, web, owner)
    await in_scope(tenant.pk, decide_card, card.pk, user=approver, verdict="declined")
    await expect(page.locator("#card .settled")).to_contain_text(f"Declined by {approver.display_name}")


async def test_press_that_comes_too_late_says_who_decided(
    web: str, open_page: Any, tenant: Any, owner: Any, approver: Any
) -> None:
    """The page has not heard of it yet: the line is down."""
    card = await in_thread(make_card, tenant)
    page = await log_in(open_page, web, owner)
    await page.evaluate("document.querySelector('#card').removeAttribute('hx-trigger'); htmx.process(document.body)")
    await page.route("**/news/", lambda route: route.abort())
    await in_scope(tenant.pk, decide_card, card.pk, user=approver, verdict="declined")
    await page.get_by_role("button", name="Change the address").click()
    await expect(page.locator("#card")).to_contain_text("already decided")
    await expect(page.locator("#card .settled")).to_contain_text(approver.display_name)
    open_page.errors.clear()  # the browser reports the 409


async def test_new_card_does_not_move_the_one_being_read(web: str, open_page: Any, tenant: Any, owner: Any) -> None:
    await in_thread(make_card, tenant)
    page = await log_in(open_page, web, owner)
    await page.locator("summary", has_text="Plan and checks").click()
    await in_thread(make_card, tenant, intent="Another one")
    await expect(page.locator("#stack")).to_contain_text("Another one")
    await expect(page.locator("#waiting")).to_have_text("2 waiting")
    await expect(page.locator("#card > details")).to_have_attribute("open", "")


async def test_press_that_does_not_arrive_says_so(web: str, open_page: Any, tenant: Any, owner: Any) -> None:
    card = await in_thread(make_card, tenant)
    page = await log_in(open_page, web, owner)
    await page.route("**/decision/", lambda route: route.abort())
    await page.get_by_role("button", name="Change the address").click()
    await expect(page.locator("#notice")).to_contain_text("We couldn't reach the server")
    assert await _verdict(card) == "open"
    open_page.errors.clear()  # the browser reports the lost request


async def test_lost_line_is_told_and_caught_up(web: str, open_page: Any, tenant: Any, owner: Any) -> None:
    lines: list[WebSocketRoute] = []
    begun = asyncio.Event()
    refuse = False

    async def pass_on(line: WebSocketRoute) -> None:
        if refuse:
            await line.close(code=1012)
            return
        line.connect_to_server()
        lines.append(line)
        begun.set()

    page = await log_in(open_page, web, owner, "/console/inbox/")
    await page.route_web_socket("**/ws/console/", pass_on)
    await page.reload()
    await asyncio.wait_for(begun.wait(), 30)
    await page.wait_for_timeout(300)
    refuse = True
    await page.route("**/console/rail/**", lambda route: route.abort())
    await lines[0].close(code=1012)
    await expect(page.locator("#offline")).to_be_visible()
    await in_thread(make_card, tenant)
    await page.unroute("**/console/rail/**")
    refuse = False
    await expect(page.locator("#review-count")).to_have_text("1")
    await expect(page.locator("#offline")).to_be_hidden()
    open_page.errors.clear()  # the browser reports what did not arrive


async def test_card_fits_a_phone(web: str, open_page: Any, tenant: Any, owner: Any) -> None:
    """Spec 0.5.3: the body without details fits 300 px at 375 px."""
    await in_thread(make_card, tenant, risk=Risk.MEDIUM)
    page = await log_in(open_page, web, owner, **PHONE)
    box = await page.locator("#card .body").bounding_box()
    assert box
    assert box["height"] <= 300


@pytest.mark.parametrize("path", ["/console/review/", "/console/inbox/", "/console/activity/"])
async def test_page_does_not_scroll_sideways_on_a_phone(
    web: str, open_page: Any, tenant: Any, owner: Any, path: str
) -> None:
    await in_thread(make_card, tenant, intent="W" * 120)
    page = await log_in(open_page, web, owner, path, **PHONE)
    assert await page.evaluate("document.documentElement.scrollWidth") == 375


async def test_touch_targets_on_a_phone_are_44_pixels(web: str, open_page: Any, tenant: Any, owner: Any) -> None:
    await in_thread(make_card, tenant, risk=Risk.MEDIUM)
    page = await log_in(open_page, web, owner, **PHONE)
    sizes = await page.locator("main button:visible, .rail > a:visible").evaluate_all(
        "found => found.map(one => one.getBoundingClientRect().height)"
    )
    assert sizes
    assert min(sizes) >= 44


async def test_decision_works_without_scripts(web: str, open_page: Any, tenant: Any, owner: Any) -> None:
    card = await in_thread(make_card, tenant, risk=Risk.MEDIUM)
    page = await log_in(open_page, web, owner, java_script_enabled=False)
    await page.get_by_role("button", name="Approve").click()
    await page.get_by_role("button", name="Confirm").click()
    await page.wait_for_selector(".settled")
    assert await _verdict(card) == "approved"
