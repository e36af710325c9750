"""What the visitor is asked to press or to give, at the worst moments: the line lost, the time up, the page left."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from playwright.async_api import Locator, Page, expect

from apps.sessions.models import ChatSession, ChronicleEntry
from apps.visitors import prompts
from kernel.tenancy import in_scope
from tests.e2e.conftest import OpenPage
from tests.e2e.console import log_in
from tests.e2e.peer import Peer
from tests.e2e.widget import Widget, opened, talking

OPTIONS = [{"value": "send", "label": "Send it to me"}, {"value": "keep", "label": "Keep it here"}]
SHOTS = os.environ.get("SILAS_SHOTS", "")
SECRET = "correct horse battery staple"


@pytest.fixture
def demo(web: str, deployment: Any) -> str:
    return f"{web}/demo/{deployment.tenant.slug}/"


def _ask(peer: Peer, *, seconds: float = 600, **fields: Any) -> None:
    until = (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat()
    about = {"request_id": "q", "sender": "bot", "question": "Where shall it go?", "options": OPTIONS}
    peer.say("decision", **{**about, "risk_level": "low", "expires_at": until, **fields})


async def _pictured(page: Page, name: str) -> None:
    if SHOTS:
        await page.screenshot(path=f"{SHOTS}/{name}.png")


def _card(widget: Widget) -> Locator:
    return widget.log.locator(".ask")


async def test_question_whose_answer_was_lost_with_the_line_is_answered_once(
    open_page: OpenPage, demo: str, peer: Peer
) -> None:
    """Pressed, sent, the line breaks before the record comes: the same press goes again, and nothing can be pressed
    meanwhile."""
    _, widget = await talking(open_page, demo, peer)
    _ask(peer)
    await widget.button("Send it to me").click()
    await expect(widget.button("Keep it here")).to_be_disabled()
    await peer.hears(1, "decision_response")
    await peer.hang_up(1001)
    first, second = await peer.hears(2, "decision_response")
    assert first == second
    peer.say(
        "decision", sender="visitor", request_id="q", selected_value="send", label="Send it to me", status="answered"
    )
    await expect(_card(widget)).to_contain_text("Your answer: Send it to me")
    await expect(_card(widget).get_by_role("button")).to_have_count(0)


async def test_question_of_high_risk_takes_a_slide_and_a_press_by_keyboard_alone(
    open_page: OpenPage, demo: str, peer: Peer
) -> None:
    page, widget = await talking(open_page, demo, peer)
    _ask(peer, risk_level="high")
    await widget.button("Send it to me").press("Enter")
    slide = _card(widget).get_by_role("slider")
    await expect(slide).to_be_focused()
    await expect(widget.button("Confirm: Send it to me")).to_be_disabled()
    await page.keyboard.press("End")
    await widget.button("Confirm: Send it to me").press("Enter")
    (said,) = await peer.hears(1, "decision_response")
    assert said["request_id"] == "q"
    assert said["selected_value"] == "send"


async def test_question_whose_time_runs_out_while_open_can_no_longer_be_pressed(
    open_page: OpenPage, demo: str, peer: Peer
) -> None:
    _, widget = await talking(open_page, demo, peer)
    _ask(peer, seconds=2)
    await expect(_card(widget)).to_contain_text("This request has expired. Nothing was changed.")
    await expect(_card(widget).get_by_role("button")).to_have_count(0)


async def test_refused_answer_says_why_and_leaves_the_question_open(open_page: OpenPage, demo: str, peer: Peer) -> None:
    _, widget = await talking(open_page, demo, peer)
    _ask(peer)
    await widget.button("Send it to me").click()
    await peer.hears(1, "decision_response")
    peer.send({"type": "error", "code": "card_not_yours", "message": "x", "request_id": "q"})
    await expect(_card(widget)).to_contain_text("Please verify your identity again")
    await expect(widget.button("Send it to me")).to_be_enabled()


async def test_visitor_who_left_before_answering_finds_the_question_and_answers(
    open_page: OpenPage, demo: str, tenant: Any
) -> None:
    """The whole way, with the real platform: asked, left, back, pressed, recorded as the visitor's decision."""
    page = await open_page(demo)
    widget = await opened(page)
    await widget.say("Hello")
    await expect(widget.log.locator(".mine[data-seq='1']")).to_have_count(1)
    session_id: UUID = await in_scope(tenant, lambda: ChatSession.objects.get().pk)
    asked = prompts.Question.model_validate({"question": "Where shall it go?", "options": OPTIONS})
    await in_scope(tenant, prompts.ask_visitor, session_id, asked, actor="api_key:test")
    await page.reload()
    widget = await opened(page)
    await widget.button("Keep it here").click()
    await expect(_card(widget)).to_contain_text("Your answer: Keep it here")
    rows = await in_scope(
        tenant, lambda: list(ChronicleEntry.objects.filter(kind="decision").values_list("sender", "text"))
    )
    assert sorted(rows) == [("bot", "Where shall it go?"), ("visitor", "Keep it here")]


