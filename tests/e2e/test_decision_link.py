"""A decision link on a phone: Chromium's virtual authenticator opens the card and signs the answer."""

from __future__ import annotations

from typing import Any

from playwright.async_api import CDPSession, Page, expect

from apps.approvals.cards import answers, decision_links
from apps.approvals.enums import Risk
from apps.approvals.models import Answer, ApprovalToken, Card
from kernel.tenancy import in_scope, in_thread
from tests.e2e.axe import violations
from tests.e2e.test_console_passkeys import with_passkey
from tests.factories.console import make_card

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


async def _open(
    open_page: Any, web: str, tenant: Any, user: Any, *, risk: Risk = Risk.MEDIUM
) -> tuple[Page, CDPSession, str, Card]:
    """The page of a link to a new card, in a browser that is logged out, on the device that has the user's passkey."""
    page, session, device = await with_passkey(open_page, web, user, **PHONE)
    card = await in_thread(lambda: make_card(tenant, risk=risk))
    path = await in_scope(tenant.pk, lambda: decision_links.create_decision_link(card, user).path)
    await page.wait_for_load_state("networkidle")
    await page.context.clear_cookies()
    await page.goto(f"{web.replace('127.0.0.1', 'localhost')}{path}")
    await expect(page.get_by_text("asks for a decision")).to_be_visible()
    await expect(page.get_by_text(card.intent)).to_have_count(0)
    return page, session, device, card


async def _is_sound(page: Page) -> None:
    assert await violations(page) == []
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")


async def test_card_is_approved_on_a_phone(web: str, open_page: Any, tenant: Any, owner: Any) -> None:
    page, _, _, card = await _open(open_page, web, tenant, owner)
    await _is_sound(page)
    await page.get_by_role("button", name="Continue with your passkey").tap()
    await expect(page.get_by_role("heading", name=card.intent)).to_be_visible()
    await expect(page.get_by_text("Flat 3, 41 Canal Wharf")).to_be_visible()
    await _is_sound(page)
    await page.get_by_role("button", name="Approve, change the address").tap()
    await expect(page.locator("#decided")).to_contain_text("Approved")
    await _is_sound(page)

    def stored() -> tuple[bool, bool]:
        answer = Answer.objects.select_related("card").get(card_id=card.pk)
        return answers.verify_answer(answer), ApprovalToken.objects.filter(decision__card_id=card.pk).exists()

    assert await in_scope(tenant.pk, stored) == (True, True)
    await page.reload()
    await expect(page.get_by_text("This link was already used")).to_be_visible()
    open_page.errors.clear()  # the browser reports the 409


async def test_card_is_declined_with_a_reason_on_a_phone(web: str, open_page: Any, tenant: Any, owner: Any) -> None:
    page, _, _, card = await _open(open_page, web, tenant, owner, risk=Risk.HIGH)
    await page.get_by_role("button", name="Continue with your passkey").tap()
    await page.get_by_label("Reason for declining (optional)").fill("Wrong customer.")
    await page.get_by_role("button", name="Decline").tap()
    await expect(page.locator("#decided")).to_contain_text("Declined")
    said = await in_scope(tenant.pk, lambda: Answer.objects.get(card_id=card.pk).said)
    assert said == {"choice": "decline", "freetext": "Wrong customer."}


async def test_finger_of_someone_else_shows_nothing(web: str, open_page: Any, tenant: Any, owner: Any) -> None:
    page, session, device, card = await _open(open_page, web, tenant, owner)
    await session.send("WebAuthn.setUserVerified", {"authenticatorId": device, "isUserVerified": False})
    await page.get_by_role("button", name="Continue with your passkey").tap()
    await expect(page.locator("[data-said]")).to_contain_text("Nothing was changed")
    await expect(page.get_by_text(card.intent)).to_have_count(0)


async def test_phone_of_someone_else_shows_nothing(web: str, open_page: Any, tenant: Any, owner: Any) -> None:
    page, session, device, card = await _open(open_page, web, tenant, owner)
    await session.send("WebAuthn.clearCredentials", {"authenticatorId": device})
    await page.get_by_role("button", name="Continue with your passkey").tap()
    await expect(page.locator("[data-said]")).to_contain_text("Nothing was changed")
    await expect(page.get_by_text(card.intent)).to_have_count(0)
    assert await in_scope(tenant.pk, lambda: Card.objects.get(pk=card.pk).is_open)
