"""An owner publishes a release, changes the persona, tries it with some conversations, and rolls back."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from playwright.async_api import expect

from apps.tenants.models import Deployment
from apps.tenants.services import change_deployment
from kernel.tenancy import in_scope
from tests.e2e.axe import violations
from tests.e2e.console import log_in

WIDE, PHONE = {"width": 1366, "height": 768}, {"width": 390, "height": 844}


def _edit(deployment: Deployment) -> None:
    place = Deployment.objects.get(pk=deployment.pk)
    change_deployment(place, actor="user:1", persona="Answer in two short sentences.", greeting="Good day.")


async def _picture(page: Any, name: str) -> None:
    """Kept where `SILAS_PICTURES` says."""
    if folder := os.environ.get("SILAS_PICTURES"):
        for size in (WIDE, PHONE):
            await page.set_viewport_size(size)
            await page.screenshot(path=Path(folder) / f"{name}-{size['width']}.png", full_page=True)
        await page.set_viewport_size(WIDE)


async def test_owner_publishes_tries_and_rolls_back(
    web: str, open_page: Any, tenant: Any, owner: Any, deployment: Deployment
) -> None:
    page = await log_in(open_page, web, owner, f"/console/studio/{deployment.pk}/releases/")
    await expect(page.get_by_role("heading", name="No releases yet")).to_be_visible()
    await page.get_by_role("button", name="Publish release 1").click()
    await expect(page.get_by_role("heading", name="Everything is published")).to_be_visible()
    await in_scope(tenant, _edit, deployment)
    await page.reload()
    await expect(page.get_by_role("heading", name="Changed since release 1")).to_be_visible()
    await expect(page.locator("#next ins").first).to_have_text("Answer in two short sentences.")
    await page.get_by_label("Percent of new conversations").fill("30")
    await _picture(page, "releases-changed")
    await page.get_by_role("button", name="Publish release 2").click()
    await expect(page.locator("#releases li").first).to_contain_text("live, 30%")
    await _picture(page, "releases-two")
    assert await violations(page) == []
    await page.get_by_role("button", name="Roll back to release 1").click()
    await expect(page.locator("#releases li").first).to_contain_text("restores release 1")
    await expect(page.locator("#releases li").first).to_contain_text("live, 100%")
    await page.get_by_role("link", name="Changes of release 3").click()
    await expect(page.get_by_role("heading", name="Changes since release 2")).to_be_visible()
    await _picture(page, "release")
    assert await violations(page) == []
