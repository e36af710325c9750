"""The desk of a conversation in a real browser: what only shows there, while news comes in."""

from __future__ import annotations

import os
import re
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.async_api import Page, ViewportSize, expect

from apps.inbox import handoff, labels_and_replies, services
from apps.sessions.models import ChatSession
from kernel.clock import now
from kernel.tenancy import in_scope, in_thread, tenant_scope
from tests.e2e.axe import violations
from tests.e2e.console import log_in
from tests.factories.sessions import make_session, say, want_person

SHOTS = os.environ.get("SILAS_SHOTS", "")
WIDE, NARROW = ViewportSize(width=1280, height=800), ViewportSize(width=320, height=700)


@pytest.fixture
def deployment(deployment: Any) -> Any:
    """One whose bot says nothing, so that no list moves by itself."""
    with tenant_scope(deployment.tenant_id):
        deployment.enabled = False
        deployment.save(update_fields=["enabled"])
    return deployment


async def _said(deployment: Any, text: str) -> ChatSession:
    session = await in_thread(make_session, deployment)
    await in_thread(say, session, text)
    return session


def _at(session: ChatSession) -> str:
    return f"/console/inbox/{session.pk}/"


async def test_menu_survives_news_and_its_press_counts(web: str, open_page: Any, deployment: Any, agent: Any) -> None:
    session = await _said(deployment, "Hello")
    for name in ("Refunds", "Returns"):
        await in_scope(deployment.tenant_id, labels_and_replies.save_label, agent, name=name, colour="red")
    page = await log_in(open_page, web, agent, _at(session))
    await page.locator("#pick-labels > summary").click()
    await in_thread(say, session, "Are you there?")
    await expect(page.locator("#log")).to_contain_text("Are you there?")
    await page.locator("#labels-form").get_by_role("button", name="Refunds").click()
    await in_thread(say, session, "Please?")
    await expect(page.locator("#desk-state")).to_contain_text("Refunds")
    await expect(page.locator("#log")).to_contain_text("Please?")
    await page.locator("#labels-form").get_by_role("button", name="Returns").click()
    await expect(page.locator("#desk-state")).to_contain_text("Returns")
    await page.locator("#labels-form").get_by_role("button", name="Refunds").click()
    await expect(page.locator("#desk-state")).not_to_contain_text("Refunds")
    await expect(page.locator("#pick-labels")).to_have_attribute("open", "")


async def test_drafts_wait_where_they_were_written_and_notes_stay_inside(
    web: str, open_page: Any, deployment: Any, agent: Any
) -> None:
    first, second = await _said(deployment, "Hello"), await _said(deployment, "Good day")
    await in_scope(deployment.tenant_id, handoff.take_over, first.pk, agent)
    page = await log_in(open_page, web, agent, _at(first))
    await page.fill("#reply-text", "Half a sent")
    await page.get_by_role("tab", name="Private note").click()
    await expect(page.locator("#note-text")).to_be_focused()
    await page.keyboard.type("Mind this one")
    await page.locator(f"#c-{second.pk}").click()
    await expect(page.locator("#log")).to_contain_text("Good day")
    await expect(page.locator("#note-text")).to_have_value("")
    await page.goto(f"{web}{_at(first)}")
    await expect(page.locator("#reply-text")).to_have_value("Half a sent")
    await page.get_by_role("tab", name="Private note").click()
    await expect(page.locator("#note-text")).to_have_value("Mind this one")
    await page.keyboard.press("Enter")
    await expect(page.locator("#log .say.note")).to_contain_text("Mind this one")
    await expect(page.locator("#note-text")).to_have_value("")
    await page.reload()
    await expect(page.locator("#reply-text")).to_have_value("Half a sent")
    await expect(page.locator("#note-text")).to_have_value("")


