"""The browser of the page benchmarks: the tests' Chromium, with logged-in members of staff."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlsplit

from playwright.async_api import Browser, StorageState, async_playwright

# What `stage` needs to show pages over plain HTTP as they are in production, and the demo page with the widget on it.
PAGES_ENV = {"SILAS_DEMO": "1"}


@contextlib.asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    from tests.e2e.conftest import FLAGS, chromium

    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        yield browser
        await browser.close()


def new_owner(tenant: Any) -> Any:
    from tests.factories.tenants import make_member

    return make_member(tenant, "owner")


def logged_in(user: Any, url: str) -> StorageState:
    """The cookies of a browser in which `user` has logged in."""
    from django.conf import settings

    from tests.factories.console import browser

    value = browser(user).cookies[settings.SESSION_COOKIE_NAME].value
    where = {"domain": str(urlsplit(url).hostname), "path": "/", "expires": -1}
    how = {"httpOnly": True, "secure": False, "sameSite": "Lax"}
    cookie: Any = {"name": settings.SESSION_COOKIE_NAME, "value": value, **where, **how}
    return {"cookies": [cookie], "origins": []}
