"""The pages about apps in a real browser: consent, the apps of a company, and those that act for a member."""

from __future__ import annotations

import os
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.async_api import Browser, Page, Route, expect

from apps.tenants.enums import KeyScope
from apps.tenants.models import OAuthApp
from apps.tenants.oauth.services import NewApp, register_itself
from apps.tenants.rules import SELF_REGISTERED_SCOPES
from kernel.tenancy import in_scope, in_thread
from tests.e2e.axe import violations
from tests.e2e.console import log_in
from tests.factories.oauth import CALLBACK, Flow, make_app
from tests.factories.tenants import make_deployment

SIZES: dict[str, dict[str, Any]] = {
    "desktop": {"viewport": {"width": 1366, "height": 768}},
    "phone": {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True},
}


@pytest.fixture(scope="module")
def browser(whole_browser: Browser) -> Browser:
    """In the shell without windows, an address that a form is redirected to is not routed."""
    return whole_browser


async def _is_sound(page: Page) -> None:
    assert await violations(page) == []
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("button", "answer"), [("Allow", "code"), ("Deny", "error")])
async def test_member_returns_to_the_app(
    web: str, open_page: Any, tenant: Any, agent: Any, size: str, button: str, answer: str
) -> None:
    scopes = (KeyScope.SESSIONS_READ, KeyScope.CARDS_READ, KeyScope.KNOWLEDGE_READ)
    flow = Flow(await in_thread(make_app, tenant, *scopes, name="Desk helper with a rather long name"), agent)
    page = await log_in(open_page, web, agent, "/console/account/apps/", **SIZES[size])
    await page.goto(f"{web}{flow.address()}")

    async def arrive(route: Route) -> None:
        await route.fulfill(status=200, content_type="text/html", body="<title>App</title><h1>Welcome back</h1>")

    await page.context.route("https://app.example/**", arrive)
    await expect(page.get_by_role("heading", name="Desk helper")).to_be_visible()
    await expect(page.get_by_text(str(KeyScope.CARDS_READ.label))).to_be_visible()
    await _is_sound(page)
    await page.get_by_role("button", name=button).click()
    await expect(page.get_by_role("heading", name="Welcome back")).to_be_visible()
    told = parse_qs(urlsplit(page.url).query)
    assert answer in told
    assert told["state"] == ["xyz"]
    assert told["iss"] == [web]


@pytest.mark.parametrize("size", SIZES)
async def test_owner_registers_an_app_and_a_member_revokes_it(
    web: str, open_page: Any, tenant: Any, owner: Any, size: str
) -> None:
    await in_thread(make_deployment, tenant)
    app = await in_thread(make_app, tenant)
    await in_thread(Flow(app, owner).tokens)
    page = await log_in(open_page, web, owner, "/console/apps/", **SIZES[size])
    register = page.get_by_role("button", name="Register app")
    form = page.locator("form", has=register)
    await form.get_by_label("Name", exact=True).fill("Dashboard")
    await form.get_by_label("Redirect addresses").fill("https://app.example/callback")
    await form.get_by_label("keep a secret").check()
    await form.get_by_label(str(KeyScope.SESSIONS_READ.label)).check()
    await register.click()
    await expect(page.locator("#new-secret")).to_contain_text("ocs_")
    await _is_sound(page)
    await page.goto(f"{web}/console/account/apps/")
    await expect(page.get_by_text("Helper")).to_be_visible()
    await _is_sound(page)
    await page.get_by_role("button", name="Revoke Helper").click()
    await expect(page.get_by_text("No apps yet.")).to_be_visible()
    await _is_sound(page)


async def _shoot(page: Page, name: str) -> None:
    if folder := os.environ.get("SILAS_SHOTS"):
        await page.screenshot(path=f"{folder}/{name}.png", full_page=True)


def _registered_itself() -> OAuthApp:
    return register_itself("Assistant", redirect_uris=[CALLBACK], scopes=SELF_REGISTERED_SCOPES)


@pytest.mark.parametrize("size", SIZES)
async def test_owner_lets_clients_register_and_members_are_told(
    web: str, open_page: Any, tenant: Any, owner: Any, size: str
) -> None:
    chatbot = await in_thread(make_deployment, tenant)
    page = await log_in(open_page, web, owner, "/console/apps/", **SIZES[size])
    await page.get_by_role("button", name="Let MCP clients register").click()
    await expect(page.get_by_role("button", name="Turn off registration")).to_be_visible()
    flow = Flow(NewApp(await in_scope(tenant.pk, _registered_itself)), owner)
    await page.reload()
    await expect(page.get_by_text("registered by itself")).to_be_visible()
    await _is_sound(page)
    await _shoot(page, f"apps-{size}")
    await page.goto(f"{web}{flow.address(resource=f'{web}/mcp/deployments/{chatbot.public_key}')}")
    await expect(page.get_by_text("This app registered itself")).to_be_visible()
    await _is_sound(page)
    await _shoot(page, f"consent-{size}")
