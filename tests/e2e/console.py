"""A member of staff at the console, in a real browser."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from playwright.async_api import Page

from kernel.tenancy import in_thread
from tests.factories.console import browser


async def log_in(open_page: Any, web: str, user: Any, path: str = "/console/", **options: Any) -> Page:
    """Who has logged in before; the page of the login costs two pages more, and has tests of its own (the story)."""
    session = {
        "name": settings.SESSION_COOKIE_NAME,
        "value": await in_thread(_session_of, user),
        "domain": urlsplit(web).hostname,
        "path": "/",
        "expires": -1,
        "httpOnly": True,
        "secure": False,
        "sameSite": "Lax",
    }
    kept = {"cookies": [session], "origins": []}
    page: Page = await open_page(f"{web}{path}", storage_state=kept, **options)
    await page.wait_for_selector("#rail" if options.get("java_script_enabled") is False else "[data-line=open]")
    return page


def _session_of(user: Any) -> str:
    return str(browser(user).cookies[settings.SESSION_COOKIE_NAME].value)
