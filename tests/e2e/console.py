"""A member of staff at the console, in a real browser."""

from __future__ import annotations

from typing import Any

from playwright.async_api import Page

PASSWORD = "a-long-password"


async def log_in(open_page: Any, web: str, user: Any, path: str = "/console/", **options: Any) -> Page:
    page: Page = await open_page(f"{web}/console/login/?next={path}", **options)
    await page.fill("#username", user.email)
    await page.fill("#password", PASSWORD)
    await page.click("button")
    await page.wait_for_selector("#rail" if options.get("java_script_enabled") is False else "[data-line=open]")
    return page
