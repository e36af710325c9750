"""Open consoles are told about commits of their own tenant only."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from channels.layers import get_channel_layer
from channels.routing import URLRouter
from channels.testing import WebsocketCommunicator
from django.contrib.auth.models import AnonymousUser

from apps.console import consumers, viewers
from apps.console.consumers import ConsoleConsumer
from apps.console.members import TENANT_IN_SESSION
from apps.console.routing import websocket_urlpatterns
from apps.inbox import handoff, queries
from apps.sessions.models import ChatSession
from apps.sessions.rules import group_of, watchers_of
from kernel import live
from kernel.presence import open_presences
from kernel.tenancy import in_scope, in_thread, tenant_scope
from tests.factories.audit import make_entries
from tests.factories.autonomy import make_house
from tests.factories.console import browser, make_card
from tests.factories.sessions import make_session, say, want_person
from tests.factories.tenants import make_member

# A machine that runs more than these tests is slow, not wrong.
PATIENCE = 60
ORIGIN = [(b"host", b"console.test"), (b"origin", b"https://console.test")]


def _line(user: Any, session: dict[str, Any] | None = None, headers: Any = ORIGIN) -> WebsocketCommunicator:
    line = WebsocketCommunicator(ConsoleConsumer.as_asgi(), "/ws/console/", headers=headers)
    line.scope.update(user=user, session=session or {})
    return line


async def _ready(user: Any, **scope: Any) -> WebsocketCommunicator:
    line = _line(user, **scope)
    await line.connect(timeout=PATIENCE)
    assert (await line.receive_json_from(PATIENCE))["type"] == "ready"
    return line


async def _close_code(line: WebsocketCommunicator) -> int:
    await line.connect(timeout=PATIENCE)
    return int((await line.receive_output(PATIENCE))["code"])


async def test_login_of_the_browser_is_read_at_the_address_of_the_socket(tenant: Any, owner: Any) -> None:
    client = await in_thread(browser, owner)
    for cookie, known in ((client.cookies["sessionid"].value, True), ("of-nobody", False)):
        headers = [*ORIGIN, (b"cookie", f"sessionid={cookie}".encode())]
        line = WebsocketCommunicator(URLRouter(websocket_urlpatterns), "/ws/console/", headers=headers)
        if known:
            await line.connect(timeout=PATIENCE)
            assert (await line.receive_json_from(PATIENCE))["type"] == "ready"
            await line.disconnect()
        else:
            assert await _close_code(line) == 4001


async def test_card_that_opened_is_told(tenant: Any, owner: Any) -> None:
    line = await _ready(owner)
    await in_thread(make_card, tenant)
    assert await line.receive_json_from(PATIENCE) == {"type": "changed", "what": "cards"}
    await line.disconnect()


async def test_conversation_that_changed_is_told(deployment: Any, owner: Any) -> None:
    session = await in_thread(make_session, deployment)
    line = await _ready(owner)
    await in_thread(say, session, "Hello")
    assert await line.receive_json_from(PATIENCE) == {"type": "changed", "what": f"session:{session.pk}"}
    await line.disconnect()


async def test_task_that_was_put_in_line_is_told_by_its_ids(tenant: Any) -> None:
    house = await in_thread(make_house, tenant)
    task = await in_thread(house.task)
    line = await _ready(house.owner)
    session = await in_thread(house.run_now, task)
    told = {"type": "changed", "what": "task:scheduled", "task": str(task.pk), "session": str(session.pk)}
    assert await line.receive_json_from(3) == told
    await line.disconnect()


async def test_change_of_another_tenant_is_not_told(tenant: Any, other_tenant: Any) -> None:
    line = await _ready(await in_thread(make_member, other_tenant, "owner"))
    await in_thread(make_card, tenant)
    assert await line.receive_nothing(0.3)
    await line.disconnect()


async def test_change_that_was_rolled_back_is_not_told(tenant: Any, deployment: Any, owner: Any) -> None:
    session = await in_thread(make_session, deployment)
    line = await _ready(owner)

    def break_off() -> None:
        with tenant_scope(tenant):
            handoff.take_over(session.pk, owner)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        await in_thread(break_off)
    assert await line.receive_nothing(0.3)
    await line.disconnect()


async def test_foreign_tenant_in_the_session_is_not_listened_to(tenant: Any, other_tenant: Any, owner: Any) -> None:
    line = await _ready(owner, session={TENANT_IN_SESSION: str(other_tenant.pk)})
    await in_thread(make_card, other_tenant)
    assert await line.receive_nothing(0.3)
    await line.disconnect()


async def test_socket_without_login_is_closed(database: None) -> None:
    assert await _close_code(_line(AnonymousUser())) == 4001


async def test_socket_of_a_stranger_is_closed(stranger: Any) -> None:
    assert await _close_code(_line(stranger)) == 4003


async def test_socket_from_another_site_is_closed(owner: Any) -> None:
    foreign = [(b"host", b"console.test"), (b"origin", b"https://evil.test")]
    assert await _close_code(_line(owner, headers=foreign)) == 4003


@pytest.mark.parametrize("text", ["not json", '{"type":"changed"}'])
async def test_socket_ignores_what_it_is_told(owner: Any, text: str) -> None:
    line = await _ready(owner)
    await line.send_to(text_data=text)
    assert await line.receive_nothing(0.2)
    await line.disconnect()


async def test_ready_tells_the_last_entry(tenant: Any, owner: Any) -> None:
    await in_thread(make_entries, tenant, 3)
    line = _line(owner)
    await line.connect(timeout=PATIENCE)
    assert await line.receive_json_from(PATIENCE) == {"type": "ready", "seq": 3}
    await line.disconnect()


async def test_card_whose_poke_was_lost_is_told_by_the_sweep_once(
    tenant: Any, owner: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = await _ready(owner)
    with monkeypatch.context() as redis_is_away:
        redis_is_away.setattr(live, "_quiet_until", float("inf"))
        await in_thread(make_card, tenant)
    assert await line.receive_nothing(0.2)
    await consumers.sweep()
    assert await line.receive_json_from(PATIENCE) == {"type": "changed", "what": "everything"}
    await consumers.sweep()
    assert await line.receive_nothing(0.2)
    await line.disconnect()


async def test_sweep_tells_nothing_of_another_tenant(tenant: Any, other_tenant: Any, owner: Any) -> None:
    line = await _ready(owner)
    await in_thread(make_card, other_tenant)
    await consumers.sweep()
    assert await line.receive_nothing(0.2)
    await line.disconnect()


async def test_socket_that_ended_is_neither_counted_nor_swept(owner: Any) -> None:
    before = open_presences()
    line = await _ready(owner)
    await line.disconnect()
    assert open_presences() == before
    assert consumers._open == set()


async def test_lost_line_leaves_no_task_behind(owner: Any) -> None:
    before = len(asyncio.all_tasks())
    line = await _ready(owner)
    await line.disconnect()
    assert len(asyncio.all_tasks()) <= before + 1


async def _looking(user: Any, card_id: Any) -> WebsocketCommunicator:
    line = await _ready(user)
    await line.send_json_to({"type": "look", "card": card_id and str(card_id)})
    return line


async def test_look_at_a_card_is_told_to_the_tenant(tenant: Any, owner: Any, approver: Any) -> None:
    card = await in_thread(make_card, tenant)
    other = await _ready(approver)
    line = await _looking(owner, card.pk)
    assert await other.receive_json_from(PATIENCE) == {"type": "changed", "what": f"card:{card.pk}"}
    assert await in_thread(viewers.viewers_of, tenant.pk, card.pk, [owner, approver]) == [owner]
    await line.disconnect()
    await other.disconnect()


async def test_looker_whose_line_ends_is_gone(tenant: Any, owner: Any, approver: Any) -> None:
    card = await in_thread(make_card, tenant)
    other = await _ready(approver)
    line = await _looking(owner, card.pk)
    await other.receive_json_from(PATIENCE)
    await line.disconnect()
    assert await other.receive_json_from(PATIENCE) == {"type": "changed", "what": f"card:{card.pk}"}
    assert await in_thread(viewers.viewers_of, tenant.pk, card.pk, [owner]) == []
    await other.disconnect()


async def test_looker_is_not_told_of_themselves(tenant: Any, owner: Any) -> None:
    line = await _looking(owner, (await in_thread(make_card, tenant)).pk)
    assert await line.receive_nothing(0.3)
    await line.disconnect()


async def test_look_said_again_is_not_told_again(tenant: Any, owner: Any, approver: Any) -> None:
    card = await in_thread(make_card, tenant)
    other = await _ready(approver)
    line = await _looking(owner, card.pk)
    await other.receive_json_from(PATIENCE)
    await line.send_json_to({"type": "look", "card": str(card.pk)})
    assert await other.receive_nothing(0.3)
    await line.disconnect()
    await other.disconnect()


async def test_look_in_another_tenant_is_not_told_here(tenant: Any, other_tenant: Any, owner: Any) -> None:
    card = await in_thread(make_card, tenant)
    line = await _ready(owner)
    foreign = await _looking(await in_thread(make_member, other_tenant, "owner"), card.pk)
    assert await line.receive_nothing(0.3)
    assert await in_thread(viewers.viewers_of, tenant.pk, card.pk, [owner, foreign.scope["user"]]) == []
    await line.disconnect()
    await foreign.disconnect()


async def test_flood_of_looks_is_told_a_few_times_only(tenant: Any, owner: Any, approver: Any) -> None:
    cards = [await in_thread(make_card, tenant) for _ in range(2)]
    other, line = await _ready(approver), await _ready(owner)
    for place in range(60):
        await line.send_json_to({"type": "look", "card": str(cards[place % 2].pk)})
    heard = 0
    while not await other.receive_nothing(0.5):
        await other.receive_json_from(PATIENCE)
        heard += 1
    assert 0 < heard < 60
    await line.disconnect()
    await other.disconnect()


@pytest.mark.parametrize("card", ["nonsense", 5, [], {}, "x" * 5000])
async def test_look_at_nonsense_is_dropped(owner: Any, card: Any) -> None:
    line = await _ready(owner)
    await line.send_json_to({"type": "look", "card": card})
    assert await line.receive_nothing(0.2)
    await line.disconnect()


@pytest.mark.parametrize("junk", ["{", "[1]", '{"type": "x"}', ""])
async def test_line_that_goes_on_with_junk_is_closed(owner: Any, junk: str) -> None:
    line = await _ready(owner)
    for _ in range(consumers.BAD_FRAMES + 1):
        await (line.send_to(text_data=junk) if junk else line.send_to(bytes_data=b"x"))
    assert await line.receive_output(PATIENCE) == {"type": "websocket.close", "code": 4008}


async def test_look_at_a_conversation_is_told_to_the_tenant_and_ends_with_the_line(
    deployment: Any, owner: Any, approver: Any
) -> None:
    session = await in_thread(make_session, deployment)
    other, line = await _ready(approver), await _ready(owner)
    told = {"type": "changed", "what": f"company:{session.pk}"}
    await line.send_json_to({"type": "look", "session": str(session.pk)})
    came = await other.receive_json_from(PATIENCE)
    here = await in_thread(viewers.viewers_of, session.tenant_id, session.pk, [owner, approver])
    await line.disconnect()
    assert came == told
    assert here == [owner]
    assert await other.receive_json_from(PATIENCE) == told
    assert await in_thread(viewers.viewers_of, session.tenant_id, session.pk, [owner, approver]) == []
    await other.disconnect()


async def test_look_from_another_tenant_is_seen_by_nobody(deployment: Any, owner: Any, other_tenant: Any) -> None:
    session = await in_thread(make_session, deployment)
    foreigner = await in_thread(make_member, other_tenant, "owner")
    here, line = await _ready(owner), await _ready(foreigner)
    await line.send_json_to({"type": "look", "session": str(session.pk)})
    assert await here.receive_nothing(0.3)
    assert await in_thread(viewers.viewers_of, session.tenant_id, session.pk, [owner, foreigner]) == []
    await line.disconnect()
    await here.disconnect()


async def test_look_at_something_that_is_no_id_is_ignored(owner: Any) -> None:
    line = await _ready(owner)
    await line.send_json_to({"type": "look", "session": "x"})
    assert await line.receive_nothing(0.2)
    await line.disconnect()


async def _seen_up_to(user: Any, session: Any, seq: object) -> None:
    line = await _ready(user)
    await line.send_json_to({"type": "look", "session": str(session.pk), "seq": seq})
    await line.send_json_to({"type": "look", "session": None})
    assert await line.receive_nothing(0.2)
    await line.disconnect()


def _unread(session: Any, user: Any) -> int:
    with tenant_scope(session.tenant_id):
        return queries.conversation(session.pk, user).unread


async def test_conversation_is_read_as_far_as_it_is_shown(deployment: Any, owner: Any) -> None:
    session = await in_thread(make_session, deployment)
    for text in ("Hello", "Hello again"):
        await in_thread(say, session, text)
    await in_thread(want_person, session)
    await _seen_up_to(owner, session, 1)
    assert await in_thread(_unread, session, owner) == 1
    await _seen_up_to(owner, session, 2)
    assert await in_thread(_unread, session, owner) == 0


@pytest.mark.parametrize("seq", [True, -1, 0, 2**63, "2", None, 1.5])
async def test_number_that_is_none_marks_nothing(deployment: Any, owner: Any, seq: object) -> None:
    session = await in_thread(make_session, deployment)
    await in_thread(say, session, "Hello")
    await in_thread(want_person, session)
    await _seen_up_to(owner, session, seq)
    assert await in_thread(_unread, session, owner) == 1


async def test_conversation_of_another_tenant_is_not_marked_by_a_look(
    deployment: Any, owner: Any, other_tenant: Any
) -> None:
    session = await in_thread(make_session, deployment)
    await in_thread(say, session, "Hello")
    await in_thread(want_person, session)
    await _seen_up_to(await in_thread(make_member, other_tenant, "owner"), session, 1)
    assert await in_thread(_unread, session, owner) == 1


async def _looks_at(user: Any, session: ChatSession, **scope: Any) -> WebsocketCommunicator:
    line = await _ready(user, **scope)
    await line.send_json_to({"type": "look", "session": str(session.pk)})
    assert await line.receive_nothing(0.2)
    return line


async def _typing_in(line: WebsocketCommunicator) -> list[dict[str, Any]]:
    """What this console is told of typing, among other things, until nothing more comes."""
    told = []
    while not await line.receive_nothing(0.3):
        told.append(await line.receive_json_from(PATIENCE))
    return [frame for frame in told if frame["type"] == "typing"]


async def _hear_visitor(session: ChatSession) -> list[dict[str, Any]]:
    """What the sockets of the conversation's visitor are told of typing."""
    told: list[dict[str, Any]] = []

    async def hear(event: dict[str, Any]) -> None:
        told.extend([event] if event["type"] == "chat.typing" else [])

    await live.join(group_of(session.pk), await get_channel_layer().new_channel(), hear)
    return told


