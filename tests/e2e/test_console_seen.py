"""Look at what the model saw, in a real browser: from a bot's message to the block that was left out, and back."""

from __future__ import annotations

from typing import Any

from playwright.async_api import expect

from kernel.tenancy import in_thread
from tests.e2e.console import log_in
from tests.e2e.turns import all_answered
from tests.factories.memories import conversation, kept_in, remember
from tests.factories.sessions import make_session, say


async def test_long_conversation_scrolls_in_its_own_frame(
    web: str, open_page: Any, deployment: Any, agent: Any
) -> None:
    session = await in_thread(make_session, deployment)
    for number in range(9):
        await in_thread(say, session, f"Message {number}" + "\nand so on" * 8)
        await all_answered(session, turns=number + 1)
    page = await log_in(open_page, web, agent, f"/console/inbox/{session.pk}/")
    await expect(page.get_by_role("link", name="What the model saw")).to_have_count(9)
    assert await page.evaluate("document.documentElement.scrollHeight - innerHeight") <= 0


async def test_answer_leads_to_what_its_model_saw(web: str, open_page: Any, deployment: Any, agent: Any) -> None:
    session = await in_thread(make_session, deployment)
    for line in ("My cat is called Whiskers.", "thanks", "Are you there?"):
        await in_thread(say, session, line)
    await all_answered(session, turns=3)
    page = await log_in(open_page, web, agent, f"/console/inbox/{session.pk}/")
    await page.locator(".say.bot").last.get_by_role("link", name="What the model saw").click()
    said = page.locator("#zone-chronicle")
    await expect(said.locator(".blocks.left")).to_contain_text("no content")
    await said.locator("summary", has_text="message 1").click()
    await expect(said.locator("blockquote").first).to_have_text("My cat is called Whiskers.")
    await page.get_by_role("link", name="Conversation with").click()
    await expect(page.locator("#log")).to_contain_text("Are you there?")


async def test_visitor_is_forgotten_at_a_press(web: str, open_page: Any, deployment: Any, agent: Any) -> None:
    session = await in_thread(make_session, deployment)
    await in_thread(say, session, "Hello")
    await in_thread(remember, deployment.tenant_id, conversation(session.pk), "They have a cat.")
    page = await log_in(open_page, web, agent, f"/console/inbox/{session.pk}/")
    await page.locator(".forget > summary").click()
    await page.get_by_role("button", name="Delete everything saved about").click()
    await expect(page.locator("#contact")).to_contain_text("No memories of")
    assert await in_thread(kept_in, deployment.tenant_id, conversation(session.pk)) == []
