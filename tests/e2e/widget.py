"""The widget as a visitor's hands and eyes find it on a page."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from playwright.async_api import FrameLocator, Locator, Page, expect

from tests.e2e.conftest import OpenPage
from tests.e2e.peer import Peer


class Widget:
    def __init__(self, page: Page) -> None:
        self.page = page
        self.bubble = page.locator("[data-silas] .bubble")
        self.panel = page.locator("[data-silas] .panel")
        self.frame: FrameLocator = page.frame_locator("[data-silas] iframe")
        self.field = self.frame.locator("[data-composer] textarea")  # a question may have fields of its own
        self.home = self.frame.locator(".home:not([hidden])")
        self.log = self.frame.get_by_role("log")
        self.mine = self.log.locator(".you")
        self.bot = self.log.locator("[data-rows] .bot")
        self.live = self.log.locator(".live")
        self.work = self.log.locator(".await")
        self.subtitle = self.frame.locator("[data-subtitle]")
        self.level = self.frame.locator("[data-level]")
        self.owner = self.frame.locator("[data-owner]")
        self.notice = self.frame.locator("[data-notice]")
        self.state = self.frame.locator("[data-state]")
        self.latest = self.frame.locator("[data-latest]")

    async def open(self) -> Widget:
        """Open the chat, and from its home screen the conversation that was active last, or the first one."""
        await self.bubble.click()
        await expect(self.field.or_(self.home).first).to_be_visible()
        if await self.home.is_visible():
            earlier = self.home.locator("button.talk:not(.article)")
            await (earlier if await earlier.count() else self.home.locator(":scope > button.first")).first.click()
        await expect(self.field).to_be_visible()
        return self

    async def close(self) -> None:
        """By the site's own code; the frame hears of it a moment later."""
        heard = "addEventListener('message', ({data}) => data.silas === 'close' && done())"
        frame = self.frame.locator("html")
        await frame.evaluate(f"() => {{ window.closing = new Promise((done) => {heard}); }}")
        await self.page.evaluate("Silas.close()")
        await frame.evaluate("() => window.closing")

    async def say(self, text: str) -> None:
        await self.field.fill(text)
        await self.field.press("Enter")

    def button(self, name: str) -> Locator:
        return self.frame.get_by_role("button", name=name)


async def expect_that(holds: Callable[[], Awaitable[bool]], *, within: float = 10) -> None:
    """Ask until it holds."""
    until = asyncio.get_running_loop().time() + within
    for _ in iter(lambda: asyncio.get_running_loop().time() < until, False):
        if await holds():
            return
        await asyncio.sleep(0.05)
    raise TimeoutError


async def opened(page: Page) -> Widget:
    return await Widget(page).open()


async def talking(open_page: OpenPage, address: str, peer: Peer, **options: Any) -> tuple[Page, Widget]:
    """The widget, open and connected to `peer`."""
    page = await open_page(address, peer=peer, **options)
    widget = await opened(page)
    await peer.hears(1, "auth")
    return page, widget
