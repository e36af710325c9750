"""How much may visitors send, over all sockets and processes? Nothing that is refused is stored, and all of it may come
again; and what does a message that is no plain text do?"""

from __future__ import annotations

import asyncio
import json
from functools import partial
from typing import Any

import pytest
from django.conf import LazySettings
from django.test import Client

from apps.access.tokens import Visitor
from apps.inbox import handoff
from apps.sessions.models import ChatSession, ChronicleEntry
from apps.sessions.ratelimit import limits, open_sockets
from apps.sessions.schemas import MAX_FRAME_BYTES, MAX_TEXT, Accepted, Busy
from apps.tenants.models import VisitorLimits
from kernel import live
from kernel.ratelimit import concurrency
from kernel.tenancy import in_scope, in_thread, tenant_scope
from tests.factories.sessions import make_session, say, visitor_of
from tests.factories.tenants import make_deployment, make_member
from tests.platform.administration import browser_of, page_of
from tests.sessions.test_socket import Socket, _present

NOWHERE = "unix:///nowhere.sock"


@pytest.fixture
def session(deployment: Any) -> ChatSession:
    return make_session(deployment)


def bounded(settings: LazySettings, **changes: int) -> None:
    settings.VISITOR_LIMITS = {**settings.VISITOR_LIMITS, **changes}


async def sent(socket: Socket, count: int, *, start: int = 0) -> list[dict[str, Any]]:
    """Send so many messages at once; their acks and errors, in order."""
    for number in range(start, start + count):
        await socket.send_frame(type="message", text=f"hello {number}", client_id=f"c{number}")
    answers: list[dict[str, Any]] = []
    while len(answers) < count:
        frame = await socket.frame()
        answers += [frame] if frame["type"] in ("ack", "error") else []
    return answers


async def said(session: ChatSession) -> int:
    return await in_thread(_said, session)


def _said(session: ChatSession) -> int:
    with tenant_scope(session.tenant_id):
        return ChronicleEntry.objects.filter(session=session, kind="message", sender="visitor").count()


def codes(answers: list[dict[str, Any]]) -> list[str]:
    return [answer.get("code", "ack") for answer in answers]


# -- how many ----------------------------------------------------------------------------------------------------------


async def test_sixty_messages_in_a_second_are_stored_or_refused_and_none_is_lost(
    deployment: Any, session: ChatSession, agent: Any
) -> None:
    await in_scope(session.tenant_id, handoff.take_over, session.pk, agent)
    answers = await sent(await _present(deployment, session), 60)
    stored, refused = codes(answers).count("ack"), codes(answers).count("rate_limited")
    assert stored + refused == 60 and refused > 0 and await said(session) == stored


async def test_refused_message_is_taken_when_it_comes_again(
    deployment: Any, session: ChatSession, settings: LazySettings
) -> None:
    bounded(settings, messages_a_minute=1)
    answers = await sent(await _present(deployment, session), 2)
    assert codes(answers) == ["ack", "rate_limited"]
    bounded(settings, messages_a_minute=2)
    again = await sent(await _present(deployment, session), 1, start=1)
    assert codes(again) == ["ack"] and await said(session) == 2


async def test_limit_of_a_conversation_holds_over_its_sockets(
    deployment: Any, session: ChatSession, settings: LazySettings
) -> None:
    bounded(settings, messages_a_minute=3)
    first, second = [await _present(deployment, session) for _ in range(2)]
    assert codes(await sent(first, 2)) + codes(await sent(second, 2, start=2)) == ["ack"] * 3 + ["rate_limited"]


async def test_limit_holds_where_a_person_answers(
    deployment: Any, session: ChatSession, agent: Any, settings: LazySettings
) -> None:
    bounded(settings, messages_a_minute=2)
    await in_scope(session.tenant_id, handoff.take_over, session.pk, agent)
    assert codes(await sent(await _present(deployment, session), 3)) == ["ack", "ack", "rate_limited"]


