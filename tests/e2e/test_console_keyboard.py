"""A day at the console without a mouse: every press below is a key, and where one stands can always be seen."""

from __future__ import annotations

from typing import Any

from playwright.async_api import Page, expect

from apps.approvals.models import Card
from apps.tenants.models import Deployment
from kernel.tenancy import in_scope, in_thread
from tests.e2e.console import log_in
from tests.factories.console import make_card
from tests.factories.sessions import make_session, say
from tests.factories.tenants import make_deployment

MOST_TABS = 120
_STANDS_ON = """
    () => {
      const at = document.activeElement;
      const shown = (one) => ['outlineStyle', 'boxShadow'].some((name) => getComputedStyle(one)[name] !== 'none');
      const name = at.getAttribute('aria-label') || at.labels?.[0]?.textContent || at.textContent || '';
      return [name.trim(), shown(at) || shown(at.closest('form') ?? at), at.outerHTML.slice(0, 200)];
    }
"""


async def _tab_to(page: Page, wanted: str) -> None:
    """By Tab alone, as far as the thing of this name; whatever is passed shows that one stands on it."""
    unseen = []
    for _ in range(MOST_TABS):
        await page.keyboard.press("Tab")
        name, is_seen, what = await page.evaluate(_STANDS_ON)
        unseen += [] if is_seen or what.startswith("<body") else [what]
        if name.startswith(wanted):
            assert unseen == []
            return
    raise AssertionError(f"no way to {wanted!r} with the keyboard")


def _decided() -> list[str]:
    return list(Card.objects.values_list("status", flat=True))


def _titles() -> list[str]:
    return list(Deployment.objects.values_list("title", flat=True))


async def test_console_is_worked_with_keys_alone(web: str, open_page: Any, tenant: Any, owner: Any) -> None:
    deployment = await in_thread(make_deployment, tenant, allowed_origins=["https://site.test"])
    session = await in_thread(make_session, deployment)
    await in_thread(say, session, "Hello, is anybody there?")
    await in_thread(make_card, tenant)
    page = await log_in(open_page, web, owner, "/console/activity/")

    await page.keyboard.press("1")
    await expect(page.locator("h1")).to_have_text("Inbox")
    await _tab_to(page, "All")
    await page.keyboard.press("Enter")
    await page.wait_for_url("**tab=all**")
    await page.keyboard.press("Alt+KeyJ")
    await page.wait_for_url(f"**/{session.pk}/**")
    await page.wait_for_selector("[data-line=open]")
    await _tab_to(page, "Take over")
    await page.keyboard.press("Enter")
    await expect(page.locator("#answering")).to_contain_text("You are answering")
    await page.keyboard.press("Alt+KeyL")
    await page.keyboard.type("Yes, I am here.")
    await page.keyboard.press("Enter")
    await expect(page.locator("#log .say.human")).to_contain_text("Yes, I am here.")

    await _tab_to(page, "Review")
    await page.keyboard.press("Enter")
    await expect(page.locator("#card")).to_be_visible()
    await _tab_to(page, "Change the address")
    await page.keyboard.press("Enter")
    await expect(page.locator("#decided")).to_be_visible()
    assert await in_scope(tenant, _decided) == ["decided"]

    await page.keyboard.press("Control+KeyK")
    await page.keyboard.type("chatbots")
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/console/studio/")
    await _tab_to(page, deployment.title)
    await page.keyboard.press("Enter")
    await page.wait_for_url(f"**/{deployment.pk}/")
    await _tab_to(page, "Name")
    await page.keyboard.press("Control+KeyA")
    await page.keyboard.type("Harbour help")
    await _tab_to(page, "Save")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="Harbour help")).to_be_visible()
    assert await in_scope(tenant, _titles) == ["Harbour help"]