async def test_secret_goes_to_its_own_address_and_over_no_line(open_page: OpenPage, demo: str, tenant: Any) -> None:
    page = await open_page(demo)
    over_the_line: list[str] = []
    page.on("websocket", lambda line: line.on("framesent", lambda frame: over_the_line.append(str(frame))))
    widget = await opened(page)
    await widget.say("Hello")
    await expect(widget.log.locator(".mine[data-seq='1']")).to_have_count(1)
    session_id: UUID = await in_scope(tenant, lambda: ChatSession.objects.get().pk)
    wanted = {"label": "Your PIN", "guidance": {"instructions": "It is on your card."}}
    asked = prompts.SecretWanted.model_validate(wanted)
    card = await in_scope(tenant, prompts.ask_visitor, session_id, asked, actor="api_key:test")
    await widget.frame.get_by_label("Your PIN").locator("input").fill(SECRET)
    async with page.expect_request(f"**/secrets/{card.pk}") as posted:
        await widget.button("Save securely").click()
    assert (await posted.value).post_data_json == {"value": SECRET}
    await expect(_card(widget)).to_contain_text("Saved securely.")
    assert over_the_line
    assert SECRET not in "".join(over_the_line)
    remembered = await widget.frame.locator("html").evaluate("(node) => JSON.stringify(localStorage) + node.outerHTML")
    assert SECRET not in remembered
    taken = await in_scope(tenant, prompts.take_secret, card.pk, session_id, actor="api_key:test")
    assert taken == SECRET


async def test_form_from_the_inbox_is_filled_in_by_the_visitor_and_read_by_whoever_asked(
    open_page: OpenPage, web: str, demo: str, tenant: Any, agent: Any
) -> None:
    """The whole way: put together in the dialog, wrong at one field, mended, sent, found again after a reload."""
    page = await open_page(demo)
    widget = await opened(page)
    await widget.say("Hello")
    await expect(widget.log.locator(".mine[data-seq='1']")).to_have_count(1)
    session_id: UUID = await in_scope(tenant, lambda: ChatSession.objects.get().pk)
    desk = await log_in(open_page, web, agent, f"/console/inbox/{session_id}/")
    await desk.keyboard.press("Alt+KeyQ")
    await desk.get_by_text("Form", exact=True).click()
    await desk.fill("#id_question", "About your return")
    await desk.fill("#id_label_1", "Where to write to")
    await desk.select_option("#id_takes_1", "email")
    await desk.check("#id_required_1")
    await desk.fill("#id_label_2", "How to send it back")
    await desk.select_option("#id_takes_2", "choice")
    await desk.fill("#id_choices_2", "Post; Shop")
    await expect(desk.locator("#ask-preview dt")).to_have_text(["Where to write to", "How to send it back (optional)"])
    await _pictured(desk, "ask-form")
    await desk.get_by_role("button", name="Send", exact=True).click()
    await expect(desk.locator("#log")).to_contain_text("About your return")
    card = _card(widget)
    await page.reload()
    widget = await opened(page)
    await card.get_by_label("Where to write to").fill("maria")
    await card.get_by_role("combobox").select_option("Shop")
    await card.get_by_role("button", name="Send").click()
    await expect(card).to_contain_text("Please enter a valid email address.")
    await expect(card.get_by_label("Where to write to")).to_be_focused()
    open_page.errors.clear()  # the browser reports the 400
    await _pictured(page, "ask-form-visitor")
    await card.get_by_label("Where to write to").fill("maria@example.com")
    await card.get_by_role("button", name="Send").click()
    await expect(card).to_contain_text("How to send it back: Shop")
    await expect(desk.locator("#log dd")).to_have_text(["maria@example.com", "Shop"])
    await expect(desk.locator("#contact")).to_contain_text("maria@example.com")
    await page.reload()
    await opened(page)
    await expect(card).to_contain_text("Sent:")
    await expect(card.get_by_role("button")).to_have_count(0)