async def test_refusal_says_whose_limit_it_was_and_how_long_to_wait(
    deployment: Any, session: ChatSession, settings: LazySettings
) -> None:
    bounded(settings, messages_a_minute=1)
    refusal = (await sent(await _present(deployment, session), 2))[-1]
    assert refusal["limit"] == "conversation"
    assert refusal["message"] == limits.TOO_FAST
    assert refusal["client_id"] == "c1"
    assert 1 <= refusal["retry_after"] <= limits.MINUTE


async def test_limit_of_a_tenant_holds_over_its_conversations(
    deployment: Any, session: ChatSession, settings: LazySettings
) -> None:
    bounded(settings, tenant_messages_a_minute=2)
    other = await in_thread(make_session, deployment)
    await sent(await _present(deployment, session), 2)
    refusal = (await sent(await _present(deployment, other), 1))[0]
    assert refusal["code"] == "rate_limited"
    assert refusal["limit"] == "tenant"


async def test_flood_at_one_tenant_leaves_another_alone(
    deployment: Any, session: ChatSession, other_tenant: Any, settings: LazySettings
) -> None:
    bounded(settings, tenant_messages_a_minute=1)
    await sent(await _present(deployment, session), 3)
    elsewhere = await in_thread(make_deployment, other_tenant)
    calm = await in_thread(make_session, elsewhere)
    assert codes(await sent(await _present(elsewhere, calm), 1)) == ["ack"]


async def test_limit_of_an_address_holds_over_conversations(
    deployment: Any, session: ChatSession, settings: LazySettings
) -> None:
    bounded(settings, address_messages_a_minute=1)
    visitor, bounds = await _visitor(deployment, session)
    await limits.count_message(visitor, bounds, address="203.0.113.9")
    with pytest.raises(Exception, match="from your network"):
        await limits.count_message(visitor, bounds, address="203.0.113.9")


async def test_addresses_of_one_ipv6_network_are_one(
    deployment: Any, session: ChatSession, settings: LazySettings
) -> None:
    bounded(settings, address_messages_a_minute=1)
    visitor, bounds = await _visitor(deployment, session)
    await limits.count_message(visitor, bounds, address="2001:db8:1:2::1")
    with pytest.raises(Exception, match="from your network"):
        await limits.count_message(visitor, bounds, address="2001:db8:1:2:ffff::7")


async def test_our_own_machine_is_not_counted_as_an_address(
    deployment: Any, session: ChatSession, settings: LazySettings
) -> None:
    bounded(settings, address_messages_a_minute=1)
    visitor, bounds = await _visitor(deployment, session)
    for _ in range(3):
        await limits.count_message(visitor, bounds, address="127.0.0.1")


async def _visitor(deployment: Any, session: ChatSession) -> Any:
    from tests.factories.sessions import visitor_of

    return visitor_of(deployment, session.pk), await in_scope(session.tenant_id, limits.bounds)


async def test_rivals_get_no_more_than_the_limit_together(
    deployment: Any, session: ChatSession, settings: LazySettings
) -> None:
    bounded(settings, messages_a_minute=5)
    visitor, bounds = await _visitor(deployment, session)
    tries = [limits.count_message(visitor, bounds, address="") for _ in range(24)]
    outcomes = await asyncio.gather(*tries, return_exceptions=True)
    assert outcomes.count(None) == 5