async def test_visitor_typing_is_told_to_those_who_have_the_conversation_open(
    deployment: Any, owner: Any, agent: Any, other_tenant: Any
) -> None:
    session, other = await in_thread(make_session, deployment), await in_thread(make_session, deployment)
    stranger = await in_thread(make_member, other_tenant, "owner")
    line, elsewhere, foreign = (
        await _looks_at(owner, session),
        await _looks_at(agent, other),
        await _looks_at(stranger, session),
    )
    event = {"type": "console.typing", "session": str(session.pk), "sender": "visitor"}
    await live.send(watchers_of(session.tenant_id, session.pk), event)
    told = {"type": "typing", "session": str(session.pk), "sender": "visitor"}
    assert await _typing_in(line) == [told]
    assert await _typing_in(elsewhere) == []
    assert await _typing_in(foreign) == []
    for each in (line, elsewhere, foreign):
        await each.disconnect()


async def test_reply_being_written_is_told_to_the_visitor_and_to_colleagues(
    deployment: Any, owner: Any, agent: Any
) -> None:
    session = await in_thread(make_session, deployment)
    await in_scope(deployment.tenant_id, handoff.take_over, session.pk, agent)
    writer, colleague = await _looks_at(agent, session), await _looks_at(owner, session)
    told = await _hear_visitor(session)
    await writer.send_json_to({"type": "typing", "session": str(session.pk), "sheet": "reply"})
    heard = {"type": "typing", "session": str(session.pk), "sender": "human", "name": agent.display_name}
    assert await _typing_in(colleague) == [heard]
    assert [event["sender"] for event in told] == ["human"]
    assert await _typing_in(writer) == []
    for each in (writer, colleague):
        await each.disconnect()


