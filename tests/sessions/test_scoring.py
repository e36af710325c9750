"""Is a window that the rules cannot empty enough judged by the scorer, and only then, and through the guard?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from uuid import NAMESPACE_OID, uuid4, uuid5

import pytest
from pydantic_ai.models import override_allow_model_requests

from apps.guard.models import ToolCall
from apps.sessions import turn, window_scoring
from apps.sessions.queries import Said
from apps.sessions.state import TurnState
from apps.sessions.steps import context
from kernel.taint import Taint
from kernel.tenancy import in_scope, in_thread, tenant_scope
from llm.briefing import RecalledMemory
from llm.context.enums import Reason
from tests.factories.sessions import make_session, say
from tests.fakes.openai_server import FakeOpenAI, Reply, final, serving

MODEL = "ollama:scorer"


def _id(name: str) -> str:
    return str(uuid5(NAMESPACE_OID, name))


WISH = final(
    {"keep_groups": [], "evict_groups": [{"reason": "old", "block_ids": [f"memory:{_id('s3')}", "persona", "seq:1"]}]}
)


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Requests to the fake server are let through, and no test inherits another's breaker."""
    window_scoring._breaker.cache_clear()
    with override_allow_model_requests(True):
        yield


def opened(deployment: Any, model: str = MODEL) -> TurnState:
    """A turn whose four zones are full to the brim."""
    session = make_session(deployment)
    say(session, "And now?")
    with tenant_scope(deployment.tenant_id):
        state = turn.open_turn(session.pk, consumer="test")
    assert state is not None
    models = {**state.settings.model_names, window_scoring.SCORER: model}
    state.settings = replace(state.settings, persona="p" * 25_800, model_names=models)
    state.recent = tuple(Said(uuid4(), at - 30, "bot", f"{at} {'x' * 3_400}", "external") for at in range(30))
    state.memories = tuple(_memory(f"m{at}", 1_600) for at in range(12))
    state.subscribed = tuple(_memory(f"s{at}", 1_600) for at in range(9))
    return state


def _memory(name: str, size: int) -> RecalledMemory:
    return RecalledMemory(_id(name), "y" * size, "episode", "working", Taint.EXTERNAL, "2026-01-01", score=0.5)


async def judged(deployment: Any, *replies: Reply, model: str = MODEL, patch: Any) -> tuple[TurnState, FakeOpenAI]:
    state = await in_thread(opened, deployment, model)
    async with serving(list(replies)) as fake:
        patch.setenv("OLLAMA_BASE_URL", fake.base_url)
        await context.remember_message(state)
        assert await context.enforce_budget(state) is None
    return state, fake


def left(state: TurnState, reason: Reason) -> set[str]:
    assert state.window is not None
    return {gone.ctx_id for gone in state.window.evicted if gone.reason is reason}


async def test_scorer_says_what_leaves_a_full_window(deployment: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    state, fake = await judged(deployment, WISH, patch=monkeypatch)
    assert len(fake.requests) == 1
    assert left(state, Reason.SCORED) == {f"memory:{_id('s3')}"}
    assert _id("s3") not in {memory.memory_id for memory in state.subscribed}


async def test_scorer_that_fails_leaves_it_to_the_rules(deployment: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    state, _ = await judged(deployment, Reply(status=500), patch=monkeypatch)
    assert left(state, Reason.SCORED) == set()
    assert left(state, Reason.WINDOW_FULL)
    assert state.window is not None
    assert state.window.total <= 25_600


async def test_scorer_that_stalls_is_not_waited_for(deployment: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    state, _ = await judged(deployment, Reply(before_first=3600.0), patch=monkeypatch)
    assert left(state, Reason.SCORED) == set()
    assert left(state, Reason.WINDOW_FULL)


async def test_scorer_that_failed_three_times_is_left_alone(deployment: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(3):
        await judged(deployment, Reply(status=401), patch=monkeypatch)
    _, fake = await judged(deployment, WISH, patch=monkeypatch)
    assert fake.requests == []


async def test_scorer_passes_the_guard_and_is_settled_with_the_turn(
    deployment: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    state, _ = await judged(deployment, WISH, patch=monkeypatch)
    await in_scope(state.tenant_id, turn.close_turn, state)

    def calls() -> list[tuple[str, str]]:
        with tenant_scope(state.tenant_id):
            return list(ToolCall.objects.filter(tool=window_scoring.SCORER).values_list("tool", "state"))

    assert await in_thread(calls) == [("scorer", "executed")]


async def test_deployment_without_a_scorer_asks_nobody(deployment: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    state, fake = await judged(deployment, WISH, model="", patch=monkeypatch)
    assert fake.requests == []
    assert left(state, Reason.WINDOW_FULL)


async def test_window_with_room_asks_nobody(deployment: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    state = await in_thread(opened, deployment)
    state.settings = replace(state.settings, persona="")
    async with serving([WISH]) as fake:
        monkeypatch.setenv("OLLAMA_BASE_URL", fake.base_url)
        await context.remember_message(state)
        await context.enforce_budget(state)
    assert fake.requests == []


async def test_priced_scorer_without_a_key_leaves_it_to_the_rules(
    deployment: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    state, _ = await judged(deployment, WISH, model="openai:gpt-4o-mini", patch=monkeypatch)
    assert left(state, Reason.SCORED) == set()
    assert left(state, Reason.WINDOW_FULL)
