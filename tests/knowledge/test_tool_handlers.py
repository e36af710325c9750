"""`retrieve_chunks` through the guard's door."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from apps.guard.enums import Intent
from apps.guard.schemas import Done, Failed, RunRef
from apps.guard.services import guarded_call
from kernel.tenancy import in_thread
from tests.factories.guard import make_call, make_run
from tests.factories.knowledge import ingest_texts


async def called(tenant: Any, args: dict[str, Any], context: dict[str, Any]) -> Any:
    run = await in_thread(make_run, tenant)
    call = make_call(tool="search_knowledge", args=args)
    return await guarded_call(RunRef(tenant.id, run.id), Intent.RETRIEVE_CHUNKS, call, context=context)


@pytest.fixture
def knowledge(tenant: Any, tmp_path: Path) -> Any:
    ingest_texts(tenant, tmp_path, theft="Stolen bicycles are covered.")
    return tenant


async def test_retrieve_chunks_answers_with_passages(knowledge: Any) -> None:
    outcome = await called(knowledge, {"query": "bicycle"}, {"levels": ["public"]})
    assert isinstance(outcome, Done)
    assert [passage["quote"] for passage in outcome.value["passages"]] == ["Stolen bicycles are covered."]


async def test_retrieve_chunks_costs_nothing(knowledge: Any) -> None:
    outcome = await called(knowledge, {"query": "bicycle"}, {"levels": ["public"]})
    assert isinstance(outcome, Done)
    assert outcome.cost == 0


@pytest.mark.parametrize("context", [{}, {"levels": []}, {"levels": ["verified"]}])
async def test_retrieve_chunks_without_the_level_finds_nothing(knowledge: Any, context: dict[str, Any]) -> None:
    outcome = await called(knowledge, {"query": "bicycle", "levels": ["public"]}, context)
    assert isinstance(outcome, Done)
    assert outcome.value == {"passages": []}


@pytest.mark.parametrize("args", [{}, {"query": None}, {"query": 7}])
async def test_retrieve_chunks_without_a_question_fails(knowledge: Any, args: dict[str, Any]) -> None:
    outcome = await called(knowledge, args, {"levels": ["public"]})
    assert isinstance(outcome, Failed)
    assert outcome.code == "invalid_arguments"
