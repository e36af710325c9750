"""What visitors do beside talking, in a browser: whatever only a browser can show."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page, expect

from apps.knowledge.models import Collection
from apps.sessions.models import ChatSession
from apps.visitors.models import Rating
from kernel.tenancy import in_scope, in_thread
from tests.e2e.axe import violations
from tests.e2e.conftest import OpenPage
from tests.e2e.widget import Widget, opened
from tests.factories.knowledge import ingest_texts
from tests.factories.visitors import FILES, ask, offer


@pytest.fixture
def demo(web: str, deployment: Any) -> str:
    return f"{web}/demo/{deployment.tenant.slug}/"


def _begun() -> int:
    return int(ChatSession.objects.count())


async def _said(widget: Widget, text: str, seq: int = 1) -> None:
    await widget.say(text)
    await expect(widget.log.locator(f".mine[data-seq='{seq}']")).to_have_text(text)


async def test_nothing_is_asked_for_before_the_visitor_agrees(open_page: OpenPage, demo: str, deployment: Any) -> None:
    await in_thread(offer, deployment, consent_text="We keep what you write.", consent_version="v1")
    page = await open_page(demo)
    widget = Widget(page)
    await widget.bubble.click()
    await widget.button("No, thanks").click()
    await expect(widget.frame.get_by_text("nothing was sent or saved")).to_be_visible()
    assert await in_scope(deployment.tenant_id, _begun) == 0
    await widget.button("I agree").click()
    await _said(widget, "Hello")
    await page.reload()
    await widget.open()
    await expect(widget.mine).to_have_text(["Hello"])


async def test_form_stands_before_the_first_word(open_page: OpenPage, demo: str, deployment: Any) -> None:
    await in_thread(ask, deployment, {"kind": "name", "label": "Your name", "required": True})
    widget = Widget(await open_page(demo))
    await widget.bubble.click()
    name = widget.frame.get_by_label("Your name")
    await widget.button("Start chat").click()
    await expect(widget.frame.get_by_text("Please fill this in.")).to_be_visible()
    open_errors = open_page.errors
    assert all("400" in each for each in open_errors)
    open_errors.clear()
    await name.fill("Ada")
    await widget.button("Start chat").click()
    await expect(name).to_have_count(0)
    await _said(widget, "Hello")


async def test_file_is_sent_and_saved_again(open_page: OpenPage, demo: str, deployment: Any, tmp_path: Path) -> None:
    await in_thread(offer, deployment, **FILES)
    page = await open_page(demo)
    widget = await opened(page)
    notes = tmp_path / "notes.txt"
    notes.write_text("Seen by nobody else")
    async with page.expect_file_chooser() as chooser:
        await widget.button("Send a file").click()
    await (await chooser.value).set_files(notes)
    saved = widget.log.get_by_role("button", name="notes.txt")
    await expect(saved).to_have_count(1)
    async with page.expect_download() as download:
        await saved.click()
    await (await download.value).save_as(tmp_path / "saved")
    assert (tmp_path / "saved").read_text() == "Seen by nobody else"


async def test_picture_has_a_thumbnail_of_a_fixed_size_also_after_a_reload(
    open_page: OpenPage, demo: str, deployment: Any, tmp_path: Path
) -> None:
    await in_thread(offer, deployment, **FILES)
    page = await open_page(demo)
    widget = await opened(page)
    shot = tmp_path / "shot.png"
    shot.write_bytes(await page.screenshot(clip={"x": 0, "y": 0, "width": 40, "height": 30}))
    async with page.expect_file_chooser() as chooser:
        await widget.button("Send a file").click()
    await (await chooser.value).set_files(shot)
    saved = widget.log.get_by_role("button", name="shot.png")
    await expect(saved).to_have_count(1)
    await page.reload()
    widget = await opened(page)
    picture = widget.log.get_by_role("img", name="shot.png")
    await expect(picture).to_have_js_property("naturalWidth", 40)
    box = await picture.bounding_box()
    assert box
    assert box["width"] == 200
    assert box["height"] == 150


async def test_visitor_goes_back_to_an_earlier_conversation(open_page: OpenPage, demo: str, deployment: Any) -> None:
    await in_thread(offer, deployment, conversations=True)
    widget = await opened(await open_page(demo))
    await _said(widget, "The first matter")
    await widget.button("More").click()
    await widget.button("New conversation").click()
    await expect(widget.mine).to_have_count(0)
    await _said(widget, "The second matter")
    await widget.button("More").click()
    await widget.frame.locator("button.talk").click()
    await expect(widget.mine).to_have_text(["The first matter"])


async def test_rating_is_kept_and_shown_again(open_page: OpenPage, demo: str, deployment: Any) -> None:
    await in_thread(offer, deployment, rating="stars")
    widget = await opened(await open_page(demo))
    await _said(widget, "Hello")
    await widget.button("More").click()
    await widget.frame.get_by_role("radio", name="4 of 5").check(force=True)
    await widget.button("Send rating").click()
    await expect(widget.frame.get_by_text("Thank you.")).to_be_visible()
    assert await in_scope(deployment.tenant_id, lambda: Rating.objects.get().score) == 4
    await widget.button("Back to the conversation").last.click()
    await widget.button("More").click()
    await expect(widget.frame.get_by_role("radio", name="4 of 5")).to_be_checked()


async def test_chat_opens_on_a_home_screen_where_there_are_earlier_conversations(
    open_page: OpenPage, demo: str, deployment: Any
) -> None:
    await in_thread(offer, deployment, conversations=True)
    page = await open_page(demo, viewport={"width": 1366, "height": 768})
    widget = await opened(page)
    home = widget.frame.locator(".home")
    await expect(home).to_be_hidden()
    await widget.say("Is my <b>piano</b> covered?")
    await expect(widget.log.locator(".mine[data-seq='1'], .you").first).to_be_visible()
    await expect(widget.bot).not_to_have_count(0)
    await widget.close()
    async with page.expect_event("requestfinished", lambda request: request.url.endswith("/conversations")):
        await page.reload()
    await expect(widget.bubble).to_be_visible()
    await widget.bubble.click()
    await expect(home).to_be_visible()
    await expect(widget.field).to_be_hidden()
    await expect(home.get_by_role("heading").first).not_to_be_empty()
    await expect(home).to_be_focused()
    await home.locator("button.talk").click()
    await expect(widget.mine).to_have_text(["Is my <b>piano</b> covered?"])
    await expect(widget.field).to_be_focused()
    async with page.expect_event("requestfinished", lambda request: request.url.endswith("/conversations")):
        await page.reload()
    await expect(widget.bubble).to_be_visible()
    await page.evaluate("Silas.open()")
    await widget.button("New conversation").click()
    await expect(widget.field).to_be_visible()
    await expect(widget.mine).to_have_count(0)


async def _come_back(page: Page, *, loads: str = "/conversations", locale: str = "en") -> Widget:
    """The widget of a visitor who wrote, closed the chat, and opens it on another page, which `loads` something."""
    widget = await opened(page)
    await _said(widget, "Hello")
    await expect(widget.bot).not_to_have_count(0)
    await widget.close()
    async with page.expect_event("requestfinished", lambda request: request.url.endswith(loads)):
        await page.reload()
    await expect(widget.bubble).to_be_visible()
    await page.evaluate("(locale) => Silas.setLocale(locale)", locale)
    await expect(widget.frame.locator("html")).to_have_attribute("lang", locale)
    await widget.bubble.click()
    return widget


async def test_visitor_searches_articles_and_asks_about_one(
    open_page: OpenPage, demo: str, deployment: Any, tmp_path: Path
) -> None:
    await in_thread(offer, deployment, conversations=True)
    text = "# Burst pipes\n\nSudden escape of water is covered up to £50,000.\n\nSlow leaks are **not** covered.\n"
    await in_thread(partial(ingest_texts, deployment.tenant_id, tmp_path, pipes=text))
    page = await open_page(demo, viewport={"width": 1366, "height": 768})
    widget = await _come_back(page)
    home = widget.frame.locator(".home")
    await expect(home).to_be_visible()
    assert await _wrong(page) == []
    await home.get_by_label("Search help articles").fill("xyzzy")
    await page.keyboard.press("Enter")
    await expect(home.get_by_role("status")).to_have_text("No articles found. Try other words, or ask us.")
    await home.get_by_label("Search help articles").fill("escape of water")
    await page.keyboard.press("Enter")
    await expect(home.get_by_role("status")).to_have_text("1 article found")
    found = home.get_by_role("button", name="Burst pipes")
    await expect(found).to_contain_text("Sudden escape of water is covered up to £50,000.")
    await page.keyboard.press("Tab")
    await page.keyboard.press("Tab")
    await expect(found).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(home.get_by_role("heading", name="Burst pipes").first).to_be_focused()
    await expect(home.locator("strong", has_text="not")).to_be_visible()
    assert await _wrong(page) == []
    await widget.button("Back").click()
    await expect(found).to_be_focused()
    await expect(home.get_by_role("status")).to_have_text("1 article found")
    await found.click()
    await widget.button("Ask about this").click()
    await expect(widget.field).to_be_focused()
    await expect(widget.field).to_have_value("I have a question about “Burst pipes”: ")
    await expect(widget.mine).to_have_count(0)


PIPES = "# Burst pipes\n\nSudden escape of water is covered up to £50,000.\n"


async def _first_visit(page: Page) -> Widget:
    """The widget of a visitor who opens the chat for the first time, once it knows what is offered."""
    widget = Widget(page)
    await expect(widget.frame.locator(".home")).to_be_attached()
    await page.wait_for_load_state("networkidle")
    await widget.bubble.click()
    return widget


@pytest.fixture
async def pipes(deployment: Any, tmp_path: Path) -> None:
    await in_thread(partial(ingest_texts, deployment.tenant_id, tmp_path, pipes=PIPES))
    looks = {"greeting": "How can we help?", "suggestions": ["Is my piano covered?"]}
    await in_scope(deployment.tenant_id, lambda: type(deployment).objects.update(**looks))


@pytest.mark.parametrize("size", [{"width": 1366, "height": 768}, {"width": 390, "height": 800}])
async def test_new_visitor_searches_articles_before_there_is_a_conversation(
    open_page: OpenPage, demo: str, deployment: Any, pipes: None, size: Any
) -> None:
    await in_thread(offer, deployment, consent_text="We keep what you write.", consent_version="v1")
    await in_thread(ask, deployment, {"kind": "name", "label": "Your name", "required": True})
    page = await open_page(demo, viewport=size, has_touch=size["width"] < 400)
    widget = await _first_visit(page)
    await expect(widget.home).to_be_focused()
    await expect(widget.home.get_by_role("heading", name="How can we help?")).to_be_visible()
    await expect(widget.field).to_be_hidden()
    parts = "[...home.querySelectorAll('h2, .chip, input, button.first')]"
    assert await widget.home.evaluate(f"(home) => {parts}.map((each) => each.textContent || each.id)") == [
        "How can we help?",
        "Is my piano covered?",
        "article-query",
        "Send us a message",
    ]
    assert await _wrong(page) == []
    await widget.home.get_by_label("Search help articles").fill("escape of water")
    await page.keyboard.press("Enter")
    await widget.home.get_by_role("button", name="Burst pipes").click()
    await expect(widget.home.get_by_text("Burst pipes")).to_have_count(1)
    assert await widget.home.evaluate("(home) => home.scrollWidth <= home.clientWidth")
    await widget.button("Back").click()
    assert await in_scope(deployment.tenant_id, _begun) == 0
    await widget.button("Send us a message").click()
    await widget.button("I agree").click()
    await widget.frame.get_by_label("Your name").fill("Ada")
    await widget.button("Start chat").click()
    await _said(widget, "Hello")
    await expect(widget.home).to_be_hidden()


async def test_suggestion_on_the_home_screen_is_the_first_message(open_page: OpenPage, demo: str, pipes: None) -> None:
    widget = await _first_visit(await open_page(demo))
    await widget.home.get_by_role("button", name="Is my piano covered?").click()
    await expect(widget.field).to_be_visible()
    await expect(widget.log.locator(".mine[data-seq='1']")).to_have_text("Is my piano covered?")


async def test_new_visitor_asks_about_an_article(open_page: OpenPage, demo: str, pipes: None) -> None:
    widget = await _first_visit(await open_page(demo))
    await widget.home.get_by_label("Search help articles").fill("escape of water")
    await widget.button("Search").click()
    await widget.home.get_by_role("button", name="Burst pipes").click()
    await widget.button("Ask about this").click()
    await expect(widget.field).to_be_focused()
    await expect(widget.field).to_have_value("I have a question about “Burst pipes”: ")
    await widget.field.press("End")
    await widget.field.press_sequentially("since when?")
    await widget.field.press("Enter")
    await expect(widget.log.locator(".mine[data-seq='1']")).to_contain_text("since when?")


async def test_returning_visitor_goes_from_the_home_screen_back_to_their_conversation(
    open_page: OpenPage, demo: str, pipes: None
) -> None:
    page = await open_page(demo)
    widget = await _first_visit(page)
    await widget.button("Send us a message").click()
    await _said(widget, "Hello")
    await expect(widget.bot).not_to_have_count(0)
    await widget.close()
    await page.reload()
    await _first_visit(page)
    await expect(widget.home.get_by_role("searchbox")).to_be_visible()
    await widget.button("Back to the conversation").click()
    await expect(widget.mine).to_have_text(["Hello"])


async def test_chat_that_opens_with_the_page_stays_on_the_conversation(
    open_page: OpenPage, demo: str, pipes: None
) -> None:
    page = await open_page(demo)
    await page.add_init_script("window.Silas = { q: [['open']] }")
    await page.reload()
    widget = Widget(page)
    await expect(widget.field).to_be_visible()
    await expect(widget.frame.locator(".home")).to_be_attached()
    await page.wait_for_load_state("networkidle")
    await widget.close()
    await widget.bubble.click()
    await expect(widget.field).to_be_visible()
    await expect(widget.home).to_have_count(0)


async def test_chat_without_articles_for_the_visitor_opens_on_the_conversation(
    open_page: OpenPage, demo: str, deployment: Any, pipes: None
) -> None:
    await in_scope(deployment.tenant_id, lambda: Collection.objects.update(min_level="verified"))
    page = await open_page(demo)
    await page.wait_for_load_state("networkidle")
    widget = Widget(page)
    await widget.bubble.click()
    await expect(widget.field).to_be_focused()
    await expect(widget.frame.locator(".home:not([hidden])")).to_have_count(0)


async def test_home_screen_fits_a_phone_from_right_to_left(
    open_page: OpenPage, demo: str, deployment: Any, tmp_path: Path
) -> None:
    await in_thread(offer, deployment, conversations=True)
    await in_thread(
        partial(ingest_texts, deployment.tenant_id, tmp_path, pipes="# Pipes\n\nBurst pipes are covered.\n")
    )
    page = await open_page(demo, viewport={"width": 390, "height": 800}, has_touch=True)
    widget = await _come_back(page, locale="ar")
    home = widget.frame.locator(".home")
    await expect(home).to_be_visible()
    await expect(widget.frame.locator("html")).to_have_attribute("dir", "rtl")
    await home.get_by_role("searchbox").fill("burst pipes")
    await page.keyboard.press("Enter")
    await expect(home.locator("button.article")).to_have_count(1)
    assert await home.evaluate("(home) => home.scrollWidth <= home.clientWidth")
    assert await _wrong(page) == []


async def test_chatbot_without_a_home_screen_opens_on_the_conversation(
    open_page: OpenPage, demo: str, deployment: Any
) -> None:
    await in_thread(offer, deployment, conversations=True)
    await in_scope(deployment.tenant_id, lambda: type(deployment).objects.update(theme={"home": "off"}))
    widget = await _come_back(await open_page(demo), loads="/offers")
    await expect(widget.field).to_be_visible()
    await expect(widget.mine).to_have_text(["Hello"])
    await expect(widget.frame.locator(".home")).to_be_hidden()


async def _wrong(page: Page) -> list[str]:
    """The first heading is that of the page around the frame."""
    found = [each for each in await violations(page) if each["id"] != "page-has-heading-one"]
    return [f"{each['id']} at {node['target']}: {node['html']}" for each in found for node in each["nodes"]]


async def test_everybody_can_use_what_is_beside(open_page: OpenPage, web: str, deployment: Any) -> None:
    """Axe looks at the frame alone, in the dark, as narrow as a phone."""
    consent = {"consent_text": "We keep what you write.", "consent_version": "v1", "consent_link": "https://a.test"}
    await in_thread(offer, deployment, **FILES, **consent, conversations=True, rating="stars")
    await in_thread(ask, deployment, {"kind": "choice", "label": "About", "choices": ["Claims"], "required": True})
    size = {"width": 320, "height": 640}
    page = await open_page(f"{web}/widget/v1/{deployment.public_key}/", viewport=size, color_scheme="dark")
    await expect(page.get_by_role("button", name="I agree")).to_be_visible()
    wrong = await _wrong(page)
    await page.get_by_role("button", name="I agree").click()
    await expect(page.get_by_label("About")).to_be_visible()
    wrong += await _wrong(page)
    await page.get_by_label("About").select_option("Claims")
    await page.get_by_role("button", name="Start chat").click()
    await page.get_by_role("button", name="More").click()
    await expect(page.get_by_text("No earlier conversations.")).to_be_visible()
    wrong += await _wrong(page)
    assert wrong == []
