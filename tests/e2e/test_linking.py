"""Accounts are connected in a real browser: by a code on another device, by signing in there and coming back; one may
do more for once, breaks, and is signed in to again. The service is a real one on this machine.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect

from apps.connections.models import Connection, OnceGrant
from apps.connections.queries import account_for
from apps.skills.services import install_version
from kernel.tenancy import in_scope
from silas_platform.celery import app
from tests.e2e.conftest import OUTSIDE_PORT
from tests.e2e.console import log_in
from tests.services import oauth
from tests.services.oauth import Service

SKILL = Path(__file__).resolve().parents[2] / "skills" / "generic-oauth2"


@pytest.fixture
def service() -> Iterator[Service]:
    with oauth.serving(OUTSIDE_PORT) as found:
        yield found


@pytest_asyncio.fixture(loop_scope="session")
async def page(
    web: str, worker: None, open_page: Any, tenant: Any, owner: Any, service: Service
) -> AsyncIterator[Page]:
    """The page of connections, where one skill offers itself."""
    await in_scope(tenant.pk, install_version, SKILL)
    shown = await log_in(open_page, web, owner, "/console/connections/")
    shown.set_default_timeout(60_000)
    beat = asyncio.create_task(_beat())
    yield shown
    beat.cancel()
    # A page that reads itself anew complains of the request that the next page cut off.
    open_page.errors[:] = [said for said in open_page.errors if "htmx:sendError" not in said]


async def _beat() -> None:
    """What beat does in a house: a worker is woken now and then, in case a poke was lost."""
    while True:
        await asyncio.sleep(2)
        await asyncio.to_thread(app.send_task, "bus.drain", args=["work"], queue="work")


async def ask_for(page: Page, name: str, settings: dict[str, str]) -> None:
    await page.get_by_role("link", name="Connect Service with OAuth 2").click()
    await page.get_by_label("Name", exact=True).fill(name)
    for setting, value in settings.items():
        await page.locator(f"#setting-{setting}").fill(value)
    await page.get_by_role("button", name="Request approval").click()


async def say_yes(page: Page) -> None:
    await page.get_by_role("link", name="View card").click()
    await decide(page, "approve")


async def decide(page: Page, choice: str) -> None:
    """Cards about connections want the slide first."""
    await page.get_by_role("slider").focus()
    await page.keyboard.press("End")
    await page.locator(f"button[name=choice][value={choice}]").click()
    await expect(page.locator("#decided, #settled").first).to_be_visible()


async def open_connection(page: Page, name: str) -> None:
    await page.goto(page.url.split("/console/")[0] + "/console/connections/")
    await page.get_by_role("link", name=name).click()


async def test_account_is_connected_by_a_code(page: Page, tenant: Any, service: Service) -> None:
    await ask_for(page, "Shop calendar", service.device_settings)
    await say_yes(page)
    await open_connection(page, "Shop calendar")
    await expect(page.get_by_text("The code expires")).to_be_visible()
    await page.get_by_text("Having trouble?").click()
    await page.wait_for_event("response", lambda answer: "/console/connections/" in answer.url)
    await expect(page.get_by_text("in any browser on any device")).to_be_visible()
    await page.get_by_role("button", name="Done").click()  # too early, which does no harm
    code = await page.get_by_label("The code to enter").text_content()
    service.enter((code or "").strip())
    await expect(page.get_by_text("The first call worked")).to_be_visible()
    await expect(page.locator("#connection-state")).to_have_text("Active")


async def test_account_is_connected_in_the_browser_breaks_and_is_connected_again(
    page: Page, tenant: Any, service: Service
) -> None:
    await ask_for(page, "Shop mail", service.settings)
    await say_yes(page)
    await open_connection(page, "Shop mail")
    service.deny = True
    await page.get_by_role("link", name="Sign in at 127.0.0.1").click()
    await expect(page.get_by_text("You declined the authorization")).to_be_visible()
    service.deny = False
    await page.get_by_role("link", name="View card").click()
    await page.locator("button[name=choice][value=retry]").click()
    await expect(page.locator("#decided, #settled").first).to_be_visible()
    await open_connection(page, "Shop mail")
    await page.get_by_role("link", name="Sign in at 127.0.0.1").click()
    await expect(page.get_by_text("The first call worked")).to_be_visible()


async def test_account_may_do_more_for_once(page: Page, tenant: Any, service: Service) -> None:
    await ask_for(page, "Shop mail", service.settings)
    await say_yes(page)
    await open_connection(page, "Shop mail")
    await page.get_by_role("link", name="Sign in at 127.0.0.1").click()
    await page.get_by_label("email").check()
    await page.get_by_role("button", name="Request permissions").click()
    await decide(page, "just_this_once")
    once, row = await in_scope(tenant.pk, _standing)
    assert once.permissions == ["email"]
    assert row.permissions_granted == ["openid"]


def _standing() -> tuple[OnceGrant, Connection]:
    return OnceGrant.objects.get(), account_for("generic-oauth2")
