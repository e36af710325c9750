"""An owner erases a visitor's data beside the conversation and downloads the receipt, in a real browser."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from playwright.async_api import Page, expect

from apps.bus.enums import Kind
from apps.sessions.models import Turn
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


async def test_visitor_is_erased_with_a_receipt(web: str, open_page: Any, deployment: Any, owner: Any) -> None:
    session = await in_thread(make_session, deployment)
    await in_thread(say, session, "My cat is called Mephisto")
    page = await log_in(open_page, web, owner, f"/console/inbox/{session.pk}/")
    section = page.get_by_role("heading", name="Personal data").locator("..")
    await section.get_by_text("Erase personal data").click()
    await _look(page, "erase-visitor")
    await section.get_by_role("button", name="Erase for good").click()
    await expect(page.get_by_text("Personal data is being erased")).to_be_visible()
    await _look(page, "erasure-running")
    await in_scope(deployment.tenant_id, lambda: Turn.objects.update(status="done"))
    await carry_out_due(deployment.tenant_id, Kind.PERSON_ERASURE)
    await page.reload()
    await expect(page.get_by_role("heading", name="Kept")).to_be_visible()
    await _look(page, "erasure")
    async with page.expect_download() as started:
        await page.get_by_role("link", name="Download receipt").click()
    downloaded = await started.value
    text = await in_thread(Path(await downloaded.path()).read_text)
    assert json.loads(text)["receipt"]["person"] == f"session:{session.pk}"
    await page.goto(f"{web}/console/contacts/erasures/")
    await expect(page.get_by_text(f"session:{session.pk}")).to_be_visible()
    await _look(page, "erasures")
