"""Measure the first paint of the console's pages.

The first contentful paint as Chromium tells it, of a browser that has never been here: an empty cache, in a company
with a hundred conversations and twenty open cards. Network and processor are slowed as Lighthouse slows them: `desktop`
(10 Mbps, 40 ms there and back, the processor as it is) is where operators sit, and has the promise; `phone` is
Lighthouse's slow 4G (1.6 Mbps, 150 ms, a processor four times slower). The baseline is a page without style or script
on the same line.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from playwright.async_api import Browser, StorageState

from bench.browsing import PAGES_ENV, chromium, logged_in, new_owner
from bench.report import Row
from bench.stage import Stage, stage

ROUNDS = 5
MOST_MS = 1000.0
CONVERSATIONS, OPEN_CARDS = 100, 20
PLAIN = "/health"
ON_A_PHONE = ("login", "inbox", "a conversation", "review", "activity")
PAGES = {
    "login": "/console/login/",
    "inbox": "/console/inbox/?tab=all",
    "a conversation": "/console/inbox/{conversation}/",
    "review": "/console/review/",
    "activity": "/console/activity/",
    "insights": "/console/insights/",
    "work": "/console/work/",
    "runs": "/console/runs/",
    "queues": "/console/queues/",
    "gates": "/console/gates/",
    "knowledge": "/console/knowledge/",
    "studio": "/console/studio/{chatbot}/",
    "spending": "/console/spending/",
    "safety": "/console/safety/",
    "account": "/console/account/",
}
_FIRST_PAINT = """
    () => new Promise((done) => {
      const tell = (list) => {
        const found = list.getEntriesByName('first-contentful-paint');
        if (found.length) done(found[0].startTime);
      };
      new PerformanceObserver(tell).observe({ type: 'paint', buffered: true });
    })
"""


@dataclass(frozen=True)
class Line:
    """`bits` a second, `trip` milliseconds there and back, `slower` the factor of the processor."""

    name: str
    bits: float
    trip: float
    pages: tuple[str, ...]
    slower: int = 1
    most: float | None = None


LINES = (
    Line("desktop", 10_240_000, 40, tuple(PAGES), most=MOST_MS),
    Line("phone", 1_638_400, 150, ON_A_PHONE, slower=4),
)


@dataclass(frozen=True)
class House:
    """Where it stands, who looks, and what they look at."""

    url: str
    kept: StorageState
    named: dict[str, str]

    def address(self, path: str) -> str:
        return f"{self.url}{path.format(**self.named)}"


def run() -> list[Row]:
    """The median of five first visits to each page, on each line."""
    with stage(PAGES_ENV, files=True) as ready:
        return asyncio.run(_measured(_furnished(ready)))


def _furnished(ready: Stage) -> House:
    from kernel.tenancy import tenant_scope
    from tests.factories.console import make_card
    from tests.factories.sessions import make_session, say

    place = ready.deployment
    for number in range(CONVERSATIONS):
        session = make_session(place)
        say(session, f"Where is my parcel number {number}?")
    with tenant_scope(place.tenant):
        for _ in range(OPEN_CARDS):
            make_card(place.tenant)
    named = {"conversation": str(session.pk), "chatbot": str(place.pk)}
    return House(ready.url, logged_in(new_owner(place.tenant), ready.url), named)


async def _measured(house: House) -> list[Row]:
    async with chromium() as browser:
        return [row for line in LINES for row in await _of_line(browser, house, line)]


async def _of_line(browser: Browser, house: House, line: Line) -> list[Row]:
    for name in line.pages:
        await _painted(browser, house, line, PAGES[name])  # what the server does only once
    plain = await _median(browser, house, line, PLAIN)
    found = {name: await _median(browser, house, line, PAGES[name]) for name in line.pages}
    return [_row(f"first paint, {line.name}, {name}", value, plain, line) for name, value in found.items()]


def _row(name: str, value: float, plain: float, line: Line) -> Row:
    bound, holds = (f"< {line.most:.0f} ms", value < line.most) if line.most else ("", None)
    return Row(name, value, "ms", "a page of text alone", plain, value / plain, bound, holds)


async def _median(browser: Browser, house: House, line: Line, path: str) -> float:
    times = [await _painted(browser, house, line, path) for _ in range(ROUNDS)]
    if os.environ.get("BENCH_ALL"):
        print(line.name, path, [round(time) for time in times], file=sys.stderr)
    return statistics.median(times)


async def _painted(browser: Browser, house: House, line: Line, path: str) -> float:
    """One first visit."""
    context = await browser.new_context(storage_state=None if path == PAGES["login"] else house.kept)
    try:
        page = await context.new_page()
        await slow_down(await context.new_cdp_session(page), line)
        answer = await page.goto(house.address(path), wait_until="commit")
        at = urlsplit(page.url).path
        if answer is None or not answer.ok or at != urlsplit(house.address(path)).path:
            raise RuntimeError(f"{path} led to {at}")
        return float(await page.evaluate(_FIRST_PAINT))
    finally:
        await context.close()


async def slow_down(devtools: Any, line: Line) -> None:
    each_way = {"downloadThroughput": line.bits / 8, "uploadThroughput": line.bits / 8}
    await devtools.send("Network.enable")
    await devtools.send("Network.emulateNetworkConditions", {"offline": False, "latency": line.trip, **each_way})
    await devtools.send("Emulation.setCPUThrottlingRate", {"rate": line.slower})
