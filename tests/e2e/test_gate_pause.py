"""An output gate that asks, in two browsers: the visitor waits, an approver looks, and exactly that answer arrives."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.async_api import expect

from kernel.tenancy import in_thread
from tests.e2e.console import log_in
from tests.e2e.widget import opened
from tests.factories.pauses import SAFE, WAITING, asking_gate, gate_card, gated


@pytest.fixture
def demo(web: str, deployment: Any) -> str:
    return f"{web}/demo/{deployment.tenant.slug}/"


async def test_held_answer_reaches_the_visitor_once_an_approver_sends_it(
    web: str, demo: str, open_page: Any, tenant: Any, deployment: Any, owner: Any
) -> None:
    await in_thread(gated, deployment, asking_gate("every_agent_response"))
    widget = await opened(await open_page(demo))
    await widget.say("Hello")
    await expect(widget.log).to_contain_text(WAITING)
    card = await in_thread(gate_card, tenant)
    drafted = card.payload["holds"]["response"]
    await expect(widget.log).not_to_contain_text(drafted)
    page = await log_in(open_page, web, owner, f"/console/review/{card.pk}/")
    await expect(page.locator("#card")).to_contain_text(drafted)
    await page.keyboard.press("a")
    await page.get_by_role("button", name="Confirm").click()
    await expect(widget.log).to_contain_text(drafted)


async def test_declined_answer_is_never_shown_to_the_visitor(
    web: str, demo: str, open_page: Any, tenant: Any, deployment: Any, owner: Any
) -> None:
    await in_thread(gated, deployment, asking_gate("every_agent_response"))
    widget = await opened(await open_page(demo))
    await widget.say("Hello")
    await expect(widget.log).to_contain_text(WAITING)
    card = await in_thread(gate_card, tenant)
    page = await log_in(open_page, web, owner, f"/console/review/{card.pk}/")
    await page.keyboard.press("d")
    await page.keyboard.press("d")
    await expect(widget.log).to_contain_text(SAFE, timeout=30_000)
    await expect(widget.log).not_to_contain_text(card.payload["holds"]["response"])
