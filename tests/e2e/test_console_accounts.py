"""Coming in, in a real browser: a code, a passkey alone, an invitation, a company's login; and being logged out."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

from playwright.async_api import Page, expect

from apps.tenants import invitations, providers
from apps.tenants.enums import Role
from kernel.tenancy import in_thread, tenant_scope
from tests.e2e.console import log_in
from tests.factories.accounts import PASSWORD, add_app
from tests.fakes.oidc import CLIENT_ID, SECRET, provider


def _named(web: str) -> str:
    """Where passkeys can be, and where a company's login comes back to."""
    return web.replace("127.0.0.1", "localhost")


async def _type_password(page: Page, user: Any) -> None:
    await page.get_by_label("Email address").fill(user.email)
    await page.get_by_label("Password").fill(PASSWORD)
    await page.get_by_role("button", name="Log in", exact=True).click()


async def _put_device(page: Page) -> None:
    """A device that keeps passkeys and has a fingerprint reader, with a finger on it."""
    session = await page.context.new_cdp_session(page)
    await session.send("WebAuthn.enable")
    options = {
        "protocol": "ctap2",
        "transport": "internal",
        "hasResidentKey": True,
        "hasUserVerification": True,
        "isUserVerified": True,
        "automaticPresenceSimulation": True,
    }
    await session.send("WebAuthn.addVirtualAuthenticator", {"options": options})


async def _is_in(page: Page) -> None:
    await page.wait_for_selector("[data-line=open]")


async def test_code_of_an_app_lets_in(web: str, open_page: Any, owner: Any) -> None:
    app, _ = await in_thread(add_app, owner)
    page = await open_page(f"{web}/console/login/")
    await _type_password(page, owner)
    await page.get_by_label("Code").fill(app.now())
    await page.get_by_role("button", name="Continue").click()
    await _is_in(page)


async def test_passkey_is_added_and_lets_in_without_a_password(web: str, open_page: Any, owner: Any) -> None:
    page = await log_in(open_page, _named(web), owner, "/console/account/")
    await _put_device(page)
    await page.fill("#add-passkey [name=name]", "My laptop")
    await page.fill("#add-passkey [name=password]", PASSWORD)
    await page.get_by_role("button", name="Add a passkey").click()
    await expect(page.locator("#passkey-codes li")).to_have_count(10)
    await page.context.clear_cookies()
    await page.goto(f"{_named(web)}/console/login/")
    await page.get_by_role("button", name="Log in with a passkey").click()
    await _is_in(page)


async def test_invited_person_joins(web: str, open_page: Any, tenant: Any, owner: Any) -> None:
    def invited() -> str:
        with tenant_scope(tenant):
            link = invitations.new_link(
                invitations.invite(f"{uuid4().hex}@example.test", role=Role.VIEWER, by=owner, actor=owner.actor).pk
            )
        assert link is not None
        return link.path

    page = await open_page(f"{web}{await in_thread(invited)}")
    await page.get_by_label("Your name").fill("Ada Lovelace")
    await page.get_by_label("Password").fill("a-quite-long-password")
    await page.get_by_role("button", name="Join").click()
    await _is_in(page)
    await expect(page.locator("#account > summary")).to_contain_text("Ada Lovelace")


async def test_companys_login_goes_there_and_back(web: str, open_page: Any, tenant: Any) -> None:
    with provider() as company:

        def set_up() -> None:
            with tenant_scope(tenant):
                providers.save_provider(
                    issuer=company.issuer,
                    client_id=CLIENT_ID,
                    secret=SECRET,
                    domains=["acme.test"],
                    default_role=Role.AGENT,
                    enabled=True,
                    actor="system",
                )

        await in_thread(set_up)
        company.person = {"sub": uuid4().hex, "email": f"{uuid4().hex}@acme.test", "email_verified": True, "name": "Bo"}
        page = await open_page(f"{_named(web)}/console/login/company/")
        await page.get_by_label("Company").fill(tenant.slug)
        await page.get_by_role("button", name="Continue").click()
        await page.get_by_role("link", name="Continue to localhost").click()
        await _is_in(page)
    await expect(page.locator("#account > summary")).to_contain_text("Bo")


async def test_ended_login_leaves_the_console_at_once(web: str, open_page: Any, owner: Any) -> None:
    there = await log_in(open_page, web, owner, "/console/inbox/")
    here = await log_in(open_page, web, owner, "/console/account/")
    await here.get_by_role("button", name="Log out everywhere else").click()
    await there.wait_for_url("**/console/login/**")
    await expect(here.locator(".logins > li")).to_have_count(1)
    assert urlsplit(there.url).query == "next=/console/inbox/"
