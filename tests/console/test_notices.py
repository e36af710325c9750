"""Notices of an open console: whom each kind reaches, and what a member's choice and quiet hours hold back."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from channels.testing import WebsocketCommunicator
from django.urls import reverse

from apps.approvals.cards import alerts
from apps.approvals.cards.lifecycle import assign_card, unassign_card
from apps.approvals.cards.quiet_hours import QuietHours
from apps.approvals.enums import CardKind, Risk
from apps.inbox import handoff, services
from apps.inbox.card_questions import ask_customer
from apps.inbox.models import SlaClock
from apps.inbox.signals import sla_missed
from apps.sessions.locks import lock_session
from apps.sessions.models import ChatSession
from apps.sessions.person_wanted import want_person
from apps.tenants.models import User
from apps.tenants.services import change_tenant
from kernel.clock import now
from kernel.tenancy import in_thread, tenant_scope
from kernel.timezones import get_timezone
from tests.console.test_live import PATIENCE, _ready
from tests.factories.cards import make_kind
from tests.factories.console import browser, make_card
from tests.factories.sessions import make_session, say
from tests.factories.tenants import make_member


def choose(tenant: Any, user: Any, quiet_hours: QuietHours | None = None, **choice: bool) -> None:
    with tenant_scope(tenant):
        alerts.set_notice_choice(user, **{"sound": True, "desktop": True, **choice}, quiet_hours=quiet_hours)


@asynccontextmanager
async def console_of(user: Any) -> AsyncIterator[WebsocketCommunicator]:
    line = await _ready(user)
    yield line
    await line.disconnect()


async def notices(line: WebsocketCommunicator) -> list[dict[str, Any]]:
    """The notices that have arrived, up to the end of what is told."""
    found = []
    while not await line.receive_nothing(0.5):
        frame = await line.receive_json_from(PATIENCE)
        if frame["type"] == "notice":
            found.append(frame)
    return found


async def kinds_after(user: Any, act: Callable[[], Any]) -> list[str]:
    async with console_of(user) as line:
        await in_thread(act)
        return [notice["kind"] for notice in await notices(line)]


@pytest.fixture
def session(deployment: Any) -> ChatSession:
    made = make_session(deployment)
    say(made, "Hello")
    return made


def want(session: ChatSession) -> None:
    with tenant_scope(session.tenant):
        want_person(lock_session(session.pk))


def take(session: ChatSession, user: Any) -> None:
    with tenant_scope(session.tenant):
        handoff.take_over(session.pk, user)


async def test_message_reaches_who_answers_with_its_place_and_without_its_words(
    tenant: Any, session: ChatSession, agent: Any, owner: Any
) -> None:
    for user in (agent, owner):
        await in_thread(choose, tenant, user, desktop=False)
    await in_thread(take, session, agent)
    async with console_of(agent) as mine, console_of(owner) as other:
        entry = await in_thread(say, session, "A secret")
        (notice,) = await notices(mine)
        assert notice == {
            "type": "notice",
            "kind": "message",
            "key": f"message:{session.pk}:{entry.seq}",
            "what": "session",
            "id": str(session.pk),
            "url": reverse("console-conversation", args=[session.pk]),
            "sound": True,
            "desktop": False,
        }
        assert await notices(other) == []


async def test_message_that_the_bot_answers_reaches_nobody(tenant: Any, session: ChatSession, agent: Any) -> None:
    await in_thread(choose, tenant, agent)
    assert await kinds_after(agent, lambda: say(session, "Hello again")) == []


async def test_message_of_who_waits_reaches_the_assignee(
    tenant: Any, session: ChatSession, agent: Any, owner: Any
) -> None:
    for user in (agent, owner):
        await in_thread(choose, tenant, user)

    def assign() -> None:
        want(session)
        with tenant_scope(tenant):
            services.assign(session.pk, owner, to=agent)

    await in_thread(assign)
    assert await kinds_after(agent, lambda: say(session, "Are you there?")) == ["message"]
    assert await kinds_after(owner, lambda: say(session, "Are you there?")) == []


async def test_conversation_that_waits_reaches_everyone_who_answers(
    tenant: Any, session: ChatSession, agent: Any, viewer: Any
) -> None:
    await in_thread(choose, tenant, agent)
    assert await kinds_after(agent, lambda: want(session)) == ["waiting"]


async def test_conversation_of_a_colleague_that_waits_reaches_only_them(
    tenant: Any, session: ChatSession, agent: Any, owner: Any
) -> None:
    for user in (agent, owner):
        await in_thread(choose, tenant, user)

    def assign() -> None:
        with tenant_scope(tenant):
            services.assign(session.pk, owner, to=agent)

    await in_thread(assign)
    async with console_of(agent) as mine, console_of(owner) as other:
        await in_thread(want, session)
        assert [notice["kind"] for notice in await notices(mine)] == ["waiting"]
        assert await notices(other) == []


async def test_card_reaches_who_may_decide_it(tenant: Any, approver: Any, agent: Any) -> None:
    for user in (approver, agent):
        await in_thread(choose, tenant, user)
    async with console_of(approver) as mine, console_of(agent) as other:
        card = await in_thread(make_card, tenant)
        (notice,) = await notices(mine)
        assert notice["kind"] == "card"
        assert notice["url"] == reverse("console-card", args=[card.pk])
        assert await notices(other) == []


async def test_card_of_ones_own_and_an_offer_to_undo_are_silent(tenant: Any, approver: Any) -> None:
    await in_thread(choose, tenant, approver)
    assert await kinds_after(approver, lambda: make_card(tenant, requested_by=f"user:{approver.pk}")) == []
    assert await kinds_after(approver, lambda: make_kind(tenant, CardKind.POST_EXECUTION)) == []


async def test_card_that_is_unassigned_has_the_key_of_before_and_one_that_is_back_another(
    tenant: Any, session: ChatSession, approver: Any
) -> None:
    await in_thread(choose, tenant, approver)
    async with console_of(approver) as line:

        def act() -> None:
            card = make_card(tenant, risk=Risk.MEDIUM, session_id=session.pk, seconds=600)
            with tenant_scope(tenant):
                assign_card(card.pk, to=approver, by=approver)
                unassign_card(card.pk, by=approver)
                ask_customer(card.pk, approver, "Flat 3 or 4?")
            say(session, "Number 4")

        await in_thread(act)
        keys = [notice["key"] for notice in await notices(line) if notice["kind"] == "card"]
    assert len(keys) == 3
    assert len(set(keys)) == 2


async def test_mention_reaches_who_is_mentioned(tenant: Any, session: ChatSession, agent: Any, owner: Any) -> None:
    await in_thread(choose, tenant, agent)

    def act() -> None:
        with tenant_scope(tenant):
            services.note(session.pk, owner, f"@{agent.display_name} please look")

    assert await kinds_after(agent, act) == ["mention"]


async def test_missed_sla_reaches_who_is_responsible_or_the_owners(
    tenant: Any, session: ChatSession, agent: Any, owner: Any
) -> None:
    for user in (agent, owner):
        await in_thread(choose, tenant, user)

    def miss(*responsible: Any) -> Callable[[], None]:
        def act() -> None:
            with tenant_scope(tenant):
                clock = SlaClock(session_id=session.pk, target="first_reply", due_at=now())
                sla_missed(clock, {user.pk for user in responsible})

        return act

    assert await kinds_after(agent, miss(agent)) == ["sla"]
    assert await kinds_after(owner, miss(agent)) == []
    assert await kinds_after(owner, miss()) == ["sla"]
    assert await kinds_after(agent, miss()) == []


async def test_member_who_wants_none_gets_none(tenant: Any, session: ChatSession, agent: Any) -> None:
    assert await kinds_after(agent, lambda: want(session)) == []
    await in_thread(choose, tenant, agent, sound=False, desktop=False)
    await in_thread(take, session, agent)
    assert await kinds_after(agent, lambda: say(session, "Hello")) == []


async def test_quiet_hours_are_silent_and_a_change_holds_at_once(tenant: Any, session: ChatSession, agent: Any) -> None:
    start = now().astimezone(get_timezone(tenant.timezone)) - timedelta(hours=1)
    await in_thread(choose, tenant, agent, QuietHours(start.time(), (start + timedelta(hours=2)).time()))
    await in_thread(take, session, agent)
    async with console_of(agent) as line:
        await in_thread(say, session, "Hello")
        assert await notices(line) == []
        await in_thread(choose, tenant, agent)
        assert await notices(line) == []
        await in_thread(say, session, "Hello?")
        assert [notice["kind"] for notice in await notices(line)] == ["message"]


def by_settings(tenant: Any, owner: Any, timezone: str) -> None:
    saved = browser(owner).post(reverse("console-company-settings"), {"name": tenant.name, "timezone": timezone})
    assert saved.status_code == 302


def by_administration(tenant: Any, owner: Any, timezone: str) -> None:
    """Companies are the platform's there."""
    root = browser(User.objects.create_superuser(f"root-{uuid4().hex}@example.test", "a-long-password"))
    address = reverse("admin:tenants_tenant_change", args=[tenant.pk])
    form = root.get(address).context["adminform"].form
    typed = {name: value for name, value in form.initial.items() if name in form.fields and value is not None}
    assert root.post(address, {**typed, "timezone": timezone}).status_code == 302


@pytest.mark.parametrize("move", [by_settings, by_administration])
async def test_quiet_hours_follow_the_companys_time_zone_while_the_console_is_open(
    tenant: Any, session: ChatSession, owner: Any, agent: Any, move: Callable[[Any, Any, str], None]
) -> None:
    await in_thread(change_tenant, tenant, timezone="Asia/Tokyo")
    start = now().astimezone(get_timezone("Asia/Tokyo")) - timedelta(hours=1)
    await in_thread(choose, tenant, agent, QuietHours(start.time(), (start + timedelta(hours=2)).time()))
    await in_thread(take, session, agent)
    async with console_of(agent) as line:
        await in_thread(say, session, "Hello")
        assert await notices(line) == []
        await in_thread(move, tenant, owner, "America/New_York")
        assert await notices(line) == []
        await in_thread(say, session, "Hello?")
        assert [notice["kind"] for notice in await notices(line)] == ["message"]


async def test_another_companys_news_are_silent(tenant: Any, other_tenant: Any) -> None:
    foreigner = await in_thread(make_member, other_tenant, "owner")
    await in_thread(choose, other_tenant, foreigner)
    assert await kinds_after(foreigner, lambda: make_card(tenant)) == []
