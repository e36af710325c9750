"""The provider keys of an installation are for the deployments that may use them; nobody else's words reach a provider
at its owner's expense."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

import pytest

from tests.fakes.openai_server import FakeOpenAI, Replies, direct
from tests.faults.conftest import FAKE
from tests.faults.house import KEY, House, Web
from tests.faults.visitor import Visitor

ASKED = "Does my home policy cover a burst pipe?"


@pytest.fixture
def provider_of(model: Callable[[Replies], FakeOpenAI]) -> FakeOpenAI:
    return model([direct("It is covered, says the outside model.")] * 4)


async def _ask(web: Web) -> tuple[str, str]:
    async with Visitor(lambda: web) as visitor:
        answer = await visitor.ask(ASKED)
        return str(answer["text"]), visitor.session_id


def _reasons(house: House, session_id: str) -> list[str]:
    query = "SELECT data FROM audit_auditentry WHERE event = 'model_fell_back' AND subject = %s"
    return [json.loads(row["data"])["reason"] for row in house.rows(query, f"session:{session_id}")]


def _allow(house: House, allowed: bool) -> None:
    house.rows("UPDATE tenants_deployment SET environment_keys = %s WHERE public_key = %s", allowed, KEY)


def test_deployment_that_may_not_use_the_installations_keys_never_asks_the_provider(
    house: House, web: Web, provider_of: FakeOpenAI
) -> None:
    _allow(house, False)
    text, session_id = asyncio.run(_ask(web))
    assert provider_of.requests == []
    assert "outside model" not in text
    assert _reasons(house, session_id) == ["no_provider_key"]


def test_deployment_that_may_use_them_asks_with_them(house: House, web: Web, provider_of: FakeOpenAI) -> None:
    _allow(house, True)
    text, session_id = asyncio.run(_ask(web))
    assert "outside model" in text
    assert _reasons(house, session_id) == []
    assert set(provider_of.keys) == {"of-the-fake-provider"}


def test_deployment_of_the_demo_may_not_use_them_and_needs_none(house: House) -> None:
    rows = house.rows("SELECT environment_keys FROM tenants_deployment WHERE public_key <> %s", KEY)
    assert rows
    assert not any(row["environment_keys"] for row in rows)
    assert FAKE.startswith("openai")
