"""Does the socket keep to its protocol when the other side does not? A real communicator, the real rows."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from channels.routing import URLRouter
from channels.testing import WebsocketCommunicator
from django.core.signing import TimestampSigner

from apps.access import tokens
from apps.inbox import handoff, reading
from apps.sessions import catch_up, consumers
from apps.sessions.models import ChatSession
from apps.sessions.routing import websocket_urlpatterns
from apps.sessions.schemas import MAX_FRAME_BYTES
from apps.tenants.enums import Closed
from apps.tenants.models import Tenant
from apps.visitors.prompt_forms import FormWanted
from apps.visitors.prompts import Question, ask_visitor, fill
from kernel import live
from kernel.presence import open_presences
from kernel.tenancy import in_scope, in_thread, scope
from tests.factories.sessions import make_session, say, visitor_of
from tests.factories.tenants import make_deployment, make_member
from tests.factories.visitors import offer

APP = URLRouter(websocket_urlpatterns)


class Socket(WebsocketCommunicator):
    async def send_frame(self, **frame: Any) -> None:
        await self.send_to(text_data=json.dumps(frame))

    async def frame(self) -> dict[str, Any]:
        return dict(json.loads(await self.receive_from(timeout=60)))

    async def frames_until(self, kind: str) -> list[dict[str, Any]]:
        seen = [await self.frame()]
        while seen[-1]["type"] != kind:
            seen.append(await self.frame())
        return seen

    async def close_code(self) -> int:
        message = await self.receive_output(timeout=60)
        assert message["type"] == "websocket.close"
        return int(message["code"])


async def _open(deployment: Any, *, headers: list[tuple[bytes, bytes]] | None = None, **kwargs: Any) -> Socket:
    headers = headers or [(b"host", b"testserver"), (b"origin", b"http://testserver")]
    socket = Socket(APP, f"/ws/widget/{deployment.public_key}/", headers=headers, **kwargs)
    await socket.connect(timeout=60)
    return socket


async def _present(deployment: Any, session: ChatSession, *, after_seq: int = 0) -> Socket:
    socket = await _open(deployment)
    token = tokens.mint(visitor_of(deployment, session.pk))
    await socket.send_frame(type="auth", token=token, after_seq=after_seq)
    return socket


@pytest.fixture
def session(deployment: Any) -> ChatSession:
    return make_session(deployment)


async def test_auth_answers_ready_with_the_deployment(deployment: Any, session: ChatSession) -> None:
    socket = await _present(deployment, session)
    ready = await socket.frame()
    assert ready["type"] == "ready"
    assert ready["session_id"] == str(session.pk)
    assert ready["deployment"]["title"] == "Desk"
    assert ready["team"] == {"open": True, "opens_at": None}


async def test_auth_by_subprotocol_answers_ready(deployment: Any, session: ChatSession) -> None:
    token = tokens.mint(visitor_of(deployment, session.pk))
    socket = await _open(deployment, subprotocols=[f"bearer.{token}"])
    assert (await socket.frame())["type"] == "ready"


async def test_no_first_frame_closes_4001(deployment: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumers, "AUTH_SECONDS", 0.05)
    socket = await _open(deployment)
    assert await socket.close_code() == 4001


@pytest.mark.parametrize(
    "first", [{"type": "message", "text": "hi"}, {"type": "auth", "token": "forged"}, {"type": "auth"}, {"type": "x"}]
)
async def test_wrong_first_frame_closes_4001(deployment: Any, first: dict[str, str]) -> None:
    socket = await _open(deployment)
    await socket.send_frame(**first)
    assert await socket.close_code() == 4001


async def test_stale_token_closes_4001(deployment: Any, session: ChatSession, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as long_ago:
        long_ago.setattr(TimestampSigner, "timestamp", lambda self: "1AAAAA")
        token = tokens.mint(visitor_of(deployment, session.pk))
    socket = await _open(deployment)
    await socket.send_frame(type="auth", token=token)
    assert await socket.close_code() == 4001


async def test_token_of_another_deployment_closes_4001(deployment: Any, session: ChatSession, tenant: Any) -> None:
    other = await in_thread(make_deployment, tenant)
    socket = await _open(other)
    await socket.send_frame(type="auth", token=tokens.mint(visitor_of(deployment, session.pk)))
    assert await socket.close_code() == 4001


async def test_unknown_deployment_closes_4003(database: None) -> None:
    socket = Socket(APP, "/ws/widget/nobody/", headers=[(b"host", b"testserver")])
    await socket.connect()
    assert await socket.close_code() == 4003


@pytest.mark.parametrize("key", ["%00", "a" * 300, "%F0%9F%92%A5"])
async def test_key_that_cannot_be_one_closes_4003(database: None, key: str) -> None:
    socket = Socket(APP, f"/ws/widget/{key}/", headers=[(b"host", b"testserver")])
    await socket.connect()
    assert await socket.close_code() == 4003


async def test_disabled_deployment_closes_4003(tenant: Any) -> None:
    socket = await _open(await in_thread(make_deployment, tenant, enabled=False))
    assert await socket.close_code() == 4003


async def test_closed_company_closes_1013_so_that_the_widget_tries_again(
    deployment: Any, session: ChatSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    await in_thread(Tenant.objects.filter(pk=deployment.tenant_id).update, closed=Closed.MOVED)
    monkeypatch.setattr(scope, "_refuses_closed", True)
    socket = await _open(deployment, subprotocols=[f"bearer.{tokens.mint(visitor_of(deployment, session.pk))}"])
    assert await socket.close_code() == 1013


@pytest.mark.parametrize("origin", [b"http://evil.test", b"null", b"http://[", b"http://site.test"])
async def test_foreign_origin_closes_4003(deployment: Any, origin: bytes) -> None:
    socket = await _open(deployment, headers=[(b"host", b"testserver"), (b"origin", origin)])
    assert await socket.close_code() == 4003


async def test_frame_over_16_kib_closes_1009(deployment: Any, session: ChatSession) -> None:
    socket = await _present(deployment, session)
    await socket.frame()
    await socket.send_frame(type="message", text="x" * MAX_FRAME_BYTES)
    assert await socket.close_code() == 1009


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("{", "not_json"),
        ("[1]", "unknown_type"),
        ('{"type": "shutdown"}', "unknown_type"),
        ('{"type": "message"}', "invalid_frame"),
        ('{"type": "message", "text": "  "}', "invalid_frame"),
        ('{"type": "message", "text": 5}', "invalid_frame"),
        ('{"type": "message", "text": "hi", "client_id": "<script>"}', "invalid_frame"),
        ('{"type": "message", "text": "a\\u0000b"}', "invalid_frame"),
        ('{"type": "message", "text": "a\\ud800b"}', "invalid_frame"),
        ('{"type": "read", "seq": 1e400}', "invalid_frame"),
        ('{"type": []}', "unknown_type"),
        ('{"type": {"a": 1}}', "unknown_type"),
        ("[" * 16_000, "not_json"),
        ('{"type": "read", "seq": ' + "9" * 5000 + "}", "not_json"),
    ],
)
async def test_bad_frame_is_answered_and_the_socket_stays(
    deployment: Any, session: ChatSession, text: str, code: str
) -> None:
    socket = await _present(deployment, session)
    await socket.frame()
    await socket.send_to(text_data=text)
    error = await socket.frame()
    await socket.send_frame(type="message", text="hello", client_id="a")
    assert error["type"] == "error"
    assert error["code"] == code
    assert (await socket.frames_until("ack"))[-1]["seq"] == 1


@pytest.mark.parametrize("text", ["{", '{"type": "x"}', '{"type": "message"}', ""])
async def test_socket_that_goes_on_with_bad_frames_is_closed_and_its_conversation_waits(
    deployment: Any, session: ChatSession, text: str
) -> None:
    socket = await _present(deployment, session)
    await socket.frame()
    for _ in range(consumers.BAD_FRAMES + 1):
        await (socket.send_to(text_data=text) if text else socket.send_to(bytes_data=b"bytes"))
    for _ in range(consumers.BAD_FRAMES):
        assert (await socket.frame())["type"] == "error"
    assert await socket.close_code() == 4008
    await socket.send_frame(type="message", text="hello", client_id="a")
    assert await socket.receive_nothing()
    again = await _present(deployment, session)
    assert await again.close_code() == 1013


async def test_bad_frame_before_authentication_closes_without_an_answer(deployment: Any) -> None:
    socket = await _open(deployment)
    await socket.send_to(text_data="{")
    assert await socket.close_code() == 4001


async def test_refused_message_is_named_by_its_client_id(deployment: Any, session: ChatSession) -> None:
    socket = await _present(deployment, session)
    await socket.frame()
    await socket.send_frame(type="message", text="", client_id="a")
    assert (await socket.frame())["client_id"] == "a"


async def test_message_frame_reaches_another_presence(deployment: Any, session: ChatSession) -> None:
    first, second = await _present(deployment, session), await _present(deployment, session)
    for socket in (first, second):
        await socket.frame()
    await first.send_frame(type="message", text="hello", client_id="a")
    assert (await second.frame())["text"] == "hello"


async def test_message_frame_never_reaches_another_visitor(deployment: Any, session: ChatSession) -> None:
    stranger = await in_thread(make_session, deployment)
    mine, theirs = await _present(deployment, session), await _present(deployment, stranger)
    for socket in (mine, theirs):
        await socket.frame()
    await mine.send_frame(type="message", text="secret", client_id="a")
    await mine.frames_until("ack")
    assert await theirs.receive_nothing(timeout=0.3)


async def test_reconnect_replays_what_was_missed_in_order_once(deployment: Any, session: ChatSession) -> None:
    first = await _present(deployment, session)
    await first.frame()
    for number in range(3):
        await first.send_frame(type="message", text=f"m{number}", client_id=f"c{number}")
        await first.frames_until("ack")
    await first.disconnect()
    second = await _present(deployment, session, after_seq=1)
    assert (await second.frame())["type"] == "ready"
    assert [(await second.frame())["seq"] for _ in range(2)] == [2, 3]


async def test_delta_of_an_older_epoch_is_not_shown(deployment: Any, session: ChatSession, agent: Any) -> None:
    socket = await _present(deployment, session)
    await socket.frame()
    await in_scope(session.tenant_id, handoff.take_over, session.pk, agent)
    assert (await socket.frame())["type"] == "owner"
    from channels.layers import get_channel_layer

    from apps.sessions.rules import group_of

    stale = {"type": "chat.delta", "turn": 1, "epoch": 0, "text": "late"}
    await get_channel_layer().group_send(group_of(session.pk), stale)
    assert await socket.receive_nothing(timeout=0.3)


async def test_frames_whose_pokes_were_lost_are_sent_by_the_sweep_in_order_once(
    deployment: Any, session: ChatSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    socket = await _present(deployment, session)
    await socket.frame()
    with monkeypatch.context() as redis_is_away:
        redis_is_away.setattr(live, "_quiet_until", float("inf"))
        redis_is_away.setattr(live, "_listeners", {})
        for text in ("one", "two"):
            await in_thread(say, session, text)
        assert await socket.receive_nothing(timeout=0.2)
    await asyncio.gather(catch_up.sweep(), catch_up.sweep())
    assert [(await socket.frame())["seq"] for _ in range(2)] == [1, 2]
    assert await socket.receive_nothing(timeout=0.2)


async def test_presence_that_left_is_not_swept(deployment: Any, session: ChatSession) -> None:
    socket = await _present(deployment, session)
    await socket.frame()
    await socket.disconnect()
    assert not catch_up._present


async def test_socket_that_ended_by_a_fault_of_ours_is_not_counted(deployment: Any, session: ChatSession) -> None:
    before = open_presences()
    socket = await _present(deployment, session)
    await socket.frame()
    await socket.send_input({"type": "websocket.unheard-of"})
    await asyncio.wait([socket.future])
    with pytest.raises(ValueError, match="handler"):
        await socket.receive_output(timeout=60)
    assert open_presences() == before
    assert len(catch_up._present) == 0


async def test_twenty_sockets_count_in_health(deployment: Any) -> None:
    before = open_presences()
    sockets = await asyncio.gather(*[_open(deployment) for _ in range(20)])
    assert open_presences() - before == 20
    for socket in sockets:
        await socket.disconnect()
    assert open_presences() == before


async def test_decision_over_the_socket_comes_back_recorded(deployment: Any) -> None:
    session = await in_thread(make_session, deployment)
    asked = Question.model_validate({"question": "Go on?", "options": [{"value": "go", "label": "Go on"}]})
    card = await in_scope(session.tenant_id, ask_visitor, session.pk, asked, actor="api_key:test")
    socket = await _present(deployment, session)
    await socket.frames_until("decision")
    await socket.send_frame(type="decision_response", request_id=str(card.pk), selected_value="go")
    frame = (await socket.frames_until("decision"))[-1]
    await socket.disconnect()
    assert frame["sender"] == "visitor"
    assert frame["selected_value"] == "go"


async def test_form_that_came_over_http_is_answered_where_its_visitor_is_present(deployment: Any) -> None:
    session = await in_thread(make_session, deployment)
    asked = FormWanted.model_validate({"question": "Your order?", "fields": [{"name": "order", "label": "Order"}]})
    card = await in_scope(session.tenant_id, ask_visitor, session.pk, asked, actor="api_key:test")
    socket = await _present(deployment, session)
    await socket.frames_until("decision")
    await in_scope(session.tenant_id, fill, visitor_of(deployment, session.pk), card.pk, {"order": "1234"})
    said = (await socket.frames_until("message"))[-1]
    await socket.disconnect()
    assert said["sender"] == "bot"


async def test_decision_over_the_socket_about_another_visitors_card_is_refused_by_its_name(deployment: Any) -> None:
    theirs, mine = await in_thread(make_session, deployment), await in_thread(make_session, deployment)
    asked = Question.model_validate({"question": "Go on?", "options": [{"value": "go", "label": "Go on"}]})
    card = await in_scope(theirs.tenant_id, ask_visitor, theirs.pk, asked, actor="api_key:test")
    socket = await _present(deployment, mine)
    await socket.frames_until("ready")
    await socket.send_frame(type="decision_response", request_id=str(card.pk), selected_value="go")
    frame = await socket.frame()
    await socket.disconnect()
    assert frame["type"] == "error"
    assert frame["code"] == "not_found"
    assert frame["request_id"] == str(card.pk)


async def test_read_is_recorded_and_never_beyond_what_was_sent(deployment: Any, session: ChatSession) -> None:
    await in_thread(say, session, "hello")
    socket = await _present(deployment, session)
    await socket.frames_until("message")
    await socket.send_frame(type="read", seq=2**40)
    await socket.send_frame(type="read", seq=1)
    await socket.send_frame(type="message", text="hi", client_id="a")
    await socket.frames_until("ack")
    await in_scope(deployment.tenant_id, session.refresh_from_db)
    assert session.visitor_read_seq == 1


async def test_visitor_is_told_what_the_answering_member_has_read(
    tenant: Any, deployment: Any, session: ChatSession
) -> None:
    agent = await in_thread(make_member, tenant, "agent")
    await in_thread(offer, deployment, read_receipts=True)
    await in_thread(say, session, "hello")
    await in_scope(deployment.tenant_id, handoff.take_over, session.pk, agent)
    socket = await _present(deployment, session)
    assert (await socket.frame())["read"] == 0
    await socket.frames_until("owner")
    await in_scope(deployment.tenant_id, reading.mark_read, session.pk, agent)
    assert await socket.frame() == {"type": "read", "up_to": 2}
    again = await _present(deployment, session)
    assert (await again.frame())["read"] == 2
