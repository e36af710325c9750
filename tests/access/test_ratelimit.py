"""Can somebody guess who a customer is? Wrong claims are counted before they are checked, and then nothing is."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.test import override_settings

from apps.access import ratelimit
from apps.audit.models import AuditEntry
from apps.inbox import handoff
from apps.sessions import identity_claims, turn
from apps.sessions.models import ChatSession
from apps.sessions.steps import input_gates
from apps.tenants.models import Deployment
from kernel.tenancy import in_scope, in_thread
from tests.factories.identity import JONAS, MARIA, converse, last_words, make_identity_desk
from tests.factories.sessions import make_session

NO_CACHE = {"default": {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": "unix:///nowhere.sock"}}


@pytest.fixture
def desk(tenant: Any, tmp_path: Path) -> Deployment:
    return make_identity_desk(tenant, tmp_path)


@pytest.fixture
def session(desk: Deployment) -> ChatSession:
    return make_session(desk)


@pytest.fixture
def no_cache() -> Iterator[None]:
    """Redis is away; every thread asks for its cache anew when the setting changes."""
    with override_settings(CACHES=NO_CACHE):
        yield


def wrong(*years: int, name: str = "Maria Ortega") -> list[str]:
    return [f"I am {name}, born {year}-03-12" for year in years]


def audited(session: ChatSession, event: str) -> list[str]:
    return list(AuditEntry.objects.filter(subject=f"session:{session.pk}", event=event).values_list("data", flat=True))


async def test_right_claim_raises_the_level(session: ChatSession) -> None:
    assert (await converse(session, MARIA)).customer == "C-1"


async def test_right_claim_after_four_wrong_ones_still_raises_the_level(session: ChatSession) -> None:
    assert (await converse(session, *wrong(1950, 1951, 1952, 1953), MARIA)).level == "verified"


async def test_right_claim_after_five_wrong_ones_is_not_checked(session: ChatSession) -> None:
    assert (await converse(session, *wrong(1950, 1951, 1952, 1953, 1954), MARIA)).level == "public"


async def test_sixth_claim_is_told_to_wait_and_a_person_is_asked_for(session: ChatSession) -> None:
    after = await converse(session, *wrong(1950, 1951, 1952, 1953, 1954, 1955))
    assert await last_words(session) == identity_claims.WAIT
    assert after.wanted_person_at is not None


async def test_sixth_claim_is_audited_without_whom_it_named(session: ChatSession) -> None:
    await converse(session, *wrong(1950, 1951, 1952, 1953, 1954, 1955))
    assert await in_scope(session.tenant_id, audited, session, "identity_throttled") == ['{"by":"conversation"}']


async def test_conversation_that_is_used_up_still_answers_other_messages(session: ChatSession) -> None:
    await converse(session, *wrong(1950, 1951, 1952, 1953, 1954, 1955), "Hello")
    assert await last_words(session) != identity_claims.WAIT


async def test_own_right_claim_in_between_wins_no_further_guesses(session: ChatSession) -> None:
    guesses = wrong(1950, 1951, 1952, 1953, 1954)
    assert (await converse(session, *guesses[:4], JONAS, guesses[4], MARIA)).customer == "C-2"


@pytest.mark.parametrize(
    "name", ["Maria Ortega", "maria ortega", "MARIA  ORTEGA", "María Ortéga", "Ortega Maria", "Mari-a Ortega"]
)
async def test_name_guessed_in_five_conversations_is_closed_in_all_its_spellings(desk: Deployment, name: str) -> None:
    for year in range(1950, 1955):
        await converse(await in_thread(make_session, desk), *wrong(year))
    session = await in_thread(make_session, desk)
    await converse(session, *wrong(1955, name=name))
    assert await in_scope(session.tenant_id, audited, session, "identity_throttled") == ['{"by":"name"}']


async def test_name_that_is_closed_closes_no_other(desk: Deployment) -> None:
    for year in range(1950, 1956):
        await converse(await in_thread(make_session, desk), *wrong(year))
    assert (await converse(await in_thread(make_session, desk), JONAS)).customer == "C-2"


async def test_name_guessed_at_one_tenant_is_open_at_another(
    desk: Deployment, other_tenant: Any, tmp_path: Path
) -> None:
    for year in range(1950, 1956):
        await converse(await in_thread(make_session, desk), *wrong(year))
    other = await in_thread(make_identity_desk, other_tenant, tmp_path / "other")
    assert (await converse(await in_thread(make_session, other), MARIA)).level == "verified"


async def test_conversation_that_is_used_up_uses_up_nobody_s_name(desk: Deployment) -> None:
    await converse(
        await in_thread(make_session, desk), *wrong(*range(1950, 1955)), *[JONAS.replace("1979", "1999")] * 6
    )
    assert (await converse(await in_thread(make_session, desk), JONAS)).customer == "C-2"


async def test_rivals_guessing_one_name_get_no_more_tries_together(desk: Deployment) -> None:
    sessions = [await in_thread(make_session, desk) for _ in range(12)]
    await asyncio.gather(*[converse(session, *wrong(1950 + number)) for number, session in enumerate(sessions)])
    checked = [await in_scope(desk.tenant_id, audited, session, "identity_failed") for session in sessions]
    assert sum(map(len, checked)) == ratelimit.MAX_PER_NAME


async def test_turn_that_is_made_again_is_the_same_guess(session: ChatSession, monkeypatch: pytest.MonkeyPatch) -> None:
    await converse(session, *wrong(1950, 1951, 1952, 1953))
    await in_scope(session.tenant_id, _interrupted, session, wrong(1954)[0])
    guess = [await identity_claims.begin(*await in_scope(session.tenant_id, _opened, session)) for _ in range(3)]
    assert [each.stop for each in guess] == [None, None, None]


@pytest.mark.parametrize("end", [turn.close_turn, partial(turn.give_back, reason="Fault")])
async def test_wrong_claim_is_audited_even_when_the_turn_comes_to_nothing(
    session: ChatSession, agent: Any, end: Any
) -> None:
    await in_scope(session.tenant_id, _interrupted, session, wrong(1950)[0])
    opened = await in_scope(session.tenant_id, turn.open_turn, session.pk, consumer="test")
    assert opened is not None
    opened.stop = await input_gates.check(opened)
    await in_scope(session.tenant_id, handoff.take_over, session.pk, agent)
    await in_scope(session.tenant_id, end, opened)
    assert await in_scope(session.tenant_id, audited, session, "identity_failed") == ['{"gate":"identity_verified"}']


async def test_claim_without_a_cache_raises_no_level(session: ChatSession, no_cache: None) -> None:
    assert (await converse(session, MARIA)).level == "public"


async def test_claim_without_a_cache_is_answered_plainly(session: ChatSession, no_cache: None) -> None:
    await converse(session, MARIA)
    assert await last_words(session) == identity_claims.CANNOT_CHECK


async def test_claim_without_a_cache_is_audited(session: ChatSession, no_cache: None) -> None:
    await converse(session, MARIA)
    assert await in_scope(session.tenant_id, audited, session, "identity_throttled") == ['{"by":"unavailable"}']


async def test_message_without_a_claim_needs_no_cache(session: ChatSession, no_cache: None) -> None:
    await converse(session, "Hello")
    assert await last_words(session) != identity_claims.CANNOT_CHECK


def _interrupted(session: ChatSession, text: str) -> None:
    from tests.factories.sessions import say

    say(session, text)


def _opened(session: ChatSession) -> Any:
    """The waiting message's turn, opened again and again as after a fault, and what its gates are asked."""
    from apps.bus.models import QueueMessage

    QueueMessage.objects.filter(leased_until__isnull=False).update(state="queued", leased_until=None)
    opened = turn.open_turn(session.pk, consumer="test")
    assert opened is not None
    return opened, {"message": opened.text, "recent": [], "verified_gates": []}
