"""Ingest documents into the tenant's knowledge, revise them and delete them.

`ingest` reads files one by one: unreadable files are reported and the others go on; an unchanged file writes nothing. A
document is read, split and embedded outside of any transaction and stored in one; its earlier versions stay, for the
citations that point at them. Callers: the ingest command, the demo seed, the console's admin.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from django.contrib.postgres.search import SearchVector
from django.db import connection
from django.db.models import Value

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.knowledge import chunks, file_discovery, parsing
from apps.knowledge.models import Chunk, Collection, Document, DocumentVersion
from apps.knowledge.parsing import Parsed, ParsedDocument
from apps.knowledge.schemas import FileReport, IngestPreview, IngestReport, Outcome, Progress
from apps.knowledge.search_configs import search_config
from apps.knowledge.signals import document_stored
from kernel.canonical import sha256_hex
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import NotFound, SilasError
from kernel.language import gettext
from kernel.tenancy import current_tenant_id, tenant_scope
from llm import embedding

INDEXED_WITH = f"chunks-2 {embedding.MODEL}"
_NAME = re.compile(r"[\w-]{1,60}", re.ASCII)
_ROWS_AT_ONCE = 500


@dataclass(frozen=True)
class _Fingerprint:
    """If this is unchanged, storing the document again is superfluous."""

    sha256: str
    title: str
    url: str
    indexed_with: str = INDEXED_WITH


@dataclass(frozen=True)
class DocumentPlace:
    """The collection and the reference of a document; `url` is what citations link to."""

    collection_id: UUID
    reference: str
    url: str = ""


def ingest(
    tenant: object,
    *,
    collection: str,
    paths: Sequence[Path],
    root: Path | None = None,
    min_level: str = "public",
    title: str = "",
    actor: str = "system",
    progress: Progress | None = None,
) -> IngestReport:
    """Read files and folders into the tenant's collection of that name; `min_level` and `title` are for a new one.

    `root` (default: the working directory) is what references are relative to. `progress` is called with every file's
    report and the number of all files. Opens its own scopes; must not be called inside one that should stay short.
    """
    with tenant_scope(tenant):
        home = open_collection(collection, min_level=min_level, title=title, actor=actor)
    sources = file_discovery.find_files(paths, root=root or Path.cwd())
    reports = []
    for path, reference in sources.files:
        reports.append(_ingest_file(tenant, home.id, path, reference, actor=actor))
        if progress is not None:
            progress(reports[-1], len(sources.files))
    with tenant_scope(tenant):
        refresh_collection(home.id)
    return IngestReport(home.id, tuple(reports), sources.skipped)


def preview_ingest(
    tenant: object,
    *,
    collection: str,
    paths: Sequence[Path],
    root: Path | None = None,
    progress: Progress | None = None,
) -> IngestPreview:
    """Read what `ingest` would read and compare it with the stored documents; writes nothing. Opens its own scopes."""
    with tenant_scope(tenant):
        home = Collection.objects.filter(name=collection).first()
    sources = file_discovery.find_files(paths, root=root or Path.cwd())
    changes: dict[str, Outcome] = {}
    reports = []
    for path, reference in sources.files:
        parsed = parsing.read(path)
        named = _by_reference(parsed, reference)
        known: dict[str, _Fingerprint] = {}
        if home is not None:
            with tenant_scope(tenant):
                known = _fingerprints(home.id, list(named))
        found = {name: _expected_outcome(known.get(name), document) for name, document in named.items()}
        changes.update(found)
        reports.append(FileReport(path, tuple(found.values()), parsed.problems))
        if progress is not None:
            progress(reports[-1], len(sources.files))
    return IngestPreview(home.id if home else None, tuple(reports), sources.skipped, changes)


def open_collection(name: str, *, min_level: str = "public", title: str = "", actor: str = "system") -> Collection:
    """Get or create the collection of that name. Inside a scope. Raises `invalid_name`."""
    if not _NAME.fullmatch(name):
        raise SilasError(ErrorCode.INVALID_NAME)
    row, created = Collection.objects.get_or_create(name=name, defaults={"min_level": min_level, "title": title})
    if created:
        record(AuditEvent.COLLECTION_OPENED, actor=actor, subject=f"collection:{row.id}")
    collection: Collection = row
    return collection


def forget_document(document_id: UUID, *, actor: str = "system") -> None:
    """Delete a document with all its versions; its citations open nothing any more. Inside a scope."""
    document = Document.objects.filter(id=document_id).first()
    if document is None:
        raise NotFound()
    document.delete()
    record(
        AuditEvent.DOCUMENT_FORGOTTEN,
        actor=actor,
        subject=f"document:{document_id}",
        data={"collection": str(document.collection_id)},
    )


def store_parsed(
    tenant: object, collection_id: UUID, parsed: Parsed, *, reference: str, actor: str = "system"
) -> tuple[Outcome, ...]:
    """Store the documents of one file under `reference` (and `#part`); returns the outcome of each."""
    named = _by_reference(parsed, reference)
    with tenant_scope(tenant):
        known = _fingerprints(collection_id, list(named))
    return tuple(
        Outcome.UNCHANGED
        if known.get(name) == _fingerprint(document)
        else _store(tenant, collection_id, name, document, actor=actor)
        for name, document in named.items()
    )


def expected_outcomes(tenant: object, collection_id: UUID, parsed: Parsed, *, reference: str) -> tuple[Outcome, ...]:
    """What `store_parsed` would do now; writes nothing. Opens its own scope."""
    named = _by_reference(parsed, reference)
    with tenant_scope(tenant):
        known = _fingerprints(collection_id, list(named))
    return tuple(_expected_outcome(known.get(name), document) for name, document in named.items())


def retire_document(tenant: object, collection_id: UUID, *, reference: str, actor: str = "system") -> bool:
    """Remove a document from search by a version without text; earlier versions stay, so that citations open.

    False if there is no such document, or it is retired already. Opens its own scopes.
    """
    with tenant_scope(tenant):
        newest = (
            DocumentVersion.objects.filter(document__collection_id=collection_id, document__source_ref=reference)
            .select_related("document")
            .order_by("-number")
            .first()
        )
    if newest is None or not newest.text:
        return False
    place = DocumentPlace(collection_id, reference, newest.document.url)
    revise_document(
        tenant, place, seen=newest.number, title=newest.document.title, text="", on_stored=lambda _: None, actor=actor
    )
    return True


def revise_document(
    tenant: object,
    place: DocumentPlace,
    *,
    seen: int,
    title: str,
    text: str,
    on_stored: Callable[[int], None],
    actor: str = "system",
) -> None:
    """Replace the text of a document whose newest version is `seen` (0: there is none). Opens its own scope.

    An empty text removes the document from search; earlier versions stay. `on_stored` is called with the new version's
    number in the same transaction: an exception of it undoes the change. Raises `SilasError("knowledge_changed")` 409
    if the newest version is another one by now.
    """
    document = ParsedDocument(title=title, text=text, url=place.url)
    pieces = chunks.split(text, title=title) if text else []
    vectors = embedding.embed_all([f"{piece.context}\n{piece.text}" for piece in pieces])
    with tenant_scope(tenant):
        row, _ = _lock_document(place.collection_id, place.reference, document)
        newest = row.versions.defer("text").order_by("-number").first()
        if (newest.number if newest else 0) != seen:
            raise SilasError(
                ErrorCode.KNOWLEDGE_CHANGED,
                gettext("Someone else has changed this document in the meantime."),
                status=409,
            )
        version = _add_version(row, seen + 1, document)
        _index(row, version, document, pieces, vectors)
        data = {"collection": str(place.collection_id), "version": version.number, "chunks": len(pieces)}
        record(AuditEvent.DOCUMENT_STORED, actor=actor, subject=f"document:{row.id}", data=data)
        document_stored(row.id, place.collection_id, actor)
        refresh_collection(place.collection_id)
        on_stored(version.number)


def refresh_collection(collection_id: UUID) -> None:
    """Update a collection's chunk count, its common words with their counts, and its search configurations. In a scope.

    All are hints: outdated ones make a search slower or less sharp, never wrong.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT memory_refresh(%s, %s)", [current_tenant_id(), collection_id])


