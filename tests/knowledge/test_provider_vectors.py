"""A provider's embeddings: chosen, made in the background, used beside the built-in ones, and gone when it is gone."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.urls import reverse
from pydantic_ai import models

from apps.bus.enums import Queue
from apps.guard.models import SpendEntry, ToolCall
from apps.guard.schemas import Limits
from apps.knowledge import provider_vectors, queries, reranking, search_settings
from apps.knowledge.models import Chunk, ChunkVector, Collection, SearchSettings
from apps.memory.enums import Tier
from apps.memory.models import MemoryItem, MemoryVector
from apps.memory.recall import recall
from apps.sessions import turn
from apps.sessions.steps.context import retrieve
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope
from llm import embedding
from tests.factories.console import browser
from tests.factories.guard import make_run
from tests.factories.knowledge import ingest_texts
from tests.factories.memories import customer, remember
from tests.factories.sessions import make_session, say
from tests.factories.tenants import make_deployment
from tests.factories.work import Hands
from tests.fakes.openai_server import FakeOpenAI, Reply, final, serving_in_thread

SMALL, LARGE = "openai:text-embedding-3-small", "openai:text-embedding-3-large"
RERANKER = "openai-chat:gpt-4o-mini"
SIZES = {"text-embedding-3-small": 384, "text-embedding-3-large": 512}
TEXTS = {
    "velo": "# Zweirad\n\nGestohlene Fahrräder werden ersetzt.",
    "fire": "# Fire\n\nWe pay when candles set the house on fire.",
    "hours": "# Hours\n\nThe office opens at nine in the morning.",
}
# By the built-in vectors this is about the morning; it shares no word with any document.
QUESTION = "wheelie at dawn"


def meaning(request: dict[str, Any]) -> Reply:
    """Vectors that know what a wheelie is, which the built-in ones do not."""
    size = SIZES[request["model"]]

    def vector(text: str) -> tuple[float, ...]:
        words = text.lower()
        topics = [("fahrr", "wheelie"), ("fire", "candle"), ("office", "nine")]
        found = [float(any(word in words for word in topic)) for topic in topics]
        return (*found, 0.01, *([0.0] * (size - 4)))

    return Reply(vectors=tuple(vector(text) for text in request["input"]))


@contextmanager
def provider(monkeypatch: pytest.MonkeyPatch, answer: Any = meaning) -> Iterator[FakeOpenAI]:
    provider_vectors.breaker_of.cache_clear()
    with serving_in_thread(answer) as fake:
        monkeypatch.setenv("OPENAI_BASE_URL", fake.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-house")
        monkeypatch.setattr(models, "ALLOW_MODEL_REQUESTS", True)
        yield fake


@pytest.fixture
def place(tenant: Any, tmp_path: Path) -> Any:
    ingest_texts(tenant, tmp_path, **TEXTS)
    return make_deployment(tenant, environment_keys=True)


def choose(tenant: Any, place: Any, name: str) -> None:
    asyncio.run(search_settings.choose(tenant.pk, place.pk, embedding=name, reranker="", actor="user:test"))


def work_once(tenant: Any) -> SearchSettings:
    """One delivery of the job, and those that follow at once."""
    Hands(tenant).work(Queue.TRUSTED)
    with tenant_scope(tenant):
        return SearchSettings.objects.get()


def quotes(tenant: Any, question: str) -> list[str]:
    found = asyncio.run(queries.search_async(tenant.pk, question, levels=("public",), k=2))
    return [passage.quote for passage in found]


def versions(tenant: Any) -> dict[str, int]:
    with tenant_scope(tenant):
        found = list(ChunkVector.objects.values_list("version", flat=True))
    return {name: found.count(name) for name in found}


def test_chosen_model_embeds_in_the_background_and_answers_by_its_own_vectors(
    tenant: Any, place: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = remember(tenant, customer("C-1"), "The visitor owns two Fahrräder.", tier=Tier.ACTIVE)
    assert quotes(tenant, QUESTION)[0] != TEXTS["velo"]
    with provider(monkeypatch) as fake:
        choose(tenant, place, SMALL)
        assert quotes(tenant, QUESTION)[0] != TEXTS["velo"]
        settings = work_once(tenant)
        assert settings.embedded == 4
        assert settings.total == 4
        assert settings.problem == ""
        assert versions(tenant) == {f"{SMALL}:384": 3}
        assert quotes(tenant, QUESTION)[0] == TEXTS["velo"]
        with tenant_scope(tenant):
            Collection.objects.update(chunk_count=3000)
        assert quotes(tenant, QUESTION)[0] == TEXTS["velo"]
        assert in_turn(place, QUESTION) == TEXTS["velo"]
        asked = _asked(tenant, "Which wheelie?")
        with tenant_scope(tenant):
            found = recall([customer("C-1")], "Which wheelie?", vector=None, k=3, by_provider=asked)
            other = recall([customer("C-2")], "Which wheelie?", vector=None, k=3, by_provider=asked)
            assert [each.memory_id for each in found] == [str(memory.pk)]
            assert other == ()
            calls = ToolCall.objects.filter(tool="embedding", model=SMALL)
            assert calls.exclude(state="executed").count() == 0
            assert SpendEntry.objects.filter(model=SMALL, deployment_id=place.pk).exists()
            assert all(call.measured for call in calls)
            # A changed memory has no vector of its former text.
            MemoryItem.objects.filter(pk=memory.pk).update(content="The visitor owns a boat.")
            assert MemoryVector.objects.count() == 0
            Chunk.objects.all().delete()
            assert ChunkVector.objects.count() == 0
    assert set(fake.keys) == {"sk-of-the-house"}


def in_turn(place: Any, text: str) -> str:
    """The passage that a turn is given first."""
    session = make_session(place)
    say(session, text)
    with tenant_scope(place.tenant_id):
        state = turn.open_turn(session.pk, consumer="test")
    assert state is not None
    asyncio.run(retrieve(state))
    return state.passages[0].quote


def _asked(tenant: Any, question: str) -> Any:
    async def ask() -> Any:
        plan = await provider_vectors.load_plan(tenant.pk)
        return await provider_vectors.embed_question(tenant.pk, plan, question, run=None)

    return asyncio.run(ask())


def test_new_model_takes_over_while_the_former_answers_and_then_its_vectors_go(
    tenant: Any, place: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with provider(monkeypatch):
        choose(tenant, place, SMALL)
        work_once(tenant)
        choose(tenant, place, LARGE)
        with tenant_scope(tenant):
            one = Chunk.objects.get(text__contains="candles")
            ChunkVector.objects.create(
                chunk=one,
                collection_id=one.collection_id,
                version=f"{LARGE}:512",
                dimensions=512,
                embedding=[1.0] * 512,
            )
            SearchSettings.objects.update(embedded=1)
        asked = _asked(tenant, QUESTION)
        assert [(each.model.name, round(each.weight, 2)) for each in asked] == [(LARGE, 0.33), (SMALL, 0.67)]
        assert quotes(tenant, QUESTION)[0] == TEXTS["velo"]
        settings = work_once(tenant)
        assert settings.former_model == ""
        assert versions(tenant) == {f"{LARGE}:512": 3}
        assert quotes(tenant, QUESTION)[0] == TEXTS["velo"]
        choose(tenant, place, "")
        work_once(tenant)
        assert versions(tenant) == {}


def test_without_its_provider_the_search_answers_as_before_and_says_why(
    tenant: Any, place: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with provider(monkeypatch):
        choose(tenant, place, SMALL)
        work_once(tenant)
    builtin = [passage.quote for passage in _builtin(tenant, "When does the office open?")]
    with provider(monkeypatch, [Reply(status=500)]) as fake:
        assert quotes(tenant, "When does the office open?") == builtin
        for _ in range(3):
            quotes(tenant, "candles")
        assert len(fake.requests) == 2
        with tenant_scope(tenant):
            assert SearchSettings.objects.get().problem == "http_500"
            assert ToolCall.objects.filter(tool="embedding", error_code="http_500", charged=0).count() == 2
            Chunk.objects.filter(text__contains="candles").delete()
    with provider(monkeypatch):
        quotes(tenant, "candles")
        with tenant_scope(tenant):
            assert SearchSettings.objects.get().problem == ""


def test_refusal_of_the_guard_is_no_failure_of_the_provider(
    tenant: Any, place: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with provider(monkeypatch) as fake:
        choose(tenant, place, SMALL)
        work_once(tenant)
        with tenant_scope(tenant):
            SearchSettings.objects.update(reranker=RERANKER)
        before = len(fake.requests)
        poor = make_run(tenant, limits=Limits(cost_usd=Decimal(0))).ref
        for _ in range(3):
            search = queries.search_async(tenant.pk, "candles in the office", levels=("public",), k=2, run=poor)
            assert len(asyncio.run(search)) == 2
        assert len(fake.requests) == before
        with tenant_scope(tenant):
            assert SearchSettings.objects.get().problem == ""
            assert not ToolCall.objects.filter(run_id=poor.run_id, state="executed").exists()
        assert not provider_vectors.breaker_of(tenant.pk, f"{SMALL}:384").is_open
        assert not provider_vectors.breaker_of(tenant.pk, RERANKER).is_open


def _builtin(tenant: Any, question: str) -> Any:
    with tenant_scope(tenant):
        return queries.search(question, vector=embedding.embed(question), levels=("public",), k=2)


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("builtin:grounded", None),
        ("nobody:model", None),
        (SMALL, Reply(status=401)),
        (SMALL, Reply(vectors=((1.0, 2.0),))),
        (SMALL, Reply(vectors=(tuple([0.0] * 384),))),
    ],
)
def test_model_that_cannot_be_used_is_refused_and_nothing_is_stored(
    tenant: Any, place: Any, monkeypatch: pytest.MonkeyPatch, name: str, answer: Reply | None
) -> None:
    with provider(monkeypatch, [answer or Reply()]), pytest.raises(SilasError) as refusal:
        choose(tenant, place, name)
    assert refusal.value.code == "search_model"
    assert "sk-of" not in json.dumps(refusal.value.extra or {})
    with tenant_scope(tenant):
        assert not SearchSettings.objects.exists()


def test_reranker_orders_what_was_found_and_is_left_out_when_it_is_late(
    tenant: Any, place: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    question = "candles in the office"
    before = quotes(tenant, question)

    def order(request: dict[str, Any]) -> Reply:
        text = request["messages"][-1]["content"]
        last = re.findall(r"passage (\d+)", text)[-1]
        return final({"passages": [int(last), 99, int(last)]})

    with provider(monkeypatch, order) as fake:
        ranked = search_settings.choose(tenant.pk, place.pk, embedding="", reranker=RERANKER, actor="user:test")
        asyncio.run(ranked)
        found = quotes(tenant, question)
        assert found[0] not in before
        assert found[1] == before[0]
        assert "untrusted" in json.dumps(fake.requests[0])
    monkeypatch.setattr(reranking, "SECONDS", 0.2)
    with provider(monkeypatch, [Reply(before_first=2)]):
        assert quotes(tenant, question) == before
    with tenant_scope(tenant):
        calls = list(
            ToolCall.objects.filter(tool="reranker").order_by("settled_at").values_list("error_code", "charged")
        )
    assert [code for code, _ in calls] == ["", "request_timeout"]
    assert all(charged > 0 for _, charged in calls)


def test_owner_chooses_models_on_the_page_and_approver_sees_progress_and_problem(
    tenant: Any, place: Any, owner: Any, approver: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    page, save = reverse("console-search-models"), reverse("console-search-models-save")
    client = browser(owner)
    with provider(monkeypatch):
        said = {"deployment": str(place.pk), "embedding": SMALL, "reranker": ""}
        wrong = client.post(save, {**said, "embedding": "nobody:model"})
        assert wrong.status_code == 422
        assert "Unknown model name." in wrong.content.decode()
        assert client.post(save, {**said, "deployment": str(uuid4())}).status_code == 404
        assert client.post(save, said)["Location"] == page
        work_once(tenant)
    with tenant_scope(tenant):
        provider_vectors.note_problem("http_500")
    shown = browser(approver).get(page).content.decode()
    assert "3 of 3 passages and memories embedded (100 %)" in shown
    assert "http_500" in shown
    assert save not in shown
    assert "Not working" in client.get(reverse("console-knowledge")).content.decode()
