"""A chatbot's logo and avatar: uploaded in the Studio, shown in the widget, and missing without harm."""

from __future__ import annotations

from typing import Any

from playwright.async_api import FilePayload, expect

from apps.tenants.enums import PictureKind
from apps.tenants.models import Deployment, DeploymentPicture
from apps.tenants.pictures import store_picture
from kernel.tenancy import in_scope
from tests.e2e.conftest import OpenPage
from tests.e2e.console import log_in
from tests.e2e.peer import Peer
from tests.e2e.widget import talking
from tests.factories.pictures import png

_AVATAR = "getComputedStyle(at, '::before').backgroundImage"


def _file(content: bytes) -> FilePayload:
    return {"name": "picture.png", "mimeType": "image/png", "buffer": content}


def _give_pictures(deployment: Deployment) -> None:
    store_picture(deployment, PictureKind.LOGO, png(240, 80), actor="system")
    store_picture(deployment, PictureKind.AVATAR, png(64, 64, (150, 60, 20)), actor="system")


async def test_owner_uploads_pictures_and_the_preview_shows_them(
    web: str, open_page: Any, deployment: Any, owner: Any
) -> None:
    page = await log_in(open_page, web, owner, f"/console/studio/{deployment.pk}/")
    frame = page.frame_locator("[data-preview] iframe")
    await expect(frame.locator("[data-logo]")).to_be_hidden()
    await page.get_by_label("Logo", exact=True).set_input_files(_file(b"GIF89a, no picture that is taken"))
    await page.get_by_role("button", name="Upload logo").click()
    await expect(page.get_by_role("alert")).to_have_text("Choose a PNG, JPEG or WebP picture.")
    open_page.errors.clear()  # the answer was 422
    await page.get_by_label("Logo", exact=True).set_input_files(_file(png(240, 80)))
    await page.get_by_role("button", name="Upload logo").click()
    await expect(page.get_by_role("button", name="Remove logo")).to_be_visible()
    await expect(frame.get_by_role("img", name="Desk")).to_be_visible()
    await page.get_by_label("Avatar", exact=True).set_input_files(_file(png()))
    await page.get_by_role("button", name="Upload avatar").click()
    await expect(page.get_by_role("button", name="Remove avatar")).to_be_visible()
    await page.get_by_label("Name").fill("Harbour help")
    await expect(frame.get_by_role("img", name="Harbour help")).to_be_visible()
    await page.get_by_role("button", name="Remove logo").click()
    await expect(page.get_by_role("button", name="Remove logo")).to_have_count(0)
    await expect(frame.locator("[data-face]")).to_be_visible()
    await expect(frame.locator("[data-logo]")).to_be_hidden()


async def test_widget_shows_the_logo_in_its_header_and_the_avatar_beside_the_bots_messages(
    web: str, open_page: OpenPage, tenant: Any, deployment: Any, peer: Peer
) -> None:
    await in_scope(tenant, _give_pictures, deployment)
    _, widget = await talking(open_page, f"{web}/demo/{tenant.slug}/", peer)
    logo = widget.frame.locator("[data-logo]")
    await expect(logo).to_be_visible()
    await expect(logo).to_have_attribute("alt", "Desk")
    assert await logo.evaluate("at => [at.naturalWidth, at.offsetWidth, at.offsetHeight]") == [240, 84, 28]
    await expect(widget.frame.locator("[data-face]")).to_be_hidden()
    peer.say("message", sender="bot", text="Two days.")
    said = widget.frame.locator("[data-rows] .bot").last
    await expect(said).to_contain_text("Two days.")
    assert "/avatar/" in await said.evaluate(f"at => {_AVATAR}")
    peer.say("message", sender="human", text="I am Grace.", name="Grace")
    person = widget.frame.locator("[data-rows] .bot").last
    await expect(person).to_contain_text("I am Grace.")
    assert await person.evaluate(f"at => {_AVATAR}") == "none"


def _lose_pictures(deployment: Deployment) -> None:
    _give_pictures(deployment)
    DeploymentPicture.objects.all().delete()


async def test_picture_that_cannot_be_loaded_leaves_the_widget_as_without(
    web: str, open_page: OpenPage, tenant: Any, deployment: Any, peer: Peer
) -> None:
    await in_scope(tenant, _lose_pictures, deployment)
    _, widget = await talking(open_page, f"{web}/demo/{tenant.slug}/", peer)
    await expect(widget.frame.locator("[data-face]")).to_be_visible()
    await expect(widget.frame.locator("[data-logo]")).to_be_hidden()
    await expect(widget.frame.locator("html[data-avatar]")).to_have_count(0)
    assert all("404" in error for error in open_page.errors)
    open_page.errors.clear()