def _ingest_file(tenant: object, collection_id: UUID, path: Path, reference: str, *, actor: str) -> FileReport:
    parsed = parsing.read(path)
    outcomes = store_parsed(tenant, collection_id, parsed, reference=reference, actor=actor)
    return FileReport(path, outcomes, parsed.problems)


def _by_reference(parsed: Parsed, reference: str) -> dict[str, ParsedDocument]:
    return {f"{reference}#{each.part}" if each.part else reference: each for each in parsed.documents}


def _expected_outcome(known: _Fingerprint | None, document: ParsedDocument) -> Outcome:
    fingerprint = _fingerprint(document)
    if known is None:
        return Outcome.ADDED
    if known.sha256 != fingerprint.sha256:
        return Outcome.UPDATED
    return Outcome.UNCHANGED if known == fingerprint else Outcome.REINDEXED


def _store(tenant: object, collection_id: UUID, reference: str, document: ParsedDocument, *, actor: str) -> Outcome:
    pieces = chunks.split(document.text, title=document.title)
    vectors = embedding.embed_all([f"{piece.context}\n{piece.text}" for piece in pieces])
    with tenant_scope(tenant):
        row, created = _lock_document(collection_id, reference, document)
        version, outcome = _version_for(row, document, created=created)
        if outcome is not Outcome.UNCHANGED:
            _index(row, version, document, pieces, vectors)
            record(
                AuditEvent.DOCUMENT_STORED,
                actor=actor,
                subject=f"document:{row.id}",
                data={"collection": str(collection_id), "version": version.number, "chunks": len(pieces)},
            )
        if outcome in (Outcome.ADDED, Outcome.UPDATED):
            document_stored(row.id, collection_id, actor)
    return outcome


