"""Opening a citation: the very bytes that were quoted, for those who may read them."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from apps.knowledge import queries
from apps.knowledge.models import Collection, DocumentVersion
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope
from tests.factories.knowledge import ingest_texts, search

TEXT = "# Größe\n\nVor dem Zitat 🎉 steht etwas.\n\n## Brände\n\nWir zahlen für Brände. 🔥\n\n## Ende\n\nNichts mehr."


@pytest.fixture
def cited(tenant: Any, tmp_path: Path) -> Any:
    ingest_texts(tenant, tmp_path, text=TEXT)
    return search(tenant, "Brände zahlen")[0]


def opened(
    tenant: Any, passage: Any, *, levels: tuple[str, ...] = ("public",), **changed: Any
) -> queries.OpenedPassage:
    wanted = {"start": passage.start, "end": passage.end, "version_id": UUID(passage.version_id), **changed}
    with tenant_scope(tenant):
        return queries.open_passage(UUID(passage.document_id), levels=levels, **wanted)


def refused(tenant: Any, passage: Any, **changed: Any) -> int:
    with pytest.raises(SilasError) as refusal:
        opened(tenant, passage, **changed)
    return refusal.value.status


def test_citation_quote_is_byte_for_byte_in_the_stored_version(tenant: Any, cited: Any) -> None:
    with tenant_scope(tenant):
        stored = DocumentVersion.objects.get(id=cited.version_id).text.encode()
    assert stored[cited.start : cited.end] == cited.quote.encode() == "## Brände\n\nWir zahlen für Brände. 🔥".encode()


def test_citation_opens_after_the_document_changed(tenant: Any, cited: Any, tmp_path: Path) -> None:
    ingest_texts(tenant, tmp_path, text="Ganz anders.")
    assert opened(tenant, cited).quote == cited.quote


def test_citation_of_an_old_version_says_so(tenant: Any, cited: Any, tmp_path: Path) -> None:
    assert opened(tenant, cited).newest
    ingest_texts(tenant, tmp_path, text="Ganz anders.")
    assert not opened(tenant, cited).newest


def test_passage_stands_among_its_neighbours(tenant: Any, cited: Any) -> None:
    found = opened(tenant, cited)
    assert found.before + found.quote + found.after == TEXT


def test_passage_without_version_is_of_the_newest(tenant: Any, cited: Any, tmp_path: Path) -> None:
    ingest_texts(tenant, tmp_path, text="Ganz anders.")
    assert opened(tenant, cited, version_id=None, start=0, end=4).quote == "Ganz"


def test_passage_of_another_tenant_is_not_found(other_tenant: Any, cited: Any) -> None:
    assert refused(other_tenant, cited) == 404


def test_passage_above_the_level_is_not_found(tenant: Any, cited: Any) -> None:
    with tenant_scope(tenant):
        Collection.objects.update(min_level="verified")
    assert refused(tenant, cited) == 404


def test_passage_at_no_level_is_not_found(tenant: Any, cited: Any) -> None:
    assert refused(tenant, cited, levels=()) == 404


def test_passage_of_an_unknown_version_is_not_found(tenant: Any, cited: Any) -> None:
    assert refused(tenant, cited, version_id=uuid4()) == 404


@pytest.mark.parametrize(
    ("start", "end"), [(-1, 5), (5, 5), (6, 5), (0, 10**9), (10**9, 10**9 + 1), (0, 5), (5, 9)]
)  # the last two end and begin inside "ö"
def test_passage_with_offsets_that_are_no_characters_is_not_found(
    tenant: Any, cited: Any, start: int, end: int
) -> None:
    assert refused(tenant, cited, start=start, end=end) == 404
