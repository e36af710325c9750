"""Sound and desktop notices in a real browser: once in all tabs, and not for what is in sight."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Page, expect

from apps.approvals.cards import alerts
from apps.inbox import handoff
from apps.sessions.models import ChatSession
from kernel.tenancy import in_thread, tenant_scope
from tests.e2e.axe import violations
from tests.e2e.console import log_in
from tests.factories.sessions import make_session, say

Counts = tuple[int, list[list[str]]]
SHOTS = os.environ.get("SILAS_SHOTS", "")
# Counts what is played and shown, because a test can neither hear nor see it.
COUNT = """
    window.rang = 0; window.shown = [];
    const start = OscillatorNode.prototype.start;
    OscillatorNode.prototype.start = function (...when) { window.rang += 1; return start.apply(this, when); };
    ServiceWorkerRegistration.prototype.showNotification = async (title, { tag }) => window.shown.push([title, tag]);
"""


@pytest.fixture(scope="module")
def browser(whole_browser: Browser) -> Browser:
    """The shell without windows rings in no tab."""
    return whole_browser


async def _open(web: str, open_page: Any, user: Any, path: str) -> Page:
    page = await log_in(open_page, web, user, path, service_workers="allow")
    await page.context.add_init_script(COUNT)
    await page.context.grant_permissions(["notifications"])
    await page.reload()
    return await _press(page)


async def _press(page: Page) -> Page:
    """Browsers play nothing before the first press."""
    await page.wait_for_selector("[data-line=open]")
    await page.locator("#main").click(position={"x": 2, "y": 2})
    return page


async def _conversation_of(deployment: Any, user: Any) -> ChatSession:
    session = await in_thread(make_session, deployment)

    def begin() -> None:
        say(session, "Hello")
        with tenant_scope(session.tenant):
            handoff.take_over(session.pk, user)
            alerts.set_notice_choice(user, sound=True, desktop=True, quiet_hours=None)

    await in_thread(begin)
    return session


async def _counts(*pages: Page) -> Counts:
    """How many notes were played, of which a ring has two, and what was shown, in all tabs."""
    rang = [int(await page.evaluate("window.rang")) for page in pages]
    shown = [one for page in pages for one in await page.evaluate("window.shown")]
    return sum(rang), shown


async def _wait_until(page: Page, holds: Callable[[Counts], bool], *others: Page) -> None:
    """Wait for the counts in all tabs, for half a minute."""
    for _ in range(300):
        if holds(await _counts(page, *others)):
            return
        await page.wait_for_timeout(100)
    raise AssertionError(await _counts(page, *others))


async def test_one_of_two_tabs_rings_and_shows(web: str, open_page: Any, deployment: Any, agent: Any) -> None:
    session = await _conversation_of(deployment, agent)
    first = await _open(web, open_page, agent, "/console/account/alerts/")
    second = await first.context.new_page()
    await second.goto(f"{web}/console/account/")
    await _press(second)
    await in_thread(say, session, "Are you there?")
    await _wait_until(first, lambda counts: counts[0] > 0 and counts[1] != [], second)
    await first.wait_for_timeout(1500)
    rang, shown = await _counts(first, second)
    assert rang == 2
    assert shown == [["New message in your conversation", f"/console/inbox/{session.pk}/"]]


async def test_conversation_in_sight_is_silent_in_every_tab(
    web: str, open_page: Any, deployment: Any, agent: Any
) -> None:
    session = await _conversation_of(deployment, agent)
    other = await _open(web, open_page, agent, "/console/account/")
    page = await other.context.new_page()
    await page.goto(f"{web}/console/inbox/{session.pk}/")
    await _press(page)
    await in_thread(say, session, "Are you there?")
    await expect(page.locator("#log")).to_contain_text("Are you there?")
    await page.wait_for_timeout(1500)
    rang, shown = await _counts(page, other)
    assert rang == 0
    assert shown == []


async def test_what_came_before_the_first_press_does_not_sound_at_it(
    web: str, open_page: Any, deployment: Any, agent: Any
) -> None:
    session = await _conversation_of(deployment, agent)
    page = await log_in(open_page, web, agent, "/console/account/", service_workers="allow")
    await page.context.add_init_script(COUNT)
    # As it is before the first press, also where the tests' browser lets pages play at once.
    await page.context.add_init_script(
        "Object.defineProperty(AudioContext.prototype, 'state', { get: () => 'suspended' });"
    )
    await page.context.grant_permissions(["notifications"])
    await page.reload()
    await page.wait_for_selector("[data-line=open]")
    await in_thread(say, session, "Are you there?")
    await _wait_until(page, lambda counts: bool(counts[1]))
    await page.wait_for_timeout(1000)
    assert (await _counts(page))[0] == 0


async def test_member_tries_the_sound_and_sets_quiet_hours(web: str, open_page: Any, agent: Any) -> None:
    page = await _open(web, open_page, agent, "/console/account/alerts/")
    await page.get_by_role("button", name="Try the sound").click()
    await page.wait_for_function("window.rang > 0")
    assert (await _counts(page))[0] == 2
    await page.get_by_label("Show desktop notifications").check()
    await expect(page.locator("#desktop-said")).to_contain_text("may show notifications")
    await page.get_by_label("Quiet from").fill("22:00")
    await page.get_by_label("Quiet until").fill("07:00")
    await page.get_by_label("Sunday").uncheck()
    await page.locator("#notices-form").get_by_role("button", name="Save").click()
    await expect(page.get_by_label("Quiet until")).to_have_value("07:00")
    await expect(page.get_by_label("Sunday")).not_to_be_checked()
    await expect(page.get_by_label("Monday")).to_be_checked()
    assert await violations(page) == []
    if SHOTS:
        for width, height in ((1366, 768), (390, 800)):
            await page.set_viewport_size({"width": width, "height": height})
            await page.screenshot(path=Path(SHOTS) / f"notices-{width}.png", full_page=True)


async def test_browser_that_blocks_is_said(web: str, open_page: Any, agent: Any) -> None:
    page = await log_in(open_page, web, agent, "/console/account/alerts/")
    await page.evaluate("Notification.requestPermission = async () => 'denied'")
    box = page.get_by_label("Show desktop notifications")
    await box.click()
    await expect(page.locator("#desktop-said")).to_contain_text("blocks notifications")
    await expect(box).not_to_be_checked()
