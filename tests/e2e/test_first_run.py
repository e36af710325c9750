"""Somebody starts an empty installation and has a chatbot on their site: five screens, and nothing to read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.async_api import Locator, Page, expect

from tests import prepared
from tests.e2e.conftest import OpenPage, Site
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


class Hands:
    """What a person does at a page, and how long it takes them: 2.5 s for each press or field, 0.28 s a typed character
    (the keystroke-level model with an average typist)."""

    def __init__(self) -> None:
        self.presses = 0
        self.fields = 0
        self.characters = 0

    async def press(self, target: Locator) -> None:
        await target.click()
        self.presses += 1

    async def type(self, target: Locator, text: str) -> None:
        await target.fill(text)
        self.fields += 1
        self.characters += len(text)

    @property
    def seconds(self) -> float:
        return 2.5 * (self.presses + self.fields) + 0.28 * self.characters


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
    print(
        f"first run to embedded widget: {hands.presses} presses, {hands.fields} fields, {hands.seconds:.0f} s of steps"
    )
    assert hands.seconds <= 90
    await visitor.say("When does the shop open?")
    await expect(visitor.bot.first).to_contain_text("eight in the morning")