async def test_conversation_beside_the_open_one_is_fetched_unread_and_shown_without_a_page_load(
    web: str, open_page: Any, deployment: Any, agent: Any
) -> None:
    first, second = await _said(deployment, "Hello"), await _said(deployment, "Good day")
    await in_scope(deployment.tenant_id, handoff.take_over, first.pk, agent)
    await in_thread(want_person, second)
    page = await log_in(open_page, web, agent, _at(first))
    async with page.expect_response(re.compile(str(second.pk))):
        await page.reload()
    await page.fill("#reply-text", "Half a sent")
    await expect(page.locator(f"#c-{second.pk} .badge")).to_have_text("1")
    await page.wait_for_timeout(500)
    await page.evaluate("window.isSamePage = true")
    await page.locator(f"#c-{second.pk}").click()
    await expect(page.locator("#log")).to_contain_text("Good day")
    await expect(page).to_have_url(re.compile(str(second.pk)))
    await expect(page.locator(f"#c-{second.pk}")).to_have_attribute("aria-current", "true")
    await expect(page.locator(f"#c-{second.pk} .badge")).to_have_count(0)
    await expect(page.locator("#tab-all")).to_have_attribute("href", re.compile(f"^{_at(second)}"))
    assert await page.evaluate("window.isSamePage") is True
    async with page.expect_response(re.compile(str(first.pk))):
        await in_thread(say, second, "Are you there?")
    await expect(page.locator("#log")).to_contain_text("Are you there?")
    await page.wait_for_timeout(500)
    await page.keyboard.press("Alt+k")
    if not await page.locator("#reply-text").count():
        await page.keyboard.press("Alt+j")
    await expect(page.locator("#reply-text")).to_have_value("Half a sent")
    assert await page.evaluate("window.isSamePage") is True


async def test_news_that_comes_before_a_press_is_painted_is_shown(
    web: str, open_page: Any, deployment: Any, agent: Any
) -> None:
    first, second = await _said(deployment, "Hello"), await _said(deployment, "Good day")
    page = await log_in(open_page, web, agent, _at(first))
    async with page.expect_response(re.compile(str(second.pk))):
        await page.reload()
    await expect(page.locator("body")).to_have_attribute("data-line", "open")
    await page.wait_for_timeout(500)
    await page.evaluate("window.requestAnimationFrame = () => 0")
    await page.locator(f"#c-{second.pk}").evaluate("(row) => row.click()")
    await expect(page.locator("#log")).to_contain_text("Good day")
    await in_thread(say, second, "Are you there?")
    await expect(page.locator("#log")).to_contain_text("Are you there?")


async def test_canned_reply_is_chosen_with_keys_and_without_a_line(
    web: str, open_page: Any, deployment: Any, agent: Any
) -> None:
    session = await _said(deployment, "Hello")
    await in_scope(deployment.tenant_id, handoff.take_over, session.pk, agent)
    for name, text in (("bye", "Good bye."), ("hi", "Hello {visitor name}."), ("hours", "We are here until five.")):
        await in_scope(deployment.tenant_id, labels_and_replies.save_reply, agent, name=name, text=text)
    page = await log_in(open_page, web, agent, _at(session))
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    await page.locator("#reply-text").focus()
    await page.keyboard.type("/h")
    await expect(page.locator("#canned").get_by_role("option")).to_have_count(2)
    await page.keyboard.press("ArrowDown")
    await expect(page.locator("#canned").get_by_role("option", selected=True)).to_contain_text("hours")
    await page.keyboard.press("ArrowUp")
    await page.keyboard.press("Enter")
    await expect(page.locator("#reply-text")).to_have_value("Hello.")  # nobody knows their name
    await expect(page.locator("#reply-text")).to_be_focused()
    await page.fill("#reply-text", "")
    await page.keyboard.type("/")
    await page.keyboard.press("Escape")
    await expect(page.locator("#reply-text")).to_have_value("/")
    assert [url for url in asked if "repl" in url] == []


