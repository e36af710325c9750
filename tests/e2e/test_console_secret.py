"""A secret typed into the step of a connection's set-up reaches the sealed store and no other request."""

from __future__ import annotations

import json
from typing import Any

from playwright.async_api import Page, Route, expect

from apps.connections.models import SetupRun
from kernel.tenancy import in_scope, in_thread
from tests.connections.links import link
from tests.console.test_connections import asking, secret_step
from tests.e2e.console import log_in

SECRET = "pk_live_hush"


async def step_page(web: str, open_page: Any, tenant: Any, owner: Any) -> tuple[Page, str]:
    """The page of a set-up that asks for a secret, and the name of the field's place in the store."""
    row = await in_thread(link, tenant)
    setup = await in_thread(asking, tenant, row, owner, secret_step())
    stored = await in_scope(tenant.pk, lambda: SetupRun.objects.get(pk=setup.pk))
    page = await log_in(open_page, web, owner, f"/console/connections/{row.pk}/")
    return page, str(stored.step["request"]["ref_id"])


async def test_secret_goes_to_the_store_and_nowhere_else(web: str, open_page: Any, tenant: Any, owner: Any) -> None:
    page, ref_id = await step_page(web, open_page, tenant, owner)
    sent: list[tuple[str, str]] = []

    async def store(route: Route) -> None:
        await route.fulfill(json={"stored": True})

    await page.route("**/secrets/*", store)
    page.on("request", lambda request: sent.append((request.url, request.post_data or "")))
    await page.fill("#secret", SECRET)
    await page.get_by_role("button", name="Save", exact=True).click()
    await expect(page.locator("#secret")).to_have_value("")
    told = [(url.rpartition("/")[2], json.loads(body)) for url, body in sent if "hush" in body]
    assert told == [(ref_id, {"value": SECRET})]
    assert not [url for url, _ in sent if "hush" in url]


async def test_secret_that_cannot_be_stored_goes_no_further(web: str, open_page: Any, tenant: Any, owner: Any) -> None:
    page, ref_id = await step_page(web, open_page, tenant, owner)
    sent: list[str] = []
    await page.route("**/secrets/*", lambda route: route.abort())
    page.on("request", lambda request: sent.append(request.url) if "hush" in (request.post_data or "") else None)
    await page.fill("#secret", SECRET)
    await page.get_by_role("button", name="Save", exact=True).click()
    await expect(page.get_by_role("alert")).to_contain_text("Not saved, and nothing was changed")
    assert [url.rpartition("/")[2] for url in sent] == [ref_id]
    open_page.errors.clear()  # the browser reports the request that failed


async def test_field_of_a_secret_has_no_name_that_a_form_would_send(
    web: str, open_page: Any, tenant: Any, owner: Any
) -> None:
    page, _ = await step_page(web, open_page, tenant, owner)
    field = page.locator("#secret")
    assert await field.get_attribute("name") is None
    assert await field.get_attribute("type") == "password"
    assert await field.get_attribute("autocomplete") == "off"
