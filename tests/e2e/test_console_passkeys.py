"""A passkey in a real browser: Chromium's own virtual authenticator makes one and stands behind a grave yes."""

from __future__ import annotations

from typing import Any

from playwright.async_api import CDPSession, Page, expect

from apps.approvals.cards import answers
from apps.approvals.enums import Risk
from apps.approvals.models import Answer, Card
from apps.safety.models import Hold
from kernel.tenancy import in_scope, in_thread
from tests.e2e.console import log_in
from tests.factories.console import make_card
from tests.factories.safety import DANGER, started


async def _authenticator(page: Page) -> tuple[CDPSession, str]:
    """A device with a fingerprint reader, and a finger on it."""
    session = await page.context.new_cdp_session(page)
    await session.send("WebAuthn.enable")
    options = {
        "protocol": "ctap2",
        "transport": "internal",
        "hasUserVerification": True,
        "isUserVerified": True,
        "automaticPresenceSimulation": True,
    }
    made = await session.send("WebAuthn.addVirtualAuthenticator", {"options": options})
    return session, made["authenticatorId"]


async def with_passkey(open_page: Any, web: str, user: Any, **options: Any) -> tuple[Page, CDPSession, str]:
    page = await log_in(open_page, web.replace("127.0.0.1", "localhost"), user, "/console/account/keys/", **options)
    session, device = await _authenticator(page)
    await page.fill("#add-passkey [name=name]", "My laptop")
    await page.fill("#add-passkey [name=password]", "a-long-password")
    await page.get_by_role("button", name="Add a passkey").click()
    await expect(page.locator(".passkeys")).to_contain_text("My laptop")
    return page, session, device


async def _slide_and_press(page: Page, web: str, card: Card) -> None:
    await page.wait_for_load_state("networkidle")  # a request that the next page cuts off complains
    await page.goto(f"{web.replace('127.0.0.1', 'localhost')}/console/review/{card.pk}/")
    await page.locator("[data-slide]").focus()
    await page.keyboard.press("End")
    await page.locator("[data-approve]").click()


async def test_grave_card_is_approved_with_a_passkey(web: str, open_page: Any, tenant: Any, owner: Any) -> None:
    card = await in_thread(lambda: make_card(tenant, risk=Risk.HIGH))
    page, _, _ = await with_passkey(open_page, web, owner)
    await _slide_and_press(page, web, card)
    await expect(page.locator("#decided")).to_be_visible()

    def holds() -> tuple[bool, bool]:
        answer = Answer.objects.select_related("card").get(card_id=card.pk)
        return answer.step_up is not None, answers.verify_answer(answer)

    assert await in_scope(tenant.pk, holds) == (True, True)


async def test_blocked_agent_is_unblocked_with_a_passkey(web: str, open_page: Any, tenant: Any, owner: Any) -> None:
    agent = await in_thread(started, tenant)
    page, _, _ = await with_passkey(open_page, web, owner)
    await in_thread(agent.report, DANGER)
    await page.wait_for_load_state("networkidle")
    await page.goto(f"{web.replace('127.0.0.1', 'localhost')}/console/safety/")
    await page.get_by_role("button", name="Unblock").click()
    await expect(page.get_by_text("No agents are waiting")).to_be_visible()

    def proofs() -> Any:
        return Hold.objects.get().proofs

    assert list(await in_scope(tenant.pk, proofs)) == ["allow"]


async def test_grave_card_stays_open_when_the_finger_is_not_theirs(
    web: str, open_page: Any, tenant: Any, owner: Any
) -> None:
    card = await in_thread(lambda: make_card(tenant, risk=Risk.HIGH))
    page, session, device = await with_passkey(open_page, web, owner)
    await session.send("WebAuthn.setUserVerified", {"authenticatorId": device, "isUserVerified": False})
    await _slide_and_press(page, web, card)
    await expect(page.locator("#notice")).to_contain_text("Nothing was changed")
    assert await in_scope(tenant.pk, lambda: Card.objects.get(pk=card.pk).status) == "open"


async def test_wrong_password_adds_no_passkey(web: str, open_page: Any, owner: Any) -> None:
    page = await log_in(open_page, web.replace("127.0.0.1", "localhost"), owner, "/console/account/keys/")
    await _authenticator(page)
    await page.fill("#add-passkey [name=name]", "My laptop")
    await page.fill("#add-passkey [name=password]", "wrong")
    await page.get_by_role("button", name="Add a passkey").click()
    await expect(page.locator("#passkey-said")).to_contain_text("Wrong password")
    open_page.errors.clear()  # the browser reports the 403