async def test_emoji_is_inserted_at_the_cursor_of_a_reply_and_of_a_note(
    web: str, open_page: Any, deployment: Any, agent: Any
) -> None:
    session = await _said(deployment, "Hello")
    await in_scope(deployment.tenant_id, handoff.take_over, session.pk, agent)
    page = await log_in(open_page, web, agent, _at(session))
    await page.fill("#reply-text", "Thanks you")
    await page.evaluate("document.querySelector('#reply-text').setSelectionRange(6, 6)")
    menu = page.locator("#answering [data-emoji]")
    await menu.locator("summary").focus()
    await page.keyboard.press("Enter")
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("Enter")
    await expect(page.locator("#reply-text")).to_have_value("Thanks🙂 you")
    await expect(page.locator("#reply-text")).to_be_focused()
    await expect(menu.locator(".menu")).to_be_hidden()
    await page.locator("#sheet-note").click()
    await page.locator("#noting [data-emoji] summary").click()
    await page.set_viewport_size({"width": 390, "height": 800})
    await expect(page.locator("#noting [data-emoji] .menu")).to_be_in_viewport(ratio=1)
    await page.locator("#noting [data-emoji]").get_by_role("button", name="👍").click()
    await expect(page.locator("#note-text")).to_have_value("👍")
    await page.reload()
    await expect(page.locator("#reply-text")).to_have_value("Thanks🙂 you")  # the draft has it


async def test_several_are_chosen_with_keys_while_news_come_in(
    web: str, open_page: Any, deployment: Any, agent: Any
) -> None:
    first, second = await _said(deployment, "Hello"), await _said(deployment, "Good day")
    page = await log_in(open_page, web, agent, "/console/inbox/")
    await page.get_by_label(f"Select {second.visitor_name}").focus()
    await page.keyboard.press("Space")
    await in_thread(say, first, "Are you there?")
    await expect(page.locator("#conversations")).to_contain_text("Are you there?")
    await expect(page.locator("[data-picked]")).to_have_text("1 selected")
    await page.get_by_role("button", name="Select all").click()
    await page.locator("#several").get_by_role("button", name="Resolve").click()
    await expect(page.locator("#told")).to_have_text("2 resolved.")
    await expect(page.locator("#conversations")).to_contain_text("No conversations yet")
    await expect(page.locator("#several")).to_be_hidden()


async def test_visitor_is_asked_in_a_dialog_that_shows_what_they_would_see(
    web: str, open_page: Any, deployment: Any, agent: Any
) -> None:
    session = await _said(deployment, "Hello")
    page = await log_in(open_page, web, agent, _at(session))
    await page.keyboard.press("Alt+KeyQ")
    await page.fill("#id_question", "Which day suits you?")
    await page.fill("#id_answers", "Monday\nTuesday")
    await expect(page.locator("#ask-preview li")).to_have_text(["Monday", "Tuesday"])
    await page.get_by_role("button", name="Send", exact=True).click()
    await expect(page.locator(".asked-of .chip")).to_have_text(["Monday", "Tuesday"])
    await expect(page.locator("dialog.asking")).to_be_hidden()
    await page.get_by_role("button", name="Withdraw").click()
    await expect(page.locator("#log")).to_contain_text("Withdrawn without an answer")


