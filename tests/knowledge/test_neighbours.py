"""Passages that follow each other in a document become one, and keep the exact place of their text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from apps.knowledge import queries
from apps.knowledge.models import DocumentVersion
from kernel.tenancy import tenant_scope
from llm.briefing import Passage
from tests.factories.knowledge import ingest_texts, search

LONG = "# Théft\n\n" + "\n\n".join(
    f"Bicycle rule {number} § " + f"{word} bicycles are covered when locked. " * 15
    for number, word in enumerate(("stolen", "painted", "borrowed"), 1)
)


@pytest.fixture
def pieces(tenant: Any, tmp_path: Path) -> list[Passage]:
    """The three passages of the document, in its order."""
    ingest_texts(tenant, tmp_path, theft=LONG)
    found = sorted(search(tenant, "bicycle rule"), key=lambda each: each.start)
    assert len(found) == 3
    return found


def joined(tenant: Any, *passages: Passage) -> tuple[Passage, ...]:
    with tenant_scope(tenant):
        return queries.join_neighbours(passages)


def test_neighbours_are_one_passage_of_exactly_the_stored_bytes(tenant: Any, pieces: list[Passage]) -> None:
    first, second, third = pieces
    (passage,) = joined(tenant, third, first, second)
    with tenant_scope(tenant):
        stored = DocumentVersion.objects.get(pk=passage.version_id).text.encode()
    assert passage.start == first.start
    assert passage.end == third.end
    assert passage.quote == stored[passage.start : passage.end].decode()
    assert passage.score == max(each.score for each in pieces)


def test_passages_with_text_between_them_stay_apart_in_their_order(tenant: Any, pieces: list[Passage]) -> None:
    first, _, third = pieces
    assert joined(tenant, third, first) == (third, first)


def test_other_tenant_reads_nothing_of_what_lies_between(other_tenant: Any, pieces: list[Passage]) -> None:
    assert joined(other_tenant, *pieces) == tuple(pieces)
