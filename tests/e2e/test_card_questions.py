"""Review: Q asks the customer, the card waits, and the answer comes to the page that shows it.

`SILAS_SHOTS=<folder>` saves what each step looks like.
"""

from __future__ import annotations

from typing import Any

import pytest
from playwright.async_api import expect

from apps.approvals.enums import Risk
from kernel.tenancy import in_thread
from tests.e2e.console import log_in
from tests.e2e.hands import shoot
from tests.factories.console import make_card
from tests.factories.sessions import make_session, say


@pytest.mark.parametrize("width", [1366, 390])
async def test_question_parks_the_card_and_the_answer_is_shown_on_it(
    web: str, open_page: Any, tenant: Any, owner: Any, deployment: Any, width: int
) -> None:
    session = await in_thread(make_session, deployment)
    await in_thread(say, session, "Please change my address.")
    fields = {"risk": Risk.MEDIUM, "session_id": session.pk, "deployment_id": deployment.pk}
    card = await in_thread(lambda: make_card(tenant, **fields))
    await in_thread(lambda: make_card(tenant, intent="Refund order 1234", **{**fields, "seconds": 90_000}))
    size = {"width": width, "height": 768 if width > 400 else 844}
    page = await log_in(open_page, web, owner, f"/console/review/{card.pk}/", viewport=size)
    await page.wait_for_function("document.querySelector('#stack')")
    await shoot(page, f"ask-{width}-card")
    await page.keyboard.press("q")
    field = page.locator("textarea[name=text]")
    await expect(field).to_be_focused()
    await field.fill("Which flat do you mean, 3 or 4?")
    await shoot(page, f"ask-{width}-form")
    await page.get_by_role("button", name="Send question").click()
    await expect(page.locator("#parked")).to_contain_text("Question sent")
    await expect(page.locator("#intent")).to_have_text("Refund order 1234")
    await shoot(page, f"ask-{width}-sent")
    await page.goto(f"{web}/console/review/?show=parked")
    await expect(page.locator("#questions")).to_contain_text("Waiting for the customer")
    await shoot(page, f"ask-{width}-parked")
    await in_thread(say, session, "Number 4, please")
    await expect(page.locator("#questions")).to_contain_text("Number 4, please")
    await page.locator("#questions").scroll_into_view_if_needed()
    await shoot(page, f"ask-{width}-answered")
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