async def test_alt_and_a_letter_do_what_the_buttons_do(web: str, open_page: Any, deployment: Any, agent: Any) -> None:
    older, newer = await _said(deployment, "I was first"), await _said(deployment, "I was second")
    page = await log_in(open_page, web, agent, _at(newer))
    await page.keyboard.press("Alt+KeyJ")
    await expect(page.locator("#log")).to_contain_text("I was first")
    await page.wait_for_selector("[data-line=open]")
    await page.keyboard.press("Alt+KeyA")
    await expect(page.locator("#answering")).to_contain_text("You are answering")
    await page.keyboard.press("Alt+KeyL")
    await expect(page.locator("#reply-text")).to_be_focused()
    await page.keyboard.press("Alt+KeyP")
    await expect(page.locator("#note-text")).to_be_focused()
    await page.keyboard.press("Alt+KeyM")
    await expect(page.get_by_role("button", name="Tomorrow at 9:00")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("button", name="Tomorrow at 9:00")).to_be_hidden()
    await page.keyboard.press("Alt+KeyE")
    await expect(page.locator("#desk-state")).to_contain_text("Resolved")
    await expect(page.locator(f"#c-{older.pk}")).to_have_count(0)
    await page.keyboard.press("Alt+KeyE")
    await expect(page.locator("#desk-state")).not_to_contain_text("Resolved")


async def test_colleague_who_looks_is_named_and_goes_with_their_page(
    web: str, open_page: Any, deployment: Any, agent: Any, owner: Any
) -> None:
    session = await _said(deployment, "Hello")
    page = await log_in(open_page, web, agent, _at(session))
    other = await log_in(open_page, web, owner, _at(session))
    await expect(page.locator("#lookers")).to_contain_text(f"{owner.display_name} is also viewing this")
    await other.goto(f"{web}/console/insights/")
    await expect(page.locator("#lookers")).to_have_text("")


def _busy(deployment: Any, agent: Any) -> ChatSession:
    """A conversation with something of everything."""
    sessions = [make_session(deployment) for _ in range(4)]
    for number, session in enumerate(sessions):
        say(session, f"Where is my order number {number}, and when will it be here at last?")
    with tenant_scope(deployment.tenant_id):
        for name, colour in (("Refunds", "red"), ("A label with quite a long name for one", "green")):
            label = labels_and_replies.save_label(agent, name=name, colour=colour)
            services.mark(sessions[0].pk, agent, label_id=label.pk, on=True)
        labels_and_replies.save_reply(agent, name="hours", text="We are here until five.")
        services.assign(sessions[0].pk, agent, to=agent)
        services.note(sessions[0].pk, agent, "Mind this one: averylongwordwithoutanyspaceinit" * 3)
        services.snooze(sessions[0].pk, agent, until=now() + timedelta(days=2))
        handoff.take_over(sessions[0].pk, agent)
        ChatSession.objects.filter(pk__in=[one.pk for one in sessions[:2]]).update(last_customer="C-1")
    return sessions[0]


async def _wrong(page: Page, name: str, **options: Any) -> list[str]:
    found: list[str] = []
    dresses: list[tuple[Literal["light", "dark"], ViewportSize]] = [("light", WIDE), ("dark", NARROW)]
    for theme, size in dresses:
        await page.emulate_media(color_scheme=theme, reduced_motion="reduce")
        await page.set_viewport_size(size)
        if SHOTS:
            await page.screenshot(path=f"{SHOTS}/{name}-{theme}-{size['width']}.png")
        for each in await violations(page, **options):
            found += [f"{name} {theme}: {each['id']} at {node['target']}" for node in each["nodes"]]
        if await page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"):
            found.append(f"{name} {theme}: scrolls sideways")
    await page.set_viewport_size(WIDE)
    return found


async def test_desk_can_be_used_by_everybody(web: str, open_page: Any, deployment: Any, agent: Any) -> None:
    session = await in_thread(_busy, deployment, agent)
    page = await log_in(open_page, web, agent, _at(session))
    wrong = await _wrong(page, "desk")
    await page.keyboard.press("Alt+KeyP")
    await page.keyboard.type("/")
    wrong += await _wrong(page, "desk-canned")
    await page.keyboard.press("Escape")
    await page.keyboard.press("Alt+KeyM")
    wrong += await _wrong(page, "desk-snooze")
    await page.keyboard.press("Alt+KeyQ")
    await expect(page.get_by_label("Choice", exact=True)).to_be_focused()
    wrong += await _wrong(page, "desk-ask")
    await page.goto(f"{web}/console/inbox/?status=any")
    await page.keyboard.press("Alt+KeyO")
    wrong += await _wrong(page, "desk-filters")
    await page.keyboard.press("Escape")
    await page.locator("[name=pick]").first.check()
    await page.locator("#several summary").first.click()
    # The open menu lies over a row of the list.
    wrong += await _wrong(page, "desk-several", rules={"target-size": {"enabled": False}})
    for path in ("labels", "replies"):
        await page.goto(f"{web}/console/inbox/{path}/")
        await page.locator("details.more > summary").first.click()
        wrong += await _wrong(page, path)
    assert wrong == []