async def test_without_redis_messages_come_in(
    deployment: Any, session: ChatSession, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    bounded(settings, messages_a_minute=1)
    monkeypatch.setattr(limits, "_quiet_until", 0.0)
    socket = await _present(deployment, session)
    settings.REDIS_URL = NOWHERE
    assert codes(await sent(socket, 3)) == ["ack"] * 3 and await said(session) == 3


async def test_without_redis_the_pace_of_a_socket_holds(
    deployment: Any, session: ChatSession, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.VISITOR_BURST = 2
    monkeypatch.setattr(limits, "_quiet_until", 0.0)
    socket = await _present(deployment, session)
    settings.REDIS_URL = NOWHERE
    assert codes(await sent(socket, 3)) == ["ack", "ack", "rate_limited"]


def test_messages_of_all_conversations_that_wait_are_bounded(deployment: Any, settings: LazySettings) -> None:
    bounded(settings, tenant_pending_turns=2)
    outcomes = [say(make_session(deployment), "hello") for _ in range(3)]
    assert [type(outcome) for outcome in outcomes] == [Accepted, Accepted, Busy]


def test_bound_of_what_waits_stops_nobody_whom_a_person_answers(
    deployment: Any, session: ChatSession, agent: Any, settings: LazySettings
) -> None:
    bounded(settings, tenant_pending_turns=1)
    say(make_session(deployment), "hello")
    with tenant_scope(session.tenant_id):
        handoff.take_over(session.pk, agent)
    assert isinstance(say(session, "hello"), Accepted)


async def test_window_too_many_is_told_why_and_to_come_again(
    deployment: Any, session: ChatSession, settings: LazySettings
) -> None:
    bounded(settings, sockets=1)
    held = await _present(deployment, session)
    assert (await held.frame())["type"] == "ready"
    late = await _present(deployment, session)
    told = await late.frame()
    assert told["code"] == "too_many_windows"
    assert told["message"] == open_sockets.CROWDED
    assert await late.close_code() == 1013


async def test_windows_of_other_processes_count(deployment: Any, session: ChatSession, settings: LazySettings) -> None:
    bounded(settings, sockets=2)
    for number in range(2):
        await concurrency.acquire(f"windows:{session.tenant_id}:{session.pk}", f"elsewhere-{number}", maximum=2)
    late = await _present(deployment, session)
    assert (await late.frame())["code"] == "too_many_windows"


async def test_window_that_closed_leaves_its_place(
    deployment: Any, session: ChatSession, settings: LazySettings
) -> None:
    bounded(settings, sockets=1)
    first = await _present(deployment, session)
    await first.frame()
    await first.disconnect()
    assert (await (await _present(deployment, session)).frame())["type"] == "ready"


async def test_windows_of_this_process_are_counted_without_redis(
    visitor: Visitor, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.REDIS_URL = NOWHERE
    monkeypatch.setitem(live._listeners, "crowd", [_deaf] * 3)
    kept = [await open_sockets.sit_down(visitor, "one", group=group, most=2) for group in ("nobody", "crowd")]
    await open_sockets.stand_up("one")
    assert kept == [True, False]


async def _deaf(event: dict[str, Any]) -> None:
    """Hears nothing."""


@pytest.fixture
def visitor(deployment: Any, session: ChatSession) -> Visitor:
    return visitor_of(deployment, session.pk)


# -- a tenant's own row ------------------------------------------------------------------------------------------------


def test_tenant_without_a_row_has_what_the_installation_allows(tenant: Any, settings: LazySettings) -> None:
    with tenant_scope(tenant):
        assert limits.bounds() == limits.Bounds(**settings.VISITOR_LIMITS)


async def test_tenants_own_limit_holds(deployment: Any, session: ChatSession) -> None:
    await in_scope(session.tenant_id, partial(VisitorLimits.objects.create, messages_a_minute=1))
    assert codes(await sent(await _present(deployment, session), 2)) == ["ack", "rate_limited"]


def test_owner_sets_a_limit(tenant: Any, owner: Any) -> None:
    browser_of(owner).post(page_of(VisitorLimits, "add"), {"messages_a_minute": 7})
    with tenant_scope(tenant):
        assert limits.bounds().messages_a_minute == 7


@pytest.mark.parametrize("limit", ["0", "-1", "many", "1e9"])
def test_limit_that_would_silence_everybody_is_refused(tenant: Any, owner: Any, limit: str) -> None:
    page = browser_of(owner).post(page_of(VisitorLimits, "add"), {"messages_a_minute": limit})
    assert "errorlist" in page.content.decode()


def test_tenant_has_one_row_of_limits(tenant: Any, owner: Any) -> None:
    client: Client = browser_of(owner)
    client.post(page_of(VisitorLimits, "add"), {"messages_a_minute": 7})
    page = client.post(page_of(VisitorLimits, "add"), {"messages_a_minute": 9})
    assert "errorlist" in page.content.decode()


def test_approver_sets_no_limit(tenant: Any) -> None:
    browser_of(make_member(tenant, "approver")).post(page_of(VisitorLimits, "add"), {"messages_a_minute": 7})
    with tenant_scope(tenant):
        assert limits.bounds().messages_a_minute != 7


# -- messages that are no plain text -----------------------------------------------------------------------------------


async def answered(deployment: Any, session: ChatSession, text: str) -> dict[str, Any]:
    frame = {"type": "message", "text": text, "client_id": "a"}
    return await _first(deployment, session, json.dumps(frame, ensure_ascii=False))


async def _first(deployment: Any, session: ChatSession, frame: str) -> dict[str, Any]:
    socket = await _present(deployment, session)
    await socket.send_to(text_data=frame)
    answer = await socket.frame()
    while answer["type"] not in ("ack", "error"):
        answer = await socket.frame()
    return answer


async def test_frame_above_16_kib_closes_1009(deployment: Any, session: ChatSession) -> None:
    socket = await _present(deployment, session)
    await socket.frame()
    await socket.send_frame(type="message", text="x" * MAX_FRAME_BYTES)
    assert await socket.close_code() == 1009 and await said(session) == 0


async def test_text_of_a_frame_of_16_kib_is_refused_with_its_field(deployment: Any, session: ChatSession) -> None:
    frame = json.dumps({"type": "message", "text": "", "client_id": "a"})
    answer = await answered(deployment, session, "x" * (MAX_FRAME_BYTES - len(frame)))
    assert answer["code"] == "invalid_frame"
    assert answer["field"] == "text"
    assert answer["client_id"] == "a"


async def test_longest_text_is_stored_whole(deployment: Any, session: ChatSession) -> None:
    assert (await answered(deployment, session, "\u00e9" * MAX_TEXT))["type"] == "ack"


@pytest.mark.parametrize("text", ["a\u0000b", "\u0000"])
async def test_text_that_no_row_can_hold_is_refused(deployment: Any, session: ChatSession, text: str) -> None:
    assert (await answered(deployment, session, text))["code"] == "invalid_frame"


@pytest.mark.parametrize("half", ["\\ud800", "\\udfff", "hello \\udc00 there", "\\udc00\\ud800"])
async def test_half_a_character_is_refused(deployment: Any, session: ChatSession, half: str) -> None:
    """Half of a pair is JSON, and no text."""
    answer = await _first(deployment, session, f'{{"type": "message", "text": "{half}", "client_id": "a"}}')
    assert answer["code"] == "invalid_frame" and await said(session) == 0


@pytest.mark.parametrize(
    "text",
    [
        "\u202ereversed\u202c",
        "zero\u200bwidth\u2060text",
        "bell\u0007 escape\u001b[31m",
        "line\u2028separator",
        "\ufffe\uffff",
        "a" + "\u0301" * 500,
        "\U0001f468\u200d\U0001f469\u200d\U0001f467",
        "\u2066isolate\u2069",
    ],
)
async def test_odd_text_is_kept_as_it_was_said(deployment: Any, session: ChatSession, text: str) -> None:
    """The record keeps what the visitor wrote; hidden characters are escaped on display (`kernel.unicode_safety`)."""
    assert (await answered(deployment, session, text))["type"] == "ack"
    assert await in_thread(_texts, session) == [text]


@pytest.mark.parametrize("text", ["", "   ", "\n\t\n", "\u2003"])
async def test_text_of_nothing_is_refused(deployment: Any, session: ChatSession, text: str) -> None:
    assert (await answered(deployment, session, text))["code"] == "invalid_frame"


def _texts(session: ChatSession) -> list[str]:
    with tenant_scope(session.tenant_id):
        return list(ChronicleEntry.objects.filter(session=session, kind="message").values_list("text", flat=True))
