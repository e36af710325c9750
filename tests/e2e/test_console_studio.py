"""An owner sets up a chatbot, changes its look, talks to it, gives it something to know and takes its line along."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.async_api import FrameLocator, Page, expect

from apps.sessions.models import ChatSession
from apps.tenants.models import Deployment
from apps.visitors.models import VisitorOffers
from kernel.tenancy import in_scope
from tests.e2e.axe import violations
from tests.e2e.console import log_in

WIDE, PHONE = {"width": 1280, "height": 800}, {"width": 360, "height": 740}


def _frame(page: Page) -> FrameLocator:
    return page.frame_locator("[data-preview] iframe")


async def _ready(page: Page) -> FrameLocator:
    await page.wait_for_selector("[data-preview][data-ready=yes]")
    return _frame(page)


def _place() -> Deployment:
    found: Deployment = Deployment.objects.get()
    return found


def _tests() -> list[bool]:
    return list(ChatSession.objects.values_list("is_test", flat=True))


async def test_first_screens_lead_to_a_chatbot(web: str, worker: None, open_page: Any, tenant: Any, owner: Any) -> None:
    page = await log_in(open_page, web, owner, "/console/begin/")
    await page.get_by_label("The built-in model").check()
    await page.get_by_role("button", name="Continue with this model").click()
    await expect(page.locator("h1")).to_have_text("What should your chatbot know?")
    await page.get_by_text("Write text").click()
    await page.get_by_label("Title").fill("Opening hours")
    await page.get_by_label("Text", exact=True).fill("The shop opens at eight in the morning.")
    await page.get_by_role("button", name="Add text").click()
    await expect(page.locator("#intakes .chip")).to_have_text("Read")
    await page.get_by_role("button", name="Continue", exact=True).click()
    await page.get_by_label("Websites, one per line").fill("www.example.com")
    await page.get_by_role("button", name="Allow and continue").click()
    await expect(page.locator("h1")).to_have_text("Your chatbot is ready")
    await expect(page.locator("#snippet")).to_contain_text("data-deployment=")
    frame = await _ready(page)
    await frame.get_by_role("textbox").fill("When does the shop open?")
    await frame.get_by_role("textbox").press("Enter")
    await expect(frame.locator("[data-rows] .bot").first).to_contain_text("eight in the morning")
    await page.get_by_role("button", name="Finish and open settings").click()
    await expect(page.get_by_role("button", name="Save", exact=True)).to_be_visible()
    place = await in_scope(tenant, _place)
    assert place.allowed_origins == ["https://www.example.com"]
    assert await in_scope(tenant, _tests) == [True]


async def test_preview_follows_the_form_before_it_is_saved(
    web: str, open_page: Any, tenant: Any, deployment: Any, owner: Any
) -> None:
    page = await log_in(open_page, web, owner, f"/console/studio/{deployment.pk}/")
    frame = await _ready(page)
    await expect(frame.locator("[data-title]")).to_have_text("Desk")
    await page.get_by_label("Name").fill("Harbour help")
    greeting = page.get_by_label("Greeting")
    await greeting.fill("Hello, I know every ship of ours. " * 8)
    assert await greeting.evaluate("at => at.scrollWidth <= at.clientWidth && at.scrollHeight <= at.clientHeight")
    await greeting.fill("Ahoy")
    await expect(frame.locator("[data-title]")).to_have_text("Harbour help")
    await expect(frame.locator("[data-greeting]")).to_have_text("Ahoy")
    await page.get_by_label("Side", exact=True).select_option("left")
    await expect(page.locator("[data-preview][data-side=left]")).to_be_visible()
    await expect(page.locator("[data-unsaved]")).to_be_visible()
    assert (await in_scope(tenant, _place)).title == "Desk"


@pytest.mark.parametrize(
    ("brand", "said"),
    [
        ("#ffd400", "Text on this colour is dark. Contrast: 12.8. Links use a shade that is easy to read."),
        ("#1f5f8b", "Text on this colour is white. Contrast: 6.8."),
    ],
)
async def test_colour_says_which_text_stands_on_it(
    web: str, open_page: Any, tenant: Any, deployment: Any, owner: Any, brand: str, said: str
) -> None:
    page = await log_in(open_page, web, owner, f"/console/studio/{deployment.pk}/", color_scheme="light")
    await _ready(page)
    await page.get_by_label("Colour").fill(brand)
    await expect(page.locator("[data-contrast]")).to_have_text(said)


async def test_preview_shows_what_is_beside_talking_before_it_is_saved(
    web: str, open_page: Any, tenant: Any, deployment: Any, owner: Any
) -> None:
    page = await log_in(open_page, web, owner, f"/console/studio/{deployment.pk}/")
    frame = await _ready(page)
    for name in ("Pictures", "Several conversations"):
        await page.get_by_label(name, exact=True).check()
    await expect(frame.get_by_role("button", name="Send a file")).to_be_visible()
    await expect(frame.get_by_role("button", name="More")).to_be_visible()
    await page.get_by_text("Consent").click()
    await page.get_by_label("Text", exact=True).fill("We keep this chat for a year.")
    await frame.get_by_role("button", name="I agree").click()
    await expect(frame.get_by_text("We keep this chat")).to_have_count(0)
    await page.get_by_text("Pre-chat form").click()
    await page.get_by_role("group", name="Question 1").get_by_label("Type").select_option("email")
    await page.get_by_role("group", name="Question 1").get_by_label("Question").fill("Your address")
    await expect(frame.get_by_label("Your address (optional)")).to_be_visible()
    await page.get_by_label("Text on the bubble").fill("Ask us")
    await expect(page.get_by_role("button", name="Ask us")).to_be_visible()
    await page.locator("#speaks").select_option("ar")
    await expect(frame.locator("html")).to_have_attribute("dir", "rtl")
    assert not await in_scope(tenant, VisitorOffers.objects.exists)


async def test_knowledge_is_handed_in_tried_and_deleted(
    web: str, worker: None, open_page: Any, tenant: Any, deployment: Any, owner: Any
) -> None:
    page = await log_in(open_page, web, owner, "/console/knowledge/")
    await page.get_by_label("Name").fill("help")
    await page.get_by_role("button", name="Create collection").click()
    file = {
        "name": "returns.md",
        "mimeType": "text/markdown",
        "buffer": b"# Returns\n\nParcels come back in thirty days.",
    }
    await page.get_by_label("Files").set_input_files(files=[file])
    await page.get_by_role("button", name="Upload files").click()
    await expect(page.locator("#intakes .chip")).to_have_text("Read")
    await page.goto(f"{web}/console/knowledge/try/")
    await page.get_by_label("Question").fill("How long may parcels come back?")
    await page.get_by_role("button", name="Search", exact=True).click()
    await expect(page.locator(".found .quote").first).to_contain_text("thirty days")
    await page.get_by_role("link", name="All knowledge").click()
    await page.get_by_role("link", name="help").click()
    await page.get_by_role("link", name="Returns").click()
    await page.get_by_text("What this deletes").click()
    await page.get_by_role("button", name="Delete Returns permanently").click()
    await expect(page.get_by_text("No documents yet.")).to_be_visible()


async def test_line_for_the_site_is_copied(web: str, open_page: Any, tenant: Any, deployment: Any, owner: Any) -> None:
    page = await log_in(
        open_page,
        web,
        owner,
        f"/console/studio/{deployment.pk}/install/",
        permissions=["clipboard-read", "clipboard-write"],
    )
    await page.get_by_role("button", name="Copy code").click()
    await expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert deployment.public_key in await page.evaluate("navigator.clipboard.readText()")


@pytest.mark.parametrize(("scheme", "size"), [("light", WIDE), ("dark", PHONE)])
async def test_axe_finds_nothing_and_nothing_is_too_wide(
    web: str, open_page: Any, tenant: Any, deployment: Any, owner: Any, scheme: Any, size: Any
) -> None:
    page = await log_in(open_page, web, owner, "/console/studio/", color_scheme=scheme, viewport=size)
    here = f"/console/studio/{deployment.pk}"
    paths = ["/console/studio/", f"{here}/", f"{here}/install/", f"{here}/turn/", "/console/knowledge/"]
    paths += [
        "/console/knowledge/try/",
        *(f"/console/begin/{name}/" for name in ("model", "knowledge", "sites", "ready")),
    ]
    for path in paths:
        await page.goto(f"{web}{path}")
        found = [f"{each['id']} at {node['target']}" for each in await violations(page) for node in each["nodes"]]
        assert found == [], path
        wide = await page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert wide <= 0, f"{path} is {wide} px too wide"