PICTURE = Path(__file__).parents[2] / "static/console/icon-192.png"
# Hands a file to the page as a drop or a paste does.
HAND_OVER = """([kind, on, name, type, words]) => {
  const data = new DataTransfer();
  data.items.add(new File([words], name, { type }));
  const init = { bubbles: true, cancelable: true };
  const pasted = () => new ClipboardEvent(kind, { ...init, clipboardData: data });
  const dropped = () => new DragEvent(kind, { ...init, dataTransfer: data });
  document.querySelector(on).dispatchEvent(kind === "paste" ? pasted() : dropped());
}"""


async def _answers(web: str, open_page: Any, deployment: Any, agent: Any, **options: Any) -> tuple[ChatSession, Page]:
    session = await _said(deployment, "Please send me the form.")
    await in_scope(deployment.tenant_id, handoff.take_over, session.pk, agent)
    return session, await log_in(open_page, web, agent, _at(session), **options)


@pytest.mark.parametrize("size", [WIDE, ViewportSize(width=390, height=760)], ids=["wide", "narrow"])
async def test_files_are_chosen_dropped_and_pasted_and_sent_before_the_text(
    web: str, open_page: Any, deployment: Any, agent: Any, size: ViewportSize
) -> None:
    _, page = await _answers(web, open_page, deployment, agent, viewport=size)
    attached = page.locator("#attached li")
    async with page.expect_file_chooser() as chooser:
        await page.get_by_role("button", name="Attach files").press("Enter")
    await (await chooser.value).set_files(PICTURE)
    await page.evaluate(HAND_OVER, ["drop", "#log", "form.txt", "text/plain", "Sign here"])
    await page.evaluate(HAND_OVER, ["paste", "#reply-text", "terms.txt", "text/plain", "Be kind"])
    await page.evaluate(HAND_OVER, ["drop", "#log", "program.exe", "application/octet-stream", "MZ"])
    await expect(attached).to_have_count(4)
    await expect(attached.first.locator("canvas")).to_be_visible()
    await expect(attached.last).to_contain_text("can't be sent")
    await page.get_by_role("button", name="Remove terms.txt").press("Enter")
    await expect(attached).to_have_count(3)
    await page.fill("#reply-text", "Here it is.")
    await _shoot(page, f"attached-{size['width']}")
    assert [(v["id"], [n["html"] for n in v["nodes"]]) for v in await violations(page)] == []
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    await page.locator("#reply-text").press("Enter")
    await expect(page.locator("#log .sent-file")).to_have_count(2)
    await expect(attached).to_have_text([re.compile("program.exe")])
    await expect(page.locator("#reply-text")).to_have_value("Here it is.")
    await page.get_by_role("button", name="Remove program.exe").click()
    await page.locator("#reply-text").press("Enter")
    await expect(page.locator("#log .say.human").last).to_contain_text("Here it is.")
    picture = page.locator("#log .picture img")
    await expect(picture).to_have_attribute("alt", PICTURE.name)
    assert await picture.evaluate("async (img) => { await img.decode(); return img.naturalWidth; }") == 192
    await expect(page.locator(".htmx-request")).to_have_count(0)  # buttons are paler until the answer is there
    await _shoot(page, f"sent-files-{size['width']}")
    assert [(v["id"], [n["html"] for n in v["nodes"]]) for v in await violations(page)] == []


