"""Ingesting: repeatable, version by version, file by file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import time_machine

from apps.audit.models import AuditEntry
from apps.knowledge import services
from apps.knowledge.models import Chunk, Collection, Document, DocumentVersion
from apps.knowledge.schemas import Outcome
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope
from tests.factories.knowledge import ingest_texts, pdf_of, search
from tests.rivals import race


def versions(tenant: Any) -> list[tuple[int, str]]:
    with tenant_scope(tenant):
        return list(DocumentVersion.objects.order_by("number").values_list("number", "text"))


def test_ingest_new_file_is_stored_as_it_is(tenant: Any, tmp_path: Path) -> None:
    ingest_texts(tenant, tmp_path, fire="# Fire\n\nWir zahlen für Brände. 🔥")
    assert versions(tenant) == [(1, "# Fire\n\nWir zahlen für Brände. 🔥")]


def test_ingest_same_content_again_makes_no_version(tenant: Any, tmp_path: Path) -> None:
    ingest_texts(tenant, tmp_path, fire="Paid.")
    assert ingest_texts(tenant, tmp_path, fire="Paid.").counts == {Outcome.UNCHANGED: 1}
    assert versions(tenant) == [(1, "Paid.")]


def test_ingest_same_content_again_writes_nothing(tenant: Any, tmp_path: Path) -> None:
    ingest_texts(tenant, tmp_path, fire="Paid.")
    with tenant_scope(tenant):
        before = AuditEntry.objects.count()
    ingest_texts(tenant, tmp_path, fire="Paid.")
    with tenant_scope(tenant):
        assert AuditEntry.objects.count() == before


def test_ingest_changed_content_keeps_the_old_version(tenant: Any, tmp_path: Path) -> None:
    ingest_texts(tenant, tmp_path, fire="Paid.")
    assert ingest_texts(tenant, tmp_path, fire="Not paid.").counts == {Outcome.UPDATED: 1}
    assert versions(tenant) == [(1, "Paid."), (2, "Not paid.")]


def test_ingest_changed_content_is_found_and_the_old_is_not(tenant: Any, tmp_path: Path) -> None:
    ingest_texts(tenant, tmp_path, fire="Candles are covered.")
    ingest_texts(tenant, tmp_path, fire="Candles are excluded.")
    assert [found.quote for found in search(tenant, "candles")] == ["Candles are excluded."]


def test_ingest_changed_title_only_cuts_again_without_a_version(tenant: Any, tmp_path: Path) -> None:
    ingest_texts(tenant, tmp_path, fire="---\ntitle: Old\n---\nPaid.")
    assert ingest_texts(tenant, tmp_path, fire="---\ntitle: New\n---\nPaid.").counts == {Outcome.REINDEXED: 1}
    assert [found.title for found in search(tenant, "paid")] == ["New"]


def test_ingest_after_a_change_of_method_cuts_again(
    tenant: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ingest_texts(tenant, tmp_path, fire="Paid.")
    with tenant_scope(tenant):
        Document.objects.update(indexed_with="chunks-0 other:model")
    assert ingest_texts(tenant, tmp_path, fire="Paid.").counts == {Outcome.REINDEXED: 1}


def test_stored_version_cannot_be_rewritten(tenant: Any, tmp_path: Path) -> None:
    ingest_texts(tenant, tmp_path, fire="Paid.")
    with pytest.raises(Exception, match="does not change"), tenant_scope(tenant):
        DocumentVersion.objects.update(text="Not paid.")


def test_ingest_bad_files_do_not_stop_the_good_ones(tenant: Any, tmp_path: Path) -> None:
    bad = {
        "a.pdf": b"%PDF-1.7 broken",
        "b.md": b"\xff\xff",
        "c.txt": b"",
        "d.html": b"\x00",
        "e.pdf": pdf_of("x", password="y"),
    }
    for name, data in (bad | {"f.md": b"Good.", "g.txt": b"Good too.", "h.pdf": pdf_of("Good as well")}).items():
        (tmp_path / name).write_bytes(data)
    report = services.ingest(tenant, collection="help", paths=[tmp_path], root=tmp_path)
    assert len(report.failed) == 5
    assert report.counts[Outcome.ADDED] == 3


def test_ingest_file_that_became_unreadable_keeps_what_was_known(tenant: Any, tmp_path: Path) -> None:
    ingest_texts(tenant, tmp_path, fire="Candles are covered.")
    (tmp_path / "fire.md").write_bytes(b"\xff\xff\xff")
    services.ingest(tenant, collection="help", paths=[tmp_path], root=tmp_path)
    assert [found.quote for found in search(tenant, "candles")] == ["Candles are covered."]


def test_ingest_folder_names_what_it_left_aside(tenant: Any, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.md").write_text("Words.")
    (tmp_path / "logo.png").write_bytes(b"png")
    (tmp_path / ".hidden.md").write_text("Hidden.")
    report = services.ingest(tenant, collection="help", paths=[tmp_path], root=tmp_path)
    assert [path.name for path in report.skipped] == ["logo.png"]
    assert [file.path.name for file in report.files] == ["a.md"]


def test_ingest_file_named_twice_is_read_once(tenant: Any, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("Words.")
    report = services.ingest(tenant, collection="help", paths=[tmp_path, tmp_path / "a.md"], root=tmp_path)
    assert report.counts == {Outcome.ADDED: 1}


def test_ingest_files_of_one_name_in_two_folders_are_two_documents(tenant: Any, tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "readme.md").write_text(f"Words of {folder}.")
    services.ingest(tenant, collection="help", paths=[tmp_path / "one", tmp_path / "two"], root=tmp_path)
    with tenant_scope(tenant):
        assert sorted(Document.objects.values_list("source_ref", flat=True)) == ["one/readme.md", "two/readme.md"]


def test_ingest_jsonl_changes_only_the_changed_line(tenant: Any, tmp_path: Path) -> None:
    lines = [{"id": number, "text": f"Answer {number}."} for number in range(3)]
    report = [_ingest_lines(tenant, tmp_path, lines) for lines in (lines, [*lines[:2], {"id": 2, "text": "Other."}])]
    assert report[1].counts == {Outcome.UNCHANGED: 2, Outcome.UPDATED: 1}


def _ingest_lines(tenant: Any, folder: Path, lines: list[dict[str, Any]]) -> Any:
    (folder / "faq.jsonl").write_text("\n".join(json.dumps(line) for line in lines))
    return services.ingest(tenant, collection="help", paths=[folder / "faq.jsonl"], root=folder)


def test_ingest_reports_progress_file_by_file(tenant: Any, tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / f"{name}.md").write_text(name)
    seen: list[tuple[str, int]] = []
    services.ingest(
        tenant,
        collection="help",
        paths=[tmp_path],
        root=tmp_path,
        progress=lambda file, total: seen.append((file.path.name, total)),
    )
    assert seen == [("a.md", 3), ("b.md", 3), ("c.md", 3)]


def test_ingest_by_two_at_once_stores_once(tenant: Any, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("Words that two read at once.")
    both = [lambda: services.ingest(tenant, collection="help", paths=[tmp_path], root=tmp_path) for _ in range(4)]
    outcomes = [report.counts for report in race(*both)]  # type: ignore[union-attr]
    assert sum(outcome[Outcome.ADDED] for outcome in outcomes) == 1
    with tenant_scope(tenant):
        assert DocumentVersion.objects.count() == 1
        assert Chunk.objects.count() == 1


def test_ingest_does_not_change_the_level_of_a_known_collection(tenant: Any, tmp_path: Path) -> None:
    ingest_texts(tenant, tmp_path, min_level="verified", a="One.")
    ingest_texts(tenant, tmp_path, min_level="public", b="Two.")
    with tenant_scope(tenant):
        assert Collection.objects.get().min_level == "verified"


def test_ingest_writes_ids_and_counts_to_the_audit_log(tenant: Any, tmp_path: Path) -> None:
    report = ingest_texts(tenant, tmp_path, fire="A secret sentence about candles.")
    with tenant_scope(tenant):
        entry = AuditEntry.objects.get(event="document_stored")
    assert json.loads(entry.data) == {"chunks": 1, "collection": str(report.collection_id), "version": 1}


def test_ingest_counts_chunks_and_finds_common_words(tenant: Any, tmp_path: Path) -> None:
    text = "\n\n".join(f"## Part {number}\n\nOur policy number{number} says so." for number in range(60))
    ingest_texts(tenant, tmp_path, book=text)
    with tenant_scope(tenant):
        collection = Collection.objects.get()
    assert collection.chunk_count == 60
    assert collection.common_words == ["book", "part", "polici", "say"]


@pytest.mark.parametrize("name", ["", "two words", "a" * 61, "../up", "ünicode"])
def test_open_collection_with_a_bad_name_is_refused(tenant: Any, name: str) -> None:
    with pytest.raises(SilasError) as refusal, tenant_scope(tenant):
        services.open_collection(name)
    assert refusal.value.code == "invalid_name"


def test_forget_document_takes_versions_and_chunks_along(tenant: Any, tmp_path: Path) -> None:
    ingest_texts(tenant, tmp_path, fire="Paid.")
    with tenant_scope(tenant):
        services.forget_document(Document.objects.get().id)
        assert DocumentVersion.objects.count() == 0
        assert Chunk.objects.count() == 0


def test_forget_document_of_another_tenant_is_not_found(tenant: Any, other_tenant: Any, tmp_path: Path) -> None:
    ingest_texts(other_tenant, tmp_path, fire="Paid.")
    with tenant_scope(other_tenant):
        document = Document.objects.get()
    with pytest.raises(SilasError) as refusal, tenant_scope(tenant):
        services.forget_document(document.id)
    assert refusal.value.status == 404


def test_ingest_changed_document_shows_when(tenant: Any, tmp_path: Path) -> None:
    ingest_texts(tenant, tmp_path, fire="Paid.")
    with time_machine.travel("2031-05-04T03:02:01Z", tick=False):
        ingest_texts(tenant, tmp_path, fire="Not paid.")
    with tenant_scope(tenant):
        assert Document.objects.get().updated_at.year == 2031
