"""Pages look as they did: each is compared with a coarse grey picture of itself in `tests/data/pictures`.

After a change that is meant, `SILAS_PICTURES=write pytest tests/e2e/test_visual.py` writes the pictures anew; look at
them, and at the pages, before they are committed. Times and other words that differ between runs are covered.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Page, expect

from apps.inbox import handoff
from apps.tenants.enums import Role
from apps.tenants.models import Deployment, Membership, Tenant, User
from kernel.tenancy import in_thread, tenant_scope
from tests.e2e.conftest import OpenPage
from tests.e2e.console import log_in
from tests.e2e.peer import Peer
from tests.e2e.pictures import coarse_grey, grey_png, pixels, share_that_differs
from tests.e2e.widget import Widget, talking
from tests.factories.console import make_card
from tests.factories.knowledge import ingest_texts
from tests.factories.sessions import make_session, say
from tests.factories.tenants import make_deployment, make_tenant, make_user

FOLDER = Path(__file__).resolve().parents[1] / "data" / "pictures"
WRITES = os.environ.get("SILAS_PICTURES") == "write"
TOLERATED = 0.01  # of all squares: another version of the browser draws letters a little differently
LAPTOP, PHONE = {"width": 1366, "height": 768}, {"width": 375, "height": 812}
LOOKS: dict[str, dict[str, Any]] = {
    "light": {"color_scheme": "light", "viewport": LAPTOP},
    "dark": {"color_scheme": "dark", "viewport": LAPTOP},
    "phone": {"color_scheme": "light", "viewport": PHONE, "has_touch": True},
}
VARYING = ("time", "[data-varies]", "#rail .count", "[data-preview]", "input[type=date]")


@dataclass(frozen=True)
class Company:
    """A company whose every name is the same in each run."""

    tenant: Tenant
    owner: User
    deployment: Deployment


@pytest.fixture(scope="module")
def browser(whole_browser: Browser) -> Browser:
    """The shell without windows draws its pages a little differently; the pictures show what people see."""
    return whole_browser


@pytest.fixture
def company(database: None) -> Company:
    tenant = make_tenant(name="Meridian Insurance")
    owner = make_user(first_name="Olivia", last_name="Marsh")
    with tenant_scope(tenant):
        Membership.objects.create(user=owner, role=Role.OWNER)
    return Company(tenant, owner, make_deployment(tenant, title="Help desk"))


def _review(company: Company) -> str:
    card = make_card(company.tenant, deployment_id=company.deployment.pk)
    return f"/console/review/{card.pk}/"


def _inbox(company: Company) -> str:
    session = make_session(company.deployment)
    with tenant_scope(company.tenant):
        type(session).objects.filter(pk=session.pk).update(customer_name="Maria Ortega")
        handoff.take_over(session.pk, company.owner)
        say(session, "Is my cello insured while I travel?")
        handoff.reply(session.pk, company.owner, "Hello Maria, I will look at your policy now.")
    return f"/console/inbox/{session.pk}/"


PAGES: dict[str, tuple[str | Callable[[Company], str], str]] = {
    "review": (_review, "light dark phone"),
    "inbox": (_inbox, "light dark phone"),
    "gates": ("/console/gates/", "light"),
    "account": ("/console/account/", "light"),
    "knowledge": ("/console/knowledge/", "light phone"),
    "settings": ("/console/settings/", "light phone"),
    "insights": ("/console/insights/", "light"),
    "studio": (lambda company: f"/console/studio/{company.deployment.pk}/", "light"),
    "first-run": ("/console/begin/", "light"),
}


@pytest.mark.parametrize("name", PAGES)
async def test_page_looks_as_before(web: str, open_page: OpenPage, company: Company, name: str) -> None:
    where, looks = PAGES[name]
    path = await in_thread(where, company) if callable(where) else where
    for look in looks.split():
        page = await log_in(open_page, web, company.owner, path, **LOOKS[look], reduced_motion="reduce")
        await _compare(page, f"{name}-{look}")


async def test_login_looks_as_before(web: str, open_page: OpenPage, database: None) -> None:
    await _compare(await open_page(f"{web}/console/login/", **LOOKS["light"]), "login-light")


async def test_administration_looks_as_before(web: str, open_page: OpenPage, company: Company) -> None:
    page = await log_in(open_page, web, company.owner, "/console/account/", **LOOKS["light"], reduced_motion="reduce")
    await page.goto(f"{web}/admin/")
    await _compare(page, "admin-light")


@pytest.mark.parametrize("look", ["light", "phone"])
async def test_widget_looks_as_before(web: str, open_page: OpenPage, company: Company, peer: Peer, look: str) -> None:
    page, widget = await talking(open_page, f"{web}/demo/{company.tenant.slug}/", peer, **LOOKS[look])
    peer.say(text="Burst pipes are covered up to **£50,000**.")
    await expect(widget.bot.last).to_contain_text("£50,000")
    await _compare(page, f"widget-{look}")


@pytest.mark.parametrize("look", ["light", "dark", "phone"])
async def test_home_screen_looks_as_before(
    web: str, open_page: OpenPage, company: Company, tmp_path: Path, look: str
) -> None:
    text = "# Burst pipes\n\nSudden escape of water is covered up to £50,000.\n"
    await in_thread(partial(ingest_texts, company.tenant.pk, tmp_path, pipes=text))
    page = await open_page(f"{web}/demo/{company.tenant.slug}/", **LOOKS[look], reduced_motion="reduce")
    widget = Widget(page)
    await expect(widget.frame.locator(".home")).to_be_attached()
    await page.wait_for_load_state("networkidle")
    await widget.bubble.click()
    await widget.home.get_by_label("Search help articles").fill("escape of water")
    await widget.button("Search").click()
    await expect(widget.home.get_by_role("button", name="Burst pipes")).to_be_visible()
    await _compare(page, f"widget-home-{look}")


async def test_difference_is_seen(web: str, open_page: OpenPage, company: Company) -> None:
    """A button that moves, or another colour of the page, is more than is tolerated."""
    if WRITES:
        pytest.skip("pictures are being written")
    page = await log_in(open_page, web, company.owner, "/console/account/", **LOOKS["light"], reduced_motion="reduce")
    for change in (
        lambda: document_style(page, "main", "padding-left", "40px"),
        lambda: document_style(page, "body", "background", "#cccccc"),
    ):
        before = coarse_grey(await _taken(page))
        await change()
        assert share_that_differs(before, coarse_grey(await _taken(page))) > TOLERATED


async def document_style(page: Page, selector: str, name: str, value: str) -> None:
    await page.locator(selector).first.evaluate(
        "(element, [name, value]) => element.style.setProperty(name, value, 'important')", [name, value]
    )


async def _compare(page: Page, name: str) -> None:
    taken = coarse_grey(await _taken(page))
    kept = FOLDER / f"{name}.png"
    if WRITES:
        kept.parent.mkdir(exist_ok=True)
        kept.write_bytes(grey_png(taken))
        return
    differs = share_that_differs(pixels(kept.read_bytes())[:, :, 0], taken)
    assert differs <= TOLERATED, f"{name}: {differs:.1%} of the picture differ from {kept.name}"


async def _taken(page: Page) -> bytes:
    await page.evaluate("document.fonts.ready.then(() => true)")
    covered = [page.locator(each) for each in VARYING]
    return await page.screenshot(animations="disabled", caret="hide", mask=covered, mask_color="#808080")
