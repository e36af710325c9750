"""What a person does at a page, counted, and what each step looks like (`SILAS_SHOTS=<folder>` saves pictures)."""

from __future__ import annotations

import os

from playwright.async_api import Locator, Page, expect


class Hands:
    """Counts each click, each choice in a list and each key as a press, and each field that is typed into as a field.
    How long it takes: 2.5 s for each of them, 0.28 s a typed character (the keystroke-level model with an average
    typist)."""

    def __init__(self) -> None:
        self.presses = 0
        self.fields = 0
        self.characters = 0

    async def press(self, target: Locator) -> None:
        await target.click()
        self.presses += 1

    async def choose(self, target: Locator, label: str) -> None:
        await target.select_option(label=label)
        self.presses += 1

    async def type(self, target: Locator, text: str) -> None:
        await target.fill(text)
        self.fields += 1
        self.characters += len(text)

    async def key(self, page: Page, *names: str) -> None:
        for name in names:
            await page.keyboard.press(name)
            self.presses += 1

    async def tab_to(self, page: Page, target: Locator, most: int = 120) -> None:
        """Reach it by the Tab key alone."""
        for _ in range(most):
            if await target.evaluate("element => element === document.activeElement"):
                return
            await self.key(page, "Tab")
        await expect(target).to_be_focused(timeout=1)

    @property
    def seconds(self) -> float:
        return 2.5 * (self.presses + self.fields) + 0.28 * self.characters

    def __str__(self) -> str:
        return f"{self.presses} presses, {self.fields} fields, {self.seconds:.0f} s of steps"


async def shoot(page: Page, name: str) -> None:
    if folder := os.environ.get("SILAS_SHOTS"):
        await page.screenshot(path=f"{folder}/{name}.png")