def _lock_document(collection_id: UUID, reference: str, document: ParsedDocument) -> tuple[Document, bool]:
    """Get or create the document's row, locked, so that two ingests of one document run one after the other."""
    rows = Document.objects.select_for_update(of=("self",), no_key=True)
    row, created = rows.get_or_create(
        collection_id=collection_id, source_ref=reference, defaults={"title": document.title, "url": document.url}
    )
    return row, created


def _version_for(row: Document, document: ParsedDocument, *, created: bool) -> tuple[DocumentVersion, Outcome]:
    """The newest version if it has this text, else a new one."""
    newest = None if created else row.versions.defer("text").order_by("-number").first()
    fingerprint = _fingerprint(document)
    if newest is not None and newest.sha256 == fingerprint.sha256:
        same = _Fingerprint(newest.sha256, row.title, row.url, row.indexed_with) == fingerprint
        return newest, Outcome.UNCHANGED if same else Outcome.REINDEXED
    version = _add_version(row, newest.number + 1 if newest else 1, document)
    return version, Outcome.UPDATED if newest else Outcome.ADDED


def _add_version(row: Document, number: int, document: ParsedDocument) -> DocumentVersion:
    version: DocumentVersion = DocumentVersion.objects.create(
        document=row, number=number, sha256=_fingerprint(document).sha256, text=document.text
    )
    return version


def _index(
    row: Document,
    version: DocumentVersion,
    document: ParsedDocument,
    pieces: Sequence[chunks.Piece],
    vectors: Sequence[embedding.Vector | None],
) -> None:
    """Replace the chunks of the previous version by those of this one."""
    Chunk.objects.filter(version__document=row).delete()
    config = search_config(document.text)
    Chunk.objects.bulk_create(
        (
            Chunk(
                collection_id=row.collection_id,
                version=version,
                ordinal=piece.ordinal,
                start=piece.start,
                end=piece.end,
                context=piece.context,
                text=piece.text,
                embedding=vector,
                words=SearchVector(Value(piece.context), weight="A", config=config)
                + SearchVector(Value(piece.text), weight="B", config=config),
            )
            for piece, vector in zip(pieces, vectors, strict=True)
        ),
        batch_size=_ROWS_AT_ONCE,
    )
    Document.objects.filter(id=row.id).update(
        title=document.title, url=document.url, indexed_with=INDEXED_WITH, search_config=config, updated_at=now()
    )


def _fingerprint(document: ParsedDocument) -> _Fingerprint:
    return _Fingerprint(sha256_hex(document.text), document.title, document.url)


def _fingerprints(collection_id: UUID, references: Sequence[str]) -> dict[str, _Fingerprint]:
    """Fingerprints of the known documents, by reference."""
    newest = (
        DocumentVersion.objects.filter(document__collection_id=collection_id, document__source_ref__in=references)
        .order_by("document_id", "-number")
        .distinct("document_id")
        .values_list("document__source_ref", "sha256", "document__title", "document__url", "document__indexed_with")
    )
    return {name: _Fingerprint(*rest) for name, *rest in newest}