async def test_file_that_the_server_refuses_stays_with_its_reason(
    web: str, open_page: Any, deployment: Any, agent: Any
) -> None:
    _, page = await _answers(web, open_page, deployment, agent)
    await page.evaluate(HAND_OVER, ["drop", "#log", "picture.png", "image/png", "<script>"])
    await page.get_by_role("button", name="Send", exact=True).click()
    await expect(page.locator("#attached .problem")).to_be_visible()
    await expect(page.locator("#log .sent-file")).to_have_count(0)
    open_page.errors.clear()


async def test_large_file_is_refused_before_it_is_sent(web: str, open_page: Any, deployment: Any, agent: Any) -> None:
    _, page = await _answers(web, open_page, deployment, agent)
    await page.locator("#attach-files").evaluate("(field) => { field.dataset.mostBytes = 1048576; }")
    await page.evaluate(HAND_OVER, ["drop", "#log", "long.txt", "text/plain", "x" * 1048577])
    await expect(page.locator("#attached .problem")).to_contain_text("up to 1 MB")


async def _shoot(page: Page, name: str) -> None:
    if SHOTS:
        await page.screenshot(path=f"{SHOTS}/{name}.png")


@pytest.mark.parametrize("size", [WIDE, ViewportSize(width=390, height=760)], ids=["wide", "narrow"])
async def test_teammate_is_mentioned_with_keys_and_sees_it_at_once(
    web: str, open_page: Any, deployment: Any, agent: Any, owner: Any, size: ViewportSize
) -> None:
    session, page = await _answers(web, open_page, deployment, agent, viewport=size)
    theirs = await log_in(open_page, web, owner, "/console/inbox/?tab=mentions")
    await expect(theirs.locator("#conversations")).to_contain_text("No mentions")
    await page.get_by_role("tab", name="Private note").click()
    note, names = page.locator("#note-text"), page.locator("#mention-list")
    await note.press_sequentially("Could you look, @u")
    await expect(names.get_by_role("option")).to_have_count(1)
    await expect(names.get_by_role("option", selected=True)).to_have_text(owner.display_name)
    await _shoot(page, f"mention-{size['width']}")
    assert [(v["id"], [n["html"] for n in v["nodes"]]) for v in await violations(page)] == []
    await note.press("Escape")
    await expect(names).to_be_hidden()
    await note.press("Backspace")
    await note.press("ArrowDown")
    await note.press("Enter")
    await expect(note).to_have_value(f"Could you look, @{owner.display_name} ")
    await note.press("Enter")
    await expect(page.locator("#log .say.note")).to_contain_text(f"@{owner.display_name}")
    await expect(theirs.locator("#tab-mentions")).to_contain_text("1")
    await expect(theirs.locator(f"#c-{session.pk} .badge")).to_have_text("2")
    await theirs.locator(f"#c-{session.pk}").click()
    await expect(theirs.locator("#tab-mentions .num")).to_have_text("0")
    await _shoot(theirs, f"mentioned-{size['width']}")


async def test_filter_is_saved_under_a_name_and_opened_again(
    web: str, open_page: Any, deployment: Any, agent: Any
) -> None:
    await _said(deployment, "A pipe has burst.")
    page = await log_in(open_page, web, agent, "/console/inbox/?tab=unassigned&status=open")
    await page.get_by_text("Views", exact=True).click()
    await page.get_by_label("Save this filter as").fill("Waiting now")
    await page.get_by_role("button", name="Save view").click()
    for address in ("inbox/", "inbox/?assignee=nobody&q=pipe", "review/?risk=high"):
        for width, height in ((390, 844), (1366, 768)):
            await page.set_viewport_size({"width": width, "height": height})
            await page.goto(f"{web}/console/{address}")
            if address.startswith("review") and width < 400:
                await page.get_by_role("link", name="Queue", exact=True).click()
            await page.locator("#views > summary").click()
            menu = await page.locator("#views .menu").bounding_box()
            assert menu is not None
            assert menu["x"] >= (64 if width > 400 else 0)  # beside the rail
            assert menu["x"] + menu["width"] <= width
            assert await violations(page) == []
            if SHOTS:
                await page.screenshot(path=f"{SHOTS}/views-{len(address)}-{width}.png")
    await page.goto(f"{web}/console/inbox/")
    await page.locator("#views > summary").click()
    await page.get_by_role("link", name="Waiting now").click()
    await expect(page).to_have_url(f"{web}/console/inbox/?tab=unassigned&status=open")


