"""A policy is set, and a conversation shows in the inbox when its reply is due and overdue, in a real browser."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any

from playwright.async_api import Page, expect

from apps.bus.enums import Kind
from apps.inbox.models import SlaClock
from apps.sessions import person_wanted
from apps.sessions.locks import lock_session
from apps.sessions.models import ChatSession
from kernel.clock import now
from kernel.tenancy import in_scope, in_thread
from tests.e2e.axe import violations
from tests.e2e.console import log_in
from tests.factories.bus import carry_out_due
from tests.factories.sessions import make_session, say

SHOTS = os.environ.get("SILAS_SHOTS", "")
SIZES = {"wide": (1366, 768), "narrow": (390, 812)}


async def _look(page: Page, name: str) -> None:
    """No rule of accessibility is broken, nothing is cut off at the side; pictures where they are asked for."""
    for size, (width, height) in SIZES.items():
        await page.set_viewport_size({"width": width, "height": height})
        assert await violations(page) == []
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        if SHOTS:
            await page.screenshot(path=f"{SHOTS}/{name}-{size}.png", full_page=True)
    await page.set_viewport_size({"width": 1366, "height": 768})


def _want(session: ChatSession) -> None:
    person_wanted.want_person(lock_session(session.pk), because=person_wanted.ASKED)


def _miss(session: ChatSession) -> None:
    """As if the reply had been due for an hour."""
    past = now() - timedelta(minutes=61)
    SlaClock.objects.filter(session=session, target="first_reply").update(due_at=past, outcome="missed")


async def test_policy_is_set_and_the_inbox_shows_what_is_due(
    web: str, open_page: Any, deployment: Any, owner: Any
) -> None:
    page = await log_in(open_page, web, owner, "/console/sla-policies/new/")
    await page.get_by_label("Name", exact=True).fill("Standard")
    await page.get_by_label("First reply", exact=True).fill("90")
    await page.get_by_label("Resolution", exact=True).fill("48")
    await page.get_by_label("Resolution: unit").select_option(label="hours")
    await page.get_by_label("Count time").select_option(label="Around the clock")
    await _look(page, "sla-policy-new")
    await page.get_by_role("button", name="Create policy").click()
    await expect(page.get_by_role("button", name="Delete policy")).to_be_visible()
    await page.goto(f"{web}/console/sla-policies/")
    await expect(page.get_by_text("First reply within 1 h 30 min")).to_be_visible()
    await _look(page, "sla-policies")

    due, late = await in_thread(make_session, deployment), await in_thread(make_session, deployment)
    for session, text in ((due, "Where is my order with the two blue chairs?"), (late, "I want my money back, please")):
        await in_thread(say, session, text)
        await in_scope(deployment.tenant_id, _want, session)
    await carry_out_due(deployment.tenant_id, Kind.SLA_CLOCKS)
    await in_scope(deployment.tenant_id, _miss, late)
    await page.goto(f"{web}/console/inbox/?sort=due")
    rows = page.locator("#conversations li a[id^=c-]")
    await expect(rows.nth(0)).to_contain_text("Overdue by 1 h")
    await expect(rows.nth(1)).to_contain_text("Reply due in 1 h")
    for index in range(2):
        box = await rows.nth(index).bounding_box()
        assert box is not None
        assert box["height"] <= 60
    await _look(page, "sla-inbox")
    await page.locator("#only-overdue").click()
    await expect(rows).to_have_count(1)
