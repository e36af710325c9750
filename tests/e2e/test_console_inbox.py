"""Talk with a visitor in a real browser: take over, reply, hand back, and see what comes in meanwhile."""

from __future__ import annotations

import os
from typing import Any

import pytest
from playwright.async_api import Page, expect

from apps.inbox import handoff
from apps.sessions import presence
from apps.sessions.models import ChatSession
from apps.sessions.rules import watchers_of
from kernel import live
from kernel.tenancy import in_scope, in_thread
from tests.e2e.console import log_in
from tests.factories.sessions import make_session, say

SHOTS = os.environ.get("SILAS_SHOTS", "")
PHONE = {"viewport": {"width": 375, "height": 760}, "has_touch": True}


async def _talked_with(
    open_page: Any, web: str, deployment: Any, user: Any, **options: Any
) -> tuple[ChatSession, Page]:
    """A conversation that `user` has taken over, open in the browser."""
    session = await in_thread(make_session, deployment)
    await in_scope(deployment.tenant_id, handoff.take_over, session.pk, user)
    await in_thread(say, session, "Hello, is anybody there?")
    return session, await log_in(open_page, web, user, f"/console/inbox/{session.pk}/", **options)


async def test_take_over_and_hand_back(web: str, open_page: Any, deployment: Any, agent: Any) -> None:
    session = await in_thread(make_session, deployment)
    await in_thread(say, session, "Hello")
    page = await log_in(open_page, web, agent, f"/console/inbox/{session.pk}/")
    await page.get_by_role("button", name="Take over").click()
    await expect(page.locator("#answering")).to_contain_text("You are answering")
    await page.get_by_role("button", name="Hand back").click()
    await expect(page.locator("#answering")).to_contain_text("The bot is answering")
    await expect(page.locator("#log")).to_contain_text("The bot is answering again")


@pytest.mark.parametrize("options", [{"viewport": {"width": 1366, "height": 768}}, PHONE], ids=["laptop", "phone"])
async def test_row_of_the_list_is_at_most_sixty_pixels_high(
    web: str, open_page: Any, deployment: Any, agent: Any, options: Any
) -> None:
    session = await in_thread(make_session, deployment)
    await in_thread(say, session, "Where is my refund for the order that I sent back two weeks ago?")
    page = await log_in(open_page, web, agent, "/console/inbox/", **options)
    row = page.locator("#conversations li")
    await expect(row).to_contain_text("Where is my refund")
    assert 44 <= await row.evaluate("row => row.getBoundingClientRect().height") <= 60


async def test_reply_is_sent_with_enter(web: str, open_page: Any, deployment: Any, agent: Any) -> None:
    _, page = await _talked_with(open_page, web, deployment, agent)
    await page.fill("#reply-text", "Yes, I am here.")
    await page.keyboard.press("Enter")
    await expect(page.locator("#log .say.human")).to_contain_text("Yes, I am here.")
    await expect(page.locator("#reply-text")).to_have_value("")


async def test_message_comes_in_while_something_is_being_written(
    web: str, open_page: Any, deployment: Any, agent: Any
) -> None:
    session, page = await _talked_with(open_page, web, deployment, agent)
    await page.locator("#reply-text").press_sequentially("Half a sent")
    await in_thread(say, session, "Are you still there?")
    await expect(page.locator("#log")).to_contain_text("Are you still there?")
    await expect(page.locator("#reply-text")).to_have_value("Half a sent")
    await expect(page.locator("#reply-text")).to_be_focused()


async def test_keys_are_letters_while_writing(web: str, open_page: Any, deployment: Any, agent: Any) -> None:
    _, page = await _talked_with(open_page, web, deployment, agent)
    await page.locator("#reply-text").press_sequentially("a?123")
    await expect(page.locator("#reply-text")).to_have_value("a?123")


async def test_log_stands_at_its_end(web: str, open_page: Any, deployment: Any, agent: Any) -> None:
    session, page = await _talked_with(open_page, web, deployment, agent, viewport={"width": 1280, "height": 500})
    for number in range(12):
        await in_thread(say, session, f"Line {number}")
    await expect(page.locator("#log")).to_contain_text("Line 11")
    await expect(page.get_by_text("Line 11", exact=True).first).to_be_in_viewport()


async def test_new_conversation_appears_in_the_list(web: str, open_page: Any, deployment: Any, viewer: Any) -> None:
    page = await log_in(open_page, web, viewer, "/console/inbox/")
    await expect(page.locator("#conversations")).to_contain_text("No conversations yet")
    session = await in_thread(make_session, deployment)
    await in_thread(say, session, "Anybody?")
    await expect(page.locator("#conversations")).to_contain_text(session.visitor_name)


async def test_colleague_who_takes_over_is_named_at_once(
    web: str, open_page: Any, deployment: Any, agent: Any, owner: Any
) -> None:
    session = await in_thread(make_session, deployment)
    await in_thread(say, session, "Hello")
    page = await log_in(open_page, web, agent, f"/console/inbox/{session.pk}/")
    await in_scope(deployment.tenant_id, handoff.take_over, session.pk, owner)
    await expect(page.locator("#answering")).to_contain_text(f"{owner.display_name} is answering this conversation")


async def test_phone_shows_list_or_conversation(web: str, open_page: Any, deployment: Any, agent: Any) -> None:
    _, page = await _talked_with(open_page, web, deployment, agent, **PHONE)
    await expect(page.locator("#conversations")).to_be_hidden()
    await expect(page.locator("#reply-text")).to_be_in_viewport()
    await page.get_by_label("Back to the conversations").click()
    await expect(page.locator("#conversations")).to_be_visible()


async def test_phone_opens_the_contact(web: str, open_page: Any, deployment: Any, agent: Any) -> None:
    _, page = await _talked_with(open_page, web, deployment, agent, **PHONE)
    await expect(page.locator("#contact")).to_be_hidden()
    await page.get_by_role("link", name="Contact").click()
    await expect(page.locator("#contact")).to_be_visible()


async def test_typing_and_seen_are_shown_in_the_thread(
    web: str, open_page: Any, deployment: Any, agent: Any, owner: Any
) -> None:
    session, page = await _talked_with(open_page, web, deployment, agent, **PHONE)
    colleague = await log_in(open_page, web, owner, f"/console/inbox/{session.pk}/")
    await expect(page.locator("#lookers")).to_contain_text(owner.display_name)
    event = {"type": "console.typing", "session": str(session.pk), "sender": "visitor"}
    await live.send(watchers_of(deployment.tenant_id, session.pk), event)
    await expect(page.locator("#typing")).to_have_text(f"{session.visitor_name} is typing")
    await page.locator("#reply-text").press_sequentially("Yes, I am here.")
    await expect(colleague.locator("#typing")).to_contain_text(f"{agent.display_name} is writing")
    if SHOTS:
        await page.screenshot(path=f"{SHOTS}/typing-narrow.png")
        await colleague.screenshot(path=f"{SHOTS}/typing-wide.png")
    await page.keyboard.press("Enter")
    await expect(page.locator("#log .say.human")).to_contain_text("Yes, I am here.")
    await in_scope(deployment.tenant_id, presence.mark_read, session.pk, 3)
    event = {"type": "console.changed", "what": f"session:{session.pk}"}
    await live.send(watchers_of(deployment.tenant_id, session.pk), event)
    await expect(page.locator("#log .say.human .read")).to_have_text("Seen")
    await expect(page.locator("#typing")).to_be_empty(timeout=10_000)
    if SHOTS:
        await page.screenshot(path=f"{SHOTS}/seen-narrow.png")