async def test_assign_menu_and_search_have_keys_which_the_list_of_shortcuts_names(
    web: str, open_page: Any, deployment: Any, agent: Any
) -> None:
    session = await _said(deployment, "Hello")
    page = await log_in(open_page, web, agent, _at(session))
    await page.wait_for_selector("[data-line=open]")
    await page.keyboard.press("Alt+KeyI")
    await expect(page.locator("#pick-assign")).to_have_attribute("open", "")
    await expect(page.locator("#assign-form button").first).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.locator("#desk-state")).to_contain_text("Assigned to")
    await expect(page.get_by_role("button", name="Mark as unread")).to_be_visible()
    await page.keyboard.press("Alt+KeyS")
    await expect(page.get_by_role("searchbox", name="Search conversations")).to_be_focused()
    await page.keyboard.type("nothing like this")
    await page.keyboard.press("Enter")
    await page.wait_for_url("**q=nothing+like+this**")
    await page.keyboard.press("?")
    shortcuts = page.locator("#help dl > div")
    await expect(shortcuts.filter(has_text="Search conversations")).to_contain_text("Alt S")
    await expect(shortcuts.filter(has_text="Assign").filter(has_text="Alt I")).to_have_count(1)


# Parts whose text needs more than one line, or more room than they have.
_CUT = """
    (parts) => parts.filter((part) => part.offsetParent).filter((part) => {
      const range = document.createRange();
      range.selectNodeContents(part);
      const boxes = [...range.getClientRects()].filter((box) => box.width);
      const lines = new Set(boxes.map((box) => Math.round(box.bottom / 8)));
      return lines.size > 2 || part.scrollWidth > part.clientWidth + 1;
    }).map((part) => part.textContent || part.id)
"""


async def test_inbox_cuts_nothing_on_a_laptop(web: str, open_page: Any, deployment: Any, agent: Any) -> None:
    session = await _said(deployment, "Is my cello insured while I travel?")
    await in_thread(want_person, session)
    await in_scope(deployment.tenant_id, handoff.take_over, session.pk, agent)
    page = await log_in(open_page, web, agent, _at(session), viewport={"width": 1366, "height": 768})
    assert await page.locator("#list .finder :is(a, summary, input), #desk .btn").evaluate_all(_CUT) == []
    heights = "(parts) => parts.map((part) => part.getBoundingClientRect().top)"
    tops = await page.locator("#desk .deeds :is(summary, span > button)").evaluate_all(heights)
    if SHOTS:
        await page.screenshot(path=f"{SHOTS}/inbox-1366.png")
    assert max(tops) - min(tops) < 20
    search = await page.locator("#find").bounding_box()
    assert search is not None
    assert search["width"] >= 120
    await page.get_by_role("link", name="Unread").click()
    await expect(page.get_by_role("link", name="Unread")).to_have_attribute("aria-current", "true")
    # It was read when it was opened.
    await expect(page.locator("#conversations li a[id^=c-]")).to_have_count(0)
    if SHOTS:
        await page.set_viewport_size({"width": 390, "height": 844})
        await page.screenshot(path=f"{SHOTS}/inbox-thread-390.png")
        await page.goto(f"{web}/console/inbox/")
        await page.screenshot(path=f"{SHOTS}/inbox-390.png")


