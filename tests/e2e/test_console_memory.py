"""Look after memories in a real browser: find, correct, pin and delete one, and import a bundle after its report."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import expect

from apps.memory import portability
from apps.memory.enums import SourceKind, Tier
from kernel.taint import Taint
from kernel.tenancy import in_thread, tenant_scope
from llm.enums import MemoryType
from tests.e2e.console import log_in
from tests.factories.memories import customer, kept_in, remember

SHOTS = os.environ.get("SILAS_SHOTS", "")
CAT, DOG = "Maria's cat is called Whiskers and she orders its food every month.", "Maria's dog is called Rex."
MINE = customer("C-1041")
PHONE = {"width": 375, "height": 760}


def fill(tenant: Any) -> None:
    remember(tenant, MINE, CAT, memory_type=MemoryType.FACT)
    remember(tenant, MINE, "She prefers to be called in the afternoon.", memory_type=MemoryType.PREFERENCE, marked=True)
    remember(tenant, customer("C-2"), "Ordered two lamps for the hall.", taint=Taint.AUTH)
    remember(tenant, MINE, "Hello!", tier=Tier.LOW_REINGESTION, source=SourceKind.CONVERSATION_RAW, reference="seq:1")


async def _shot(page: Any, name: str) -> None:
    if SHOTS:
        await page.set_viewport_size({"width": 1366, "height": 768})
        await page.screenshot(path=f"{SHOTS}/{name}-wide.png", full_page=True)
        await page.set_viewport_size(PHONE)
        await page.screenshot(path=f"{SHOTS}/{name}-phone.png", full_page=True)
        await page.set_viewport_size({"width": 1366, "height": 768})


async def test_memory_is_found_corrected_pinned_and_deleted(web: str, open_page: Any, tenant: Any, owner: Any) -> None:
    await in_thread(fill, tenant)
    page = await log_in(open_page, web, owner, "/console/memory/")
    await _shot(page, "memories")
    await page.get_by_text("Filter", exact=True).click()
    await page.get_by_label("Search").fill("whiskers")
    await page.get_by_label("Customer ID").fill("C-1041")
    await page.get_by_role("button", name="Apply").click()
    await expect(page.get_by_text("Download as JSON")).to_be_visible()
    await _shot(page, "memories-filtered")
    await page.get_by_role("link", name=CAT).click()
    await page.get_by_label("New text").fill(DOG)
    await page.get_by_role("button", name="Save correction").click()
    await expect(page.locator(".former")).to_have_text(CAT)
    await page.get_by_role("button", name="Pin").click()
    await expect(page.get_by_role("button", name="Unpin")).to_be_visible()
    await page.get_by_text("What this deletes").click()
    await _shot(page, "memory")
    await page.get_by_label("Reason").select_option("requested")
    await page.get_by_role("button", name="Delete permanently").click()
    await expect(page.get_by_role("heading", name="Memory", exact=True)).to_be_visible()
    assert DOG not in await in_thread(kept_in, tenant, MINE)


def _bundle(tenant: Any, path: Path) -> None:
    with tenant_scope(tenant):
        path.write_bytes(b"".join(portability.export_bundle(actor="system")))


async def test_bundle_is_checked_and_then_imported(
    web: str, open_page: Any, tenant: Any, owner: Any, tmp_path: Path
) -> None:
    await in_thread(fill, tenant)
    path = tmp_path / "memories.jsonl"
    await in_thread(_bundle, tenant, path)
    await in_thread(remember, tenant, MINE, DOG)
    page = await log_in(open_page, web, owner, "/console/memory/bundle/")
    await page.get_by_label("Bundle").set_input_files(path)
    await page.get_by_label("How").select_option("replace")
    await page.get_by_role("button", name="Check file").click()
    await expect(page.get_by_text("Importing deletes 4 memories first")).to_be_visible()
    await _shot(page, "memory-bundle")
    assert DOG in await in_thread(kept_in, tenant, MINE)
    await page.get_by_role("button", name="Import now").click()
    await expect(page.get_by_role("heading", name="Imported")).to_be_visible()
    assert DOG not in await in_thread(kept_in, tenant, MINE)


async def test_forged_bundle_is_refused_with_its_line(
    web: str, open_page: Any, tenant: Any, owner: Any, tmp_path: Path
) -> None:
    await in_thread(fill, tenant)
    path = tmp_path / "memories.jsonl"
    await in_thread(_bundle, tenant, path)
    path.write_bytes(path.read_bytes().replace(b"Whiskers", b"Blackers"))
    page = await log_in(open_page, web, owner, "/console/memory/bundle/")
    await page.get_by_label("Bundle").set_input_files(path)
    await page.get_by_role("button", name="Check file").click()
    await expect(page.locator("#notice")).to_contain_text("Line 2")
    open_page.errors.clear()


@pytest.mark.parametrize("size", [{"width": 1366, "height": 768}, PHONE])
async def test_long_texts_do_not_scroll_sideways(web: str, open_page: Any, tenant: Any, owner: Any, size: Any) -> None:
    item = await in_thread(remember, tenant, customer("x" * 120), "y" * 1900)
    page = await log_in(open_page, web, owner, "/console/memory/")
    await page.set_viewport_size(size)
    for address in ("/console/memory/", f"/console/memory/?customer={'x' * 120}", f"/console/memory/{item.pk}/"):
        await page.goto(web + address)
        assert not await page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"), (
            address
        )