@pytest.mark.parametrize("sheet", ["note", None, ["reply"]])
async def test_note_being_written_is_not_told_to_the_visitor(deployment: Any, agent: Any, sheet: Any) -> None:
    session = await in_thread(make_session, deployment)
    await in_scope(deployment.tenant_id, handoff.take_over, session.pk, agent)
    writer, told = await _looks_at(agent, session), await _hear_visitor(session)
    await writer.send_json_to({"type": "typing", "session": str(session.pk), "sheet": sheet})
    assert await writer.receive_nothing(0.3)
    assert told == []
    await writer.disconnect()


async def test_typing_of_others_reaches_no_visitor(deployment: Any, agent: Any, tenant: Any, other_tenant: Any) -> None:
    """A colleague who does not answer, a viewer, and somebody of another company."""
    session = await in_thread(make_session, deployment)
    await in_scope(deployment.tenant_id, handoff.take_over, session.pk, agent)
    told = await _hear_visitor(session)
    for company, role in ((tenant, "approver"), (tenant, "viewer"), (other_tenant, "owner")):
        line = await _looks_at(await in_thread(make_member, company, role), session)
        await line.send_json_to({"type": "typing", "session": str(session.pk), "sheet": "reply"})
        assert await line.receive_nothing(0.2)
        await line.disconnect()
    assert told == []


async def test_signs_of_typing_are_few(deployment: Any, agent: Any) -> None:
    session = await in_thread(make_session, deployment)
    await in_scope(deployment.tenant_id, handoff.take_over, session.pk, agent)
    writer, told = await _looks_at(agent, session), await _hear_visitor(session)
    for _ in range(10):
        await writer.send_json_to({"type": "typing", "session": str(session.pk), "sheet": "reply"})
    assert await writer.receive_nothing(0.3)
    assert consumers.TYPING_BURST <= len(told) <= consumers.TYPING_BURST + 1
    await writer.disconnect()


async def test_conversation_that_its_visitor_has_read_is_refreshed(deployment: Any, agent: Any) -> None:
    session = await in_thread(make_session, deployment)
    line = await _looks_at(agent, session)
    event = {"type": "console.changed", "what": f"session:{session.pk}"}
    await live.send(watchers_of(session.tenant_id, session.pk), event)
    assert await line.receive_json_from(PATIENCE) == {"type": "changed", "what": f"session:{session.pk}"}
    await line.disconnect()
