"""A site says who its visitor is, and everybody involved sees it: the visitor what they are and for how long, the page
that it was believed, the row whose conversation it is. A real web process at the other end of the line."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest
from playwright.async_api import Page, expect

from apps.access.models import AccessLevel
from apps.sessions.models import ChatSession
from apps.tenants.models import Deployment
from kernel.tenancy import in_thread, tenant_scope
from tests.e2e.conftest import OpenPage, Site
from tests.e2e.widget import Widget, opened
from tests.factories.signed import Site as Signer
from tests.factories.signed import make_site
from tests.factories.tenants import make_deployment

GATE = "identity_verified"
OVER = "For your security, you've been signed out here."


@pytest.fixture
def desk(site: Site, tenant: Any) -> Deployment:
    made = make_deployment(tenant, allowed_origins=[site.origin])
    with tenant_scope(tenant):
        AccessLevel.objects.create(deployment=made, name="verified", order=1, requires=[GATE], expires_after=900)
    return made


@pytest.fixture
def signer(desk: Deployment) -> Signer:
    return make_site(desk)


@pytest.fixture
def embedded(site: Site, web: str, desk: Deployment) -> Site:
    errors = "window.seen = []; addEventListener('silas:error', ({detail}) => seen.push(detail.code));"
    site.body = (
        f"<!doctype html><html lang=en><title>Site</title><script>{errors}</script>"
        f'<script src="{web}/widget/v1/loader.js" data-deployment="{desk.public_key}" async></script>'
    )
    return site


async def shown(open_page: OpenPage, site: Site, token: str = "") -> tuple[Page, Widget]:
    page = await open_page(site.origin)
    if token:
        await page.evaluate("(jwt) => Silas.identify(jwt)", token)
    return page, await opened(page)


def _levels(desk: Deployment) -> list[tuple[str, str]]:
    with tenant_scope(desk.tenant_id):
        rows = ChatSession.objects.filter(deployment=desk).order_by("created_at")
        return list(rows.values_list("level", "customer"))


async def levels(desk: Deployment) -> list[tuple[str, str]]:
    return await in_thread(_levels, desk)


async def test_visitor_whom_the_site_vouches_for_sees_their_level_and_how_long_it_lasts(
    open_page: OpenPage, embedded: Site, desk: Deployment, signer: Signer
) -> None:
    page, widget = await shown(open_page, embedded, await in_thread(signer.sign))
    await expect(widget.level).to_have_text("verified · 10 min")
    await expect(widget.level).to_have_attribute("title", "You're verified for another 10 minutes.")
    assert await levels(desk) == [("verified", "C-1")]
    assert await page.evaluate("seen") == []


async def test_visitor_who_is_signed_in_while_they_talk_keeps_their_conversation(
    open_page: OpenPage, embedded: Site, desk: Deployment, signer: Signer
) -> None:
    page, widget = await shown(open_page, embedded)
    await widget.say("Hello")
    await expect(widget.bot).to_have_count(1)
    await expect(widget.level).to_be_hidden()
    await page.evaluate("(jwt) => Silas.identify(jwt)", await in_thread(signer.sign))
    await expect(widget.level).to_contain_text("verified")
    await expect(widget.mine).to_have_text(["Hello"])
    assert await levels(desk) == [("verified", "C-1")]


async def test_level_that_ends_is_told_and_gone(
    open_page: OpenPage, embedded: Site, desk: Deployment, signer: Signer
) -> None:
    page = await open_page("about:blank")
    await page.clock.install()
    await page.goto(embedded.origin)
    await page.evaluate("(jwt) => Silas.identify(jwt)", await in_thread(signer.sign))
    widget = await opened(page)
    await expect(widget.level).to_have_text("verified · 10 min")
    await page.clock.fast_forward("11:00")
    await expect(widget.level).to_be_hidden()
    await expect(widget.log).to_contain_text(OVER)


async def test_visitor_whom_a_strangers_key_vouches_for_sees_no_level(
    open_page: OpenPage, embedded: Site, desk: Deployment, signer: Signer
) -> None:
    forged = await in_thread(partial(signer.sign, secret="another-secret-of-thirty-two-bytes"))
    page, widget = await shown(open_page, embedded, forged)
    await page.wait_for_function("seen.length > 0")
    await expect(widget.level).to_be_hidden()
    assert json.dumps([await levels(desk), await page.evaluate("seen")]) == '[[["public", ""]], ["identity_signature"]]'
