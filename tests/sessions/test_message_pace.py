"""How fast may one presence speak, and how many sockets may a conversation have?"""

from __future__ import annotations

from typing import Any

import pytest
from channels.layers import get_channel_layer
from django.conf import LazySettings
from hypothesis import given
from hypothesis import strategies as st

from apps.inbox import handoff
from apps.sessions.models import ChatSession, ChronicleEntry
from apps.sessions.ratelimit import limits
from apps.sessions.rules import watchers_of
from kernel import live
from kernel.ratelimit.token_buckets import TokenBucket
from kernel.tenancy import in_scope, in_thread, tenant_scope
from tests.factories.sessions import make_session
from tests.sessions.test_socket import _present


@pytest.fixture
def session(deployment: Any) -> ChatSession:
    return make_session(deployment)


@given(st.lists(st.floats(min_value=0, max_value=30), max_size=60))
def test_pace_never_lets_more_through_than_its_burst_and_its_trickle(pauses: list[float]) -> None:
    now = [0.0]
    limit = TokenBucket(5, 0.5, clock=lambda: now[0])
    passed = 0
    for pause in pauses:
        now[0] += pause
        passed += limit.wait() == 0
    assert passed <= 5 + now[0] * 0.5 + 1e-6


@given(st.integers(1, 20))
def test_pace_tells_how_long_to_wait(words: int) -> None:
    now = [0.0]
    limit = TokenBucket(1, 0.5, clock=lambda: now[0])
    for _ in range(words):
        limit.wait()
    now[0] += limit.wait() + 1e-9
    assert limit.wait() == 0


async def test_flood_to_a_person_is_stopped_and_stores_nothing(
    deployment: Any, session: ChatSession, agent: Any, settings: LazySettings
) -> None:
    settings.VISITOR_BURST = 3
    await in_scope(session.tenant_id, handoff.take_over, session.pk, agent)
    socket = await _present(deployment, session)
    for number in range(4):
        await socket.send_frame(type="message", text="hello", client_id=f"c{number}")
    error = (await socket.frames_until("error"))[-1]
    assert error["code"] == "rate_limited"
    assert error["client_id"] == "c3"
    assert error["retry_after"] == 1
    assert await in_thread(_said, session) == 3


def _said(session: ChatSession) -> int:
    with tenant_scope(session.tenant_id):
        return ChronicleEntry.objects.filter(session=session, kind="message").count()


async def test_typing_faster_than_people_type_is_not_passed_on(deployment: Any, session: ChatSession) -> None:
    typed: list[dict[str, Any]] = []

    async def hear(event: dict[str, Any]) -> None:
        typed.extend([event] if event["type"] == "console.typing" else [])

    watchers = watchers_of(deployment.tenant_id, session.pk)
    await live.join(watchers, await get_channel_layer().new_channel(), hear)
    socket = await _present(deployment, session)
    for _ in range(limits.TYPING_BURST * 4):
        await socket.send_frame(type="typing")
    await socket.send_frame(type="message", text="hello", client_id="a")
    await socket.frames_until("ack")
    assert limits.TYPING_BURST <= len(typed) <= limits.TYPING_BURST + 2


async def test_one_socket_too_many_of_a_conversation_closes_1013(
    deployment: Any, session: ChatSession, settings: LazySettings
) -> None:
    held = [await _present(deployment, session) for _ in range(settings.VISITOR_LIMITS["sockets"])]
    for socket in held:
        await socket.frame()
    late = await _present(deployment, session)
    assert (await late.frame())["code"] == "too_many_windows"
    assert await late.close_code() == 1013
