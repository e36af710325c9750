"""Somebody starts an empty installation and has a chatbot on their site: five screens, and nothing to read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from tests import prepared
from tests.e2e.conftest import OpenPage, Site
from tests.e2e.hands import Hands, shoot
from tests.e2e.widget import opened
from tests.platform.runs import Run


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[str]:
    """The address that the start of an installation without a company prints."""
    prepared.lay(tmp_path)
    run = Run(tmp_path, "--no-demo")
    run.wait_for("ready ")
    yield run.wait_for("set up ").split()[-1]
    run.end()


async def _screen(page: Page, number: int) -> None:
    await expect(page.get_by_text(f"{number} of 5", exact=True)).to_be_visible()
    await shoot(page, f"first-run-{number}")


async def test_five_screens_lead_from_nothing_to_an_answer_on_a_site(
    empty: str, open_page: OpenPage, site: Site
) -> None:
    hands = Hands()
    page = await open_page(empty)
    await _screen(page, 1)
    for label, said in {
        "Company": "Alder & Sons",
        "Your name": "Ada Alder",
        "Email address": "ada@alder.example",
        "Password": "a-long-password",
    }.items():
        await hands.type(page.get_by_label(label), said)
    await hands.press(page.get_by_role("button", name="Create account and continue"))
    await _screen(page, 2)
    await hands.press(page.get_by_role("button", name="Continue with this model"))
    await _screen(page, 3)
    await hands.press(page.get_by_text("Write text"))
    await hands.type(page.get_by_label("Title"), "Opening hours")
    await hands.type(page.get_by_label("Text", exact=True), "The shop opens at eight in the morning.")
    await hands.press(page.get_by_role("button", name="Add text"))
    await expect(page.locator("#intakes .chip")).to_have_text("Read")
    await hands.press(page.get_by_role("button", name="Continue", exact=True))
    await _screen(page, 4)
    await hands.type(page.get_by_label("Websites, one per line"), site.origin.removeprefix("http://"))
    await hands.press(page.get_by_role("button", name="Allow and continue"))
    await _screen(page, 5)
    watched = page.locator("#installed")
    await expect(watched.get_by_text(site.origin, exact=True)).to_be_visible()
    await expect(watched.locator(".chip")).to_have_text("waiting")
    await hands.press(page.get_by_role("button", name="Copy code"))
    site.body = f"<!doctype html><html lang=en><title>Alder & Sons</title>{await page.inner_text('#snippet')}"
    visitor = await opened(await open_page(site.origin))
    await expect(watched.locator(".chip")).to_have_text("detected")
    await shoot(page, "first-run-detected")
    print(f"\nfirst run to embedded widget: {hands}")
    assert hands.seconds <= 90
    await visitor.say("When does the shop open?")
    await expect(visitor.bot.first).to_contain_text("eight in the morning")
    await shoot(visitor.page, "first-run-answered")
