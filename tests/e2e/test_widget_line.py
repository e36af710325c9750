"""The widget's line when frames come late, twice or never, and the line breaks: nothing is lost, nothing is twice."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from playwright.async_api import expect
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from tests.e2e.conftest import OpenPage
from tests.e2e.peer import Peer
from tests.e2e.widget import talking


@pytest.fixture
def demo(web: str, deployment: Any) -> str:
    return f"{web}/demo/{deployment.tenant.slug}/"


async def test_frames_out_of_order_and_repeated_stand_once_in_order(open_page: OpenPage, demo: str, peer: Peer) -> None:
    _, widget = await talking(open_page, demo, peer)
    frames = [peer.note(text=text) for text in ("one", "two", "three")]
    for at in (2, 0, 2, 1, 0):
        peer.send(frames[at])
    await expect(widget.bot).to_have_text(["one", "two", "three"])


async def test_frames_missed_while_the_line_was_down_arrive_once(open_page: OpenPage, demo: str, peer: Peer) -> None:
    _, widget = await talking(open_page, demo, peer)
    peer.say(text="before")
    await expect(widget.bot).to_have_count(1)
    peer.note(text="meanwhile")
    await peer.hang_up(1001)
    await expect(widget.bot).to_have_text(["before", "meanwhile"])


async def test_reconnect_asks_for_what_comes_after_the_last_frame(open_page: OpenPage, demo: str, peer: Peer) -> None:
    _, widget = await talking(open_page, demo, peer)
    peer.say(text="one")
    await expect(widget.bot).to_have_count(1)
    await peer.hang_up(1001)
    assert [frame["after_seq"] for frame in await peer.hears(2, "auth")] == [0, 1]


async def test_message_not_acknowledged_before_the_line_broke_goes_again_as_the_same(
    open_page: OpenPage, demo: str, peer: Peer
) -> None:
    _, widget = await talking(open_page, demo, peer)
    peer.acknowledges = False
    await widget.say("Did this arrive?")
    await peer.hears(1)
    peer.acknowledges = True
    await peer.hang_up(1001)
    first, second = await peer.hears(2)
    assert first == second


async def test_message_sent_twice_is_shown_once(open_page: OpenPage, demo: str, peer: Peer) -> None:
    _, widget = await talking(open_page, demo, peer)
    peer.acknowledges = False
    await widget.say("Did this arrive?")
    sent = (await peer.hears(1))[0]
    peer.note(sender="visitor", text=sent["text"], client_id=sent["client_id"])
    peer.acknowledges = True
    await peer.hang_up(1001)
    await peer.hears(2)
    peer.say(text="Yes")
    await expect(widget.bot).to_have_text("Yes")
    await expect(widget.mine).to_have_text(["Did this arrive?"])


async def test_message_typed_before_a_reload_without_acknowledgement_is_not_lost(
    open_page: OpenPage, demo: str, peer: Peer
) -> None:
    page, widget = await talking(open_page, demo, peer)
    peer.acknowledges = False
    await widget.say("Keep me")
    await peer.hears(1)
    peer.acknowledges = True
    await page.reload()
    first, second = await peer.hears(2)
    assert first["text"] == second["text"]
    assert first["client_id"] == second["client_id"]


async def test_message_refused_for_now_goes_again_after_the_wait(open_page: OpenPage, demo: str, peer: Peer) -> None:
    _, widget = await talking(open_page, demo, peer)
    peer.acknowledges = False
    await widget.say("Quick")
    sent = (await peer.hears(1))[0]
    refusal = {"type": "error", "code": "busy_retry", "message": "Wait.", "retry_after": 1}
    peer.send({**refusal, "client_id": sent["client_id"]})
    await expect(widget.notice).to_contain_text("sent again in 1 s")
    assert (await peer.hears(2))[1] == sent


async def test_message_refused_for_good_does_not_go_again(open_page: OpenPage, demo: str, peer: Peer) -> None:
    _, widget = await talking(open_page, demo, peer)
    peer.acknowledges = False
    await widget.say("Too odd")
    sent = (await peer.hears(1))[0]
    peer.send({"type": "error", "code": "invalid_frame", "message": "Bad.", "client_id": sent["client_id"]})
    await expect(widget.notice).to_contain_text("try rephrasing it")
    await peer.hang_up(1001)
    await peer.hears(2, "auth")
    await asyncio.sleep(0.3)
    assert len(peer.said()) == 1


async def test_message_too_long_for_a_frame_stays_in_the_field(open_page: OpenPage, demo: str, peer: Peer) -> None:
    _, widget = await talking(open_page, demo, peer)
    await widget.say("a" * 4001)
    await expect(widget.notice).to_contain_text("too long")
    await expect(widget.field).to_have_value("a" * 4001)


async def test_lost_connection_says_that_messages_will_be_sent(open_page: OpenPage, demo: str, peer: Peer) -> None:
    _, widget = await talking(open_page, demo, peer)
    peer.answers_auth = False
    await peer.hang_up(1001)
    await peer.hears(2, "auth")
    await peer.hang_up(1001)
    await expect(widget.state).to_contain_text("will be sent")


async def test_close_for_another_window_waits_for_the_visitor(open_page: OpenPage, demo: str, peer: Peer) -> None:
    _, widget = await talking(open_page, demo, peer)
    await peer.hang_up(4009)
    await expect(widget.state).to_contain_text("another window")
    await asyncio.sleep(1.2)
    assert peer.connections == 1
    await widget.button("Continue here").click()
    await peer.hears(2, "auth")


async def test_close_as_forbidden_is_final(open_page: OpenPage, demo: str, peer: Peer) -> None:
    _, widget = await talking(open_page, demo, peer)
    await peer.hang_up(4003)
    await expect(widget.state).to_have_text("This chat isn't available right now.")
    await asyncio.sleep(1.2)
    assert peer.connections == 1


async def test_close_as_not_authenticated_asks_for_a_new_token(open_page: OpenPage, demo: str, peer: Peer) -> None:
    page, _ = await talking(open_page, demo, peer)
    async with page.expect_request("**/sessions") as asked:
        await peer.hang_up(4001)
    assert "resume_token" in ((await asked.value).post_data_json or {})


@pytest.mark.parametrize("path", ["/", "/ws/", "/ws/nothing/", "/console/"])
def test_socket_at_an_unknown_address_is_refused(web: str, path: str) -> None:
    with pytest.raises(InvalidStatus) as refused:
        connect(f"ws{web.removeprefix('http')}{path}", proxy=None)
    assert refused.value.response.status_code == 403
