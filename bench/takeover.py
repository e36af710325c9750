"""Measure how soon a visitor sees that a person has taken over.

Counted from the click on Take over in the console to the first frame in which the widget shows the banner with the
person's name: both pages are real, in one Chromium, whose pages share a clock. The baseline is how soon the console
itself shows that the press has worked.
"""

from __future__ import annotations

import asyncio
import math
import statistics
from typing import Any

from playwright.async_api import Browser, Page, expect

from bench.browsing import PAGES_ENV, chromium, logged_in, new_owner
from bench.report import Row
from bench.stage import Stage, stage

WARM_UP, ROUNDS = 5, 60
MOST_MS = 300.0
# When was it clicked, and when was the first frame after `test` became true? In milliseconds of the epoch.
_CLICKED = "addEventListener('click', (event) => { window.clicked = performance.timeOrigin + event.timeStamp; }, true)"
_PAINTED = """
    (test) => {
      const is = new Function(`return ${test}`);
      const painted = () => performance.timeOrigin + performance.now();
      window.shown = new Promise((done) => {
        const look = () => is() && (watch.disconnect(), requestAnimationFrame(() => setTimeout(() => done(painted()))));
        const watch = new MutationObserver(look);
        const what = { subtree: true, childList: true, attributes: true, characterData: true };
        watch.observe(document, what);
      });
    }
"""
_BANNER = "!document.querySelector('[data-owner]').hidden"
_TAKEN = "document.querySelector('.takeover.mine') !== null"


def run() -> list[Row]:
    """p50 and p95 of sixty."""
    with stage(PAGES_ENV, files=True) as ready:
        visitor, console = asyncio.run(_measured(ready))
    bound = f"< {MOST_MS:.0f} ms"
    return [
        _row("p50", statistics.median(visitor), statistics.median(console)),
        _row("p95", _p95(visitor), _p95(console), bound, _p95(visitor) < MOST_MS),
    ]


def _row(which: str, value: float, baseline: float, bound: str = "", holds: bool | None = None) -> Row:
    name, beside = f"click on Take over to the visitor's banner, {which}", "to the console's own page"
    return Row(name, value, "ms", beside, baseline, value / baseline, bound, holds)


def _p95(times: list[float]) -> float:
    return sorted(times)[math.ceil(0.95 * len(times)) - 1]


async def _measured(ready: Stage) -> tuple[list[float], list[float]]:
    async with chromium() as browser:
        visitor = await _visitor(browser, ready)
        console = await _console(browser, ready)
        rounds = [await _round(console, visitor) for _ in range(WARM_UP + ROUNDS)][WARM_UP:]
    return [at for at, _ in rounds], [at for _, at in rounds]


async def _visitor(browser: Browser, ready: Stage) -> Any:
    """The frame of a widget in which something was said and answered."""
    page = await browser.new_page()
    await page.goto(f"{ready.url}/demo/{ready.deployment.tenant.slug}/")
    await page.locator("[data-silas] .bubble").click()
    inside = page.frame_locator("[data-silas] iframe")
    await inside.get_by_role("textbox").fill("Is anybody there?")
    await inside.get_by_role("textbox").press("Enter")
    await expect(inside.locator("[data-rows] .bot").first).to_be_visible(timeout=30_000)
    return await (await page.locator("[data-silas] iframe").element_handle()).content_frame()


async def _console(browser: Browser, ready: Stage) -> Page:
    user = await asyncio.to_thread(new_owner, ready.deployment.tenant)
    kept = await asyncio.to_thread(logged_in, user, ready.url)
    page = await (await browser.new_context(storage_state=kept)).new_page()
    await page.add_init_script(_CLICKED)
    await page.goto(f"{ready.url}/console/inbox/?tab=all")
    await page.locator(".list li a").first.click()
    await page.wait_for_selector("[data-line=open]")
    return page


async def _round(console: Page, visitor: Any) -> tuple[float, float]:
    """Taken over and handed back: how long until the visitor, and until the console, showed it."""
    await visitor.evaluate(_PAINTED, _BANNER)
    await console.evaluate(_PAINTED, _TAKEN)
    await console.get_by_role("button", name="Take over").click()
    at = [await page.evaluate("window.shown") for page in (visitor, console)]
    clicked = await console.evaluate("window.clicked")
    await console.get_by_role("button", name="Hand back to the bot").click()
    await expect(visitor.locator("[data-owner]")).to_be_hidden(timeout=30_000)
    await expect(console.get_by_role("button", name="Take over")).to_be_visible(timeout=30_000)
    return at[0] - clicked, at[1] - clicked
