"""A visitor's conversation through the whole line: page, frame, socket, chronicle, staff."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from playwright.async_api import Page, expect

from apps.inbox import handoff
from apps.sessions.models import ChatSession, ChronicleEntry
from kernel.tenancy import in_scope
from tests.e2e.conftest import OpenPage
from tests.e2e.widget import Widget, opened


@pytest.fixture
def demo(web: str, deployment: Any) -> str:
    return f"{web}/demo/{deployment.tenant.slug}/"


async def _session(tenant: Any) -> UUID:
    found: UUID = await in_scope(tenant, lambda: ChatSession.objects.get().pk)
    return found


def _sent() -> list[str]:
    return list(ChronicleEntry.objects.filter(sender="visitor").values_list("text", flat=True))


async def _asked(open_page: OpenPage, demo: str, text: str) -> tuple[Page, Widget]:
    """A visitor whose first message is committed."""
    page = await open_page(demo)
    widget = await opened(page)
    await widget.say(text)
    await expect(widget.log.locator(".mine[data-seq='1']")).to_have_text(text)
    return page, widget


async def test_message_of_a_visitor_is_recorded_once(open_page: OpenPage, demo: str, tenant: Any) -> None:
    _, widget = await _asked(open_page, demo, "Is anybody there?")
    await expect(widget.mine).to_have_count(1)
    assert await in_scope(tenant, _sent) == ["Is anybody there?"]


async def test_conversation_after_a_reload_is_still_there(open_page: OpenPage, demo: str) -> None:
    page, widget = await _asked(open_page, demo, "Remember me")
    await page.reload()
    await widget.open()
    await expect(widget.mine).to_have_text(["Remember me"])


async def test_conversation_of_one_visitor_is_never_anothers(open_page: OpenPage, demo: str) -> None:
    _, first = await _asked(open_page, demo, "Mine alone")
    _, second = await _asked(open_page, demo, "And mine")
    await expect(first.mine).to_have_text(["Mine alone"])
    await expect(second.mine).to_have_text(["And mine"])


async def test_conversation_in_two_tabs_of_one_visitor_is_the_same(open_page: OpenPage, demo: str) -> None:
    page, first = await _asked(open_page, demo, "From the first tab")
    second_page = await page.context.new_page()
    await second_page.goto(demo)
    second = await opened(second_page)
    await expect(second.mine).to_have_text(["From the first tab"])
    await second.say("From the second tab")
    await expect(first.mine).to_have_text(["From the first tab", "From the second tab"])


async def test_takeover_is_seen_by_the_visitor_without_a_reload(
    open_page: OpenPage, demo: str, tenant: Any, agent: Any
) -> None:
    _, widget = await _asked(open_page, demo, "A person, please")
    await in_scope(tenant, handoff.take_over, await _session(tenant), agent)
    await expect(widget.owner).to_contain_text("is replying to you now")


async def test_reply_of_a_person_carries_their_name(open_page: OpenPage, demo: str, tenant: Any, agent: Any) -> None:
    _, widget = await _asked(open_page, demo, "A person, please")
    session_id = await _session(tenant)
    await in_scope(tenant, handoff.take_over, session_id, agent)
    await in_scope(tenant, handoff.reply, session_id, agent, "Here I am.")
    await expect(widget.bot.filter(has_text="Here I am.").locator(".who")).to_have_text(agent.display_name)


async def test_hand_back_is_seen_by_the_visitor_without_a_reload(
    open_page: OpenPage, demo: str, tenant: Any, agent: Any
) -> None:
    _, widget = await _asked(open_page, demo, "A person, please")
    session_id = await _session(tenant)
    await in_scope(tenant, handoff.take_over, session_id, agent)
    await expect(widget.owner).to_be_visible()
    await in_scope(tenant, handoff.hand_back, session_id, agent)
    await expect(widget.owner).to_be_hidden()


async def test_deployment_switched_off_says_so_to_the_visitor(
    open_page: OpenPage, demo: str, tenant: Any, deployment: Any
) -> None:
    page = await open_page(demo)
    await expect(Widget(page).bubble).to_have_accessible_name("Open chat")  # the frame's own name of it
    await in_scope(tenant, lambda: type(deployment).objects.filter(pk=deployment.pk).update(enabled=False))
    widget = await opened(page)
    await expect(widget.state).to_have_text("This chat isn't available right now.")
    open_page.errors.clear()
