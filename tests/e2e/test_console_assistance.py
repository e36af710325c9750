"""Assistance in the inbox, in a real browser: what it suggests is put into the reply, marked, and sent by nobody."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.async_api import Page, ViewportSize, expect

from apps.copilot.enums import AssistanceKind
from apps.inbox import handoff
from apps.sessions.models import ChatSession, ChronicleEntry
from kernel.tenancy import in_scope, in_thread
from tests.e2e.axe import violations
from tests.e2e.console import log_in
from tests.factories.copilot import records, talked
from tests.factories.knowledge import ingest_texts

SHOTS = os.environ.get("SILAS_SHOTS", "")
WIDE, NARROW = ViewportSize(width=1366, height=768), ViewportSize(width=375, height=812)
RETURNS = "# Returns\n\nYou can return an item within 30 days <b>of buying it</b>.\n"
QUESTION = "How long do I have to return an item?"


@pytest.fixture
async def session(tenant: Any, deployment: Any, agent: Any, tmp_path: Path) -> ChatSession:
    await in_thread(ingest_texts, tenant, tmp_path, returns=RETURNS)
    row: ChatSession = await in_thread(talked, deployment, QUESTION)
    await in_scope(tenant.pk, lambda: ChatSession.objects.filter(pk=row.pk).update(owner="bot"))
    await in_scope(tenant.pk, handoff.take_over, row.pk, agent)
    return row


def _at(session: ChatSession) -> str:
    return f"/console/inbox/{session.pk}/"


async def _shot(page: Page, name: str) -> None:
    if SHOTS:
        await page.screenshot(path=f"{SHOTS}/{name}.png")


@pytest.mark.parametrize(("size", "scheme"), [(WIDE, "light"), (WIDE, "dark"), (NARROW, "light"), (NARROW, "dark")])
async def test_suggestion_becomes_a_marked_draft_and_is_not_sent(
    web: str, open_page: Any, session: ChatSession, agent: Any, size: ViewportSize, scheme: Literal["light", "dark"]
) -> None:
    page = await log_in(open_page, web, agent, _at(session), viewport=size, color_scheme=scheme)
    before = await in_scope(session.tenant_id, ChronicleEntry.objects.count)
    await page.locator("#reply-text").focus()
    await page.keyboard.press("Alt+g")
    result = page.locator("#copilot-result .assistance")
    await expect(result).to_contain_text("30 days")
    await expect(result).to_contain_text("Suggested")
    await expect(result.locator("b b")).to_have_count(0)
    await result.locator("summary").click()
    await expect(result.locator(".assistance-sources li")).to_contain_text("Returns")
    assert await violations(page) == []
    wide = await page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
    assert not wide
    await expect(page.locator("#reply-text")).to_be_in_viewport()
    await _shot(page, f"suggested-{size['width']}-{scheme}")
    await result.get_by_role("button", name="Insert into the reply").click()
    await expect(page.locator("#reply-text")).to_be_focused()
    assert "30 days" in await page.locator("#reply-text").input_value()
    await expect(page.locator("#copilot-mark")).to_be_visible()
    await expect(result).to_have_count(0)
    await _shot(page, f"inserted-{size['width']}-{scheme}")
    assert await in_scope(session.tenant_id, ChronicleEntry.objects.count) == before
    await page.keyboard.press("Enter")
    await expect(page.locator("#log .say.human")).to_contain_text("30 days")
    await expect(page.locator("#copilot-mark")).to_be_hidden()


async def test_menu_rewrites_summarizes_and_says_what_needs_a_model(
    web: str, open_page: Any, session: ChatSession, agent: Any
) -> None:
    page = await log_in(open_page, web, agent, _at(session), viewport=WIDE)
    await page.fill("#reply-text", "You have thirty days. Let me know if you need anything else. Have a nice day.")
    await page.keyboard.press("Alt+w")
    menu = page.locator("#copilot-menu")
    await expect(menu.get_by_role("button").first).to_be_focused()
    await _shot(page, "assist-menu")
    assert await violations(page) == []
    await menu.locator(f"[data-assist={AssistanceKind.SHORTER}]").click()
    result = page.locator("#copilot-result .assistance")
    await expect(result).to_contain_text("thirty days")
    await result.get_by_role("button", name="Replace my draft").click()
    assert "nice day" not in await page.locator("#reply-text").input_value()
    await page.keyboard.press("Alt+w")
    await menu.locator(f"[data-assist={AssistanceKind.FRIENDLIER}]").click()
    await expect(page.locator("#copilot-result [data-refusal=no_model]")).to_contain_text("needs a model")
    open_page.errors.clear()  # a refusal that is shown is reported by the browser
    await _shot(page, "needs-a-model")
    await page.keyboard.press("Alt+w")
    await menu.locator(f"[data-assist={AssistanceKind.SUMMARY}]").click()
    await expect(result).to_contain_text(QUESTION)
    await page.keyboard.press("Alt+w")
    await menu.locator(f"[data-assist={AssistanceKind.BOT_PREVIEW}]").click()
    await expect(result.locator("header")).to_contain_text("bot")
    await expect(result).to_contain_text("30 days")
    await _shot(page, "bot-preview")
    await page.locator("#reply-text").focus()
    await page.keyboard.press("Escape")
    await expect(result).to_have_count(0)
    assert len(await in_thread(records, session)) == 4