# The tops of the rows above the list, of what is seen of each.
_ROWS = """
    (parts) => [...new Set(parts.filter((part) => part.offsetParent && getComputedStyle(part).opacity !== "0")
      .map((part) => part.getBoundingClientRect()).map((box) => Math.round((box.top + box.height / 2) / 16)))]
"""


_IS_SEEN = """
    (part) => ["#tabs", "#list"].every((around) =>
      part.getBoundingClientRect().right <= part.closest(around).getBoundingClientRect().right)
"""


# How far the ring of a focused element reaches beyond it.
_RING_ENDS = """
    (part) => {
      const style = getComputedStyle(part);
      return parseFloat(style.outlineOffset) + parseFloat(style.outlineWidth);
    }
"""


async def test_list_on_a_german_laptop_cuts_no_tab(web: str, open_page: Any, deployment: Any, agent: Any) -> None:
    await _said(deployment, "Is my cello insured while I travel?")
    size = {"width": 1366, "height": 768}
    page = await log_in(open_page, web, agent, "/console/inbox/?tab=all", viewport=size, locale="de-DE")
    await expect(page.locator("#tabs [aria-current]")).to_have_text("Alle")
    assert await page.locator("#tab-all").evaluate(_IS_SEEN)
    rows = page.locator("#list .finder :is(.tabs a, .search input, .toggles a, summary)")
    assert len(await rows.evaluate_all(_ROWS)) == 3
    # The tabs scroll, so that they cut what lies around a link.
    await page.locator("#tab-mine").focus()
    await page.keyboard.press("Tab")
    await expect(page.locator("#tab-mentions")).to_be_focused()
    assert await page.locator("#tab-mentions").evaluate(_RING_ENDS) <= 0


@pytest.mark.parametrize("width", [360, 390])
async def test_list_on_a_german_phone_begins_below_two_rows(
    web: str, open_page: Any, deployment: Any, agent: Any, width: int
) -> None:
    await _said(deployment, "Is my cello insured while I travel?")
    size = {"width": width, "height": 780}
    page = await log_in(open_page, web, agent, "/console/inbox/", viewport=size, locale="de-DE")
    rows = page.locator("#list .finder :is(.tabs a, .search label, .toggles a, summary)")
    assert len(await rows.evaluate_all(_ROWS)) == 2
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    await expect(page.locator("#tabs [aria-current]")).to_have_text("Alle")
    assert await page.locator("#tab-all").evaluate(_IS_SEEN)
    if SHOTS:
        await page.screenshot(path=f"{SHOTS}/inbox-de-{width}.png")
    # A reader who looks at the other tabs is not sent back whenever a part of the page is renewed.
    await page.locator("#tabs").evaluate("(tabs) => { tabs.scrollLeft = 0; }")
    await page.evaluate("htmx.trigger(document.body, 'htmx:afterSettle')")
    assert await page.locator("#tabs").evaluate("(tabs) => tabs.scrollLeft") == 0
    await page.get_by_role("searchbox", name="Gespräche durchsuchen").click()
    await page.keyboard.type("cello")
    shown = await page.locator("#find").bounding_box()
    assert shown is not None
    assert shown["width"] > width - 50
    await page.keyboard.press("Enter")
    await page.wait_for_url("**q=cello**")
    await expect(page.locator("#find")).to_have_value("cello")
    await expect(page.locator("#find")).to_have_css("opacity", "1")
    assert await violations(page) == []


async def test_account_page_on_a_german_phone_does_not_scroll_sideways(web: str, open_page: Any, agent: Any) -> None:
    size = {"width": 360, "height": 780}
    page = await log_in(open_page, web, agent, "/console/account/alerts/", viewport=size, locale="de-DE")
    await expect(page.get_by_role("heading", level=1)).to_have_text("Benachrichtigungen")
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
