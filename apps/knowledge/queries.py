"""Search the tenant's knowledge, open citations and read documents.

All reads are inside a tenant scope and see only collections whose level is among the given ones; other documents do not
exist for the caller. Callers: sessions, widgets, console, the guard's handler.
"""

from __future__ import annotations

import re
from collections.abc import Collection as Words
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connection
from django.db.models import OuterRef, Subquery

from apps.guard.schemas import RunRef
from apps.knowledge import provider_vectors, reranking
from apps.knowledge.models import Chunk, Collection, Document, DocumentVersion
from apps.knowledge.provider_vectors import QuestionVector
from kernel.canonical import sha256_hex
from kernel.errors import NotFound
from kernel.tenancy import current_tenant_id, in_thread, tenant_scope
from llm import embedding
from llm.briefing import Passage
from llm.glossary import search_words
from llm.language_detection import detect_language

# PostgreSQL's text parser is asked for no more than this of a question.
MAX_QUESTION_LENGTH = 4000
# How many candidates are read for each passage that is wanted; some are near-duplicates of better ones.
_FETCHED_PER_PASSAGE = 3
_DUPLICATE_SHARE = 0.9
# As in `memory_search`.
_RANK_OFFSET, _WORDS_SHARE = 10, 0.3
_WORD = re.compile(r"\w+")
_AROUND = 1500
# In bytes: more than this between two passages is text that was not found, not the blank lines between paragraphs.
_LONGEST_GAP = 16
_PLACE = re.compile(r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}):(\d{1,9})-(\d{1,9})")


@dataclass(frozen=True)
class OpenedPassage:
    """A cited passage in its document version.

    `before` and `after` are the neighbouring text, at most 1500 characters; `newest` says whether the document still
    has this version.
    """

    document_id: UUID
    version_id: UUID
    title: str
    url: str
    quote: str
    before: str
    after: str
    newest: bool


async def search_async(
    tenant_id: UUID,
    text: str,
    *,
    levels: Words[str],
    k: int = 6,
    run: RunRef | None = None,
    ask_providers: bool = True,
) -> tuple[Passage, ...]:
    """`search` for async callers, with everything that the company's settings add; outside of any scope.

    `run` pays for what a provider is asked (`provider_vectors.embed_question`). Without `ask_providers` neither the
    question nor a passage leaves the installation.
    """
    plan = await provider_vectors.load_plan(tenant_id) if ask_providers else None
    by_provider = await provider_vectors.embed_question(tenant_id, plan, text, run=run)
    most = reranking.candidates(plan, k)
    found = await in_thread(_search_in_scope, tenant_id, text, levels, most, by_provider)
    return await reranking.rerank(tenant_id, plan, text, found, k=k, run=run)


def _search_in_scope(
    tenant_id: UUID, text: str, levels: Words[str], k: int, by_provider: Sequence[QuestionVector]
) -> tuple[Passage, ...]:
    vector = embedding.embed(search_text(text))
    with tenant_scope(tenant_id):
        return search(text, vector=vector, levels=levels, k=k, by_provider=by_provider)


def search_text(question: str) -> str:
    """What is searched for and to be embedded: the question, and behind one in another language its English words."""
    words = search_words(question, detect_language([question]))
    return f"{question}\n{words}" if words else question


def search(
    text: str,
    *,
    vector: embedding.Vector | None,
    levels: Words[str],
    k: int = 6,
    by_provider: Sequence[QuestionVector] = (),
) -> tuple[Passage, ...]:
    """The `k` best passages, best first: rank by vectors and rank by words (BM25) fused, near-duplicates left out, and
    the passage that is best by words always among them.

    `vector` is the built-in one of `search_text(text)`; `by_provider` takes its place for passages that have a
    provider's vector. `title` names document and section; `score` is the cosine similarity of the built-in vectors, 0
    to 1: it says how near a passage is, the order says which is best.
    """
    if vector is None or not levels or k < 1:
        return ()
    asked = search_text(text)[:MAX_QUESTION_LENGTH].replace("\0", " ")
    fetched = k * _FETCHED_PER_PASSAGE
    fetched = max(fetched, provider_vectors.NEAREST) if by_provider else fetched
    values: list[Any] = [current_tenant_id(), list(levels), asked, str(vector), fetched]
    with connection.cursor() as cursor:
        cursor.execute("SELECT * FROM memory_search(%s::uuid, %s::text[], %s, %s::vector, %s)", values)
        rows = [_Found(*row) for row in cursor.fetchall()]
    if by_provider:
        rows = _fuse(rows, by_provider, levels=list(levels), vector=vector)
    kept = list(islice(_distinct(rows), k))
    by_words = next((row for row in rows if row.word_rank == 1), None)
    if by_words is not None and by_words not in kept and k > 1:
        with_it = list(_distinct([*kept[:-1], by_words]))
        kept = with_it if len(with_it) == len(kept) else kept
    return tuple(Passage(str(row[0]), str(row[1]), *row[2:8]) for row in kept)


class _Found(NamedTuple):
    """A row of `memory_search`: a passage, its chunk, and its ranks by words and by the built-in vectors."""

    document_id: UUID
    version_id: UUID
    title: str
    url: str
    start: int
    end: int
    quote: str
    similarity: float
    word_rank: int | None
    chunk_id: UUID
    vector_rank: int | None


def _fuse(
    rows: Sequence[_Found], by_provider: Sequence[QuestionVector], *, levels: list[str], vector: embedding.Vector
) -> list[_Found]:
    """Fuse by rank as `memory_search` does. The weight of built-in ranks goes to those of providers' vectors where a
    passage has one."""
    also = [row.chunk_id for row in rows]
    found = {row.chunk_id: row for row in rows}
    ranks: list[dict[UUID, int]] = []
    for asked in by_provider:
        near = [_Found(*row) for row in provider_vectors.nearest(asked, levels=levels, builtin=vector, also=also)]
        ranks.append({row.chunk_id: row.vector_rank or 0 for row in near})
        found = {row.chunk_id: row._replace(vector_rank=None) for row in near} | found

    def score(row: _Found) -> float:
        left, total = 1.0, _by_rank(row.word_rank) * _WORDS_SHARE
        for asked, ranked in zip(by_provider, ranks, strict=True):
            if row.chunk_id in ranked:
                total += asked.weight * _by_rank(ranked[row.chunk_id])
                left -= asked.weight
        return total + max(left, 0.0) * _by_rank(row.vector_rank)

    return sorted(found.values(), key=lambda row: (-score(row), row.chunk_id))


def _by_rank(rank: int | None) -> float:
    return 1 / (_RANK_OFFSET + rank) if rank else 0.0


def join_neighbours(passages: Sequence[Passage]) -> tuple[Passage, ...]:
    """Join passages that follow each other in one section of a document version, so that a model reads them as one.

    A joined passage stands where the best of its parts stood and has its score; its quote is the stored text from the
    first start to the last end, so that citations stay exact. In a scope.
    """
    joined: dict[int, Passage] = {}
    last: tuple[int, Passage] | None = None
    for rank, passage in sorted(enumerate(passages), key=lambda each: (each[1].version_id, each[1].start)):
        gap = _gap_between(last[1], passage) if last else None
        if last is None or gap is None:
            last = (rank, passage)
        else:
            before = last[1]
            del joined[last[0]]
            quote, score = before.quote + gap + passage.quote, max(before.score, passage.score)
            last = (min(last[0], rank), replace(before, end=passage.end, quote=quote, score=score))
        joined[last[0]] = last[1]
    return tuple(joined[rank] for rank in sorted(joined))


def _gap_between(before: Passage, after: Passage) -> str | None:
    """The blank text between two passages of one section, or None where they are not neighbours."""
    length = after.start - before.end
    if (before.version_id, before.title) != (after.version_id, after.title) or not 0 <= length <= _LONGEST_GAP:
        return None
    if not length:
        return ""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT substring(convert_to(text, 'UTF8') FROM %s FOR %s)"
            " FROM memory_documentversion WHERE tenant_id = %s AND id = %s",
            [before.end + 1, length, current_tenant_id(), before.version_id],
        )
        row = cursor.fetchone()
    gap = bytes(row[0]).decode("utf-8", "replace") if row else "-"
    return None if gap.strip() else gap


def _distinct(rows: Iterable[_Found]) -> Iterator[_Found]:
    """Leave out rows whose quote has nearly the words of an earlier one."""
    seen: list[frozenset[str]] = []
    for row in rows:
        words = frozenset(_WORD.findall(row.quote.lower()))
        if not any(_are_duplicates(words, other) for other in seen):
            seen.append(words)
            yield row


def _are_duplicates(words: frozenset[str], others: frozenset[str]) -> bool:
    """Whether two texts have nearly the same words: nine of ten that occur in either."""
    return len(words & others) >= _DUPLICATE_SHARE * len(words | others)


def read_quotes(places: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Resolve "version:start-end" places to (title, text); deleted documents are left out.

    For staff: access levels are not checked.
    """
    matches = {place: match for place in places if (match := _PLACE.fullmatch(place))}
    stored = read_versions({match[1] for match in matches.values()})
    quotes = {}
    for place, match in matches.items():
        if match[1] in stored:
            title, text = stored[match[1]]
            quotes[place] = (title, text.encode()[int(match[2]) : int(match[3])].decode("utf-8", "replace"))
    return quotes


def read_versions(version_ids: Words[str]) -> dict[str, tuple[str, str]]:
    """The title and the whole text of document versions, by id. In a scope; access levels are not checked."""
    rows = DocumentVersion.objects.filter(id__in=version_ids).select_related("document")
    return {str(row.id): (row.document.title, row.text) for row in rows}


def open_passage(
    document_id: UUID, *, start: int, end: int, levels: Words[str], version_id: UUID | None = None
) -> OpenedPassage:
    """The bytes `start` to `end` of a version (the newest without `version_id`) and the text around them.

    Raises `NotFound` for a document out of reach and for offsets that split a character.
    """
    versions = DocumentVersion.objects.filter(document_id=document_id, document__collection__min_level__in=levels)
    rows = versions.filter(id=version_id) if version_id else versions
    version = rows.select_related("document").order_by("-number").first()
    if version is None:
        raise NotFound()
    stored = version.text.encode()
    if not 0 <= start < end <= len(stored):
        raise NotFound()
    try:
        before, quote, after = stored[:start].decode(), stored[start:end].decode(), stored[end:].decode()
    except UnicodeDecodeError as error:
        raise NotFound() from error
    return OpenedPassage(
        document_id=version.document_id,
        version_id=version.id,
        title=version.document.title,
        url=version.document.url,
        quote=quote,
        before=before[-_AROUND:],
        after=after[:_AROUND],
        newest=not versions.filter(number__gt=version.number).exists(),
    )


@dataclass(frozen=True)
class DocumentText:
    """A document's newest text. `version` is its number."""

    collection_id: UUID
    collection: str
    level: str
    reference: str
    title: str
    url: str
    version: int
    text: str


def list_documents(*, levels: Words[str] | None = None) -> list[dict[str, object]]:
    """List the documents of the collections that these levels reach (None: of all), without their texts. In a scope.

    Each has `collection`, `document`, `title` and `version`. Emptied documents are left out.
    """
    newest = DocumentVersion.objects.filter(document=OuterRef("pk")).order_by("-number")
    rows = Document.objects.annotate(
        version=Subquery(newest.values("number")[:1]), digest=Subquery(newest.values("sha256")[:1])
    )
    rows = rows.exclude(version=None).exclude(digest=sha256_hex(""))
    rows = rows if levels is None else rows.filter(collection__min_level__in=list(levels))
    documents = rows.order_by("collection__name", "source_ref").values_list(
        "collection__name", "source_ref", "title", "version"
    )
    return [dict(zip(("collection", "document", "title", "version"), row, strict=True)) for row in documents]


def content_digest() -> tuple[int, str]:
    """The number of documents, and a hash that changes with any of their newest texts. Inside a scope."""
    newest = DocumentVersion.objects.filter(document=OuterRef("pk")).order_by("-number")
    rows = Document.objects.annotate(digest=Subquery(newest.values("sha256")[:1])).exclude(digest=None)
    found = [
        [str(pk), digest]
        for pk, digest in rows.exclude(digest=sha256_hex("")).order_by("pk").values_list("pk", "digest")
    ]
    return len(found), sha256_hex(found)


def read_document(collection: str, reference: str) -> DocumentText | None:
    """The newest text of a document, or None. In a scope."""
    rows = DocumentVersion.objects.select_related("document__collection").order_by("-number")
    return _as_text(rows.filter(document__collection__name=collection, document__source_ref=reference).first())


def read_within_reach(document_id: UUID, *, levels: Words[str]) -> DocumentText | None:
    """The newest text of a document that these levels reach, or None; of an emptied one None as well. In a scope."""
    rows = DocumentVersion.objects.select_related("document__collection").order_by("-number")
    newest = rows.filter(document_id=document_id, document__collection__min_level__in=list(levels)).first()
    return _as_text(newest if newest is not None and newest.text.strip() else None)


def _as_text(newest: DocumentVersion | None) -> DocumentText | None:
    if newest is None:
        return None
    document = newest.document
    home = document.collection
    return DocumentText(
        home.pk,
        home.name,
        home.min_level,
        document.source_ref,
        document.title,
        document.url,
        newest.number,
        newest.text,
    )


def can_find(levels: Words[str]) -> bool:
    """Whether a search at these levels can find anything. In a scope."""
    return bool(Chunk.objects.filter(collection__min_level__in=list(levels)).exists())


def version_text(collection: str, reference: str, number: int) -> str | None:
    """The text of one version of a document, or None. In a scope."""
    versions = DocumentVersion.objects.filter(document__collection__name=collection, document__source_ref=reference)
    text: str | None = versions.filter(number=number).values_list("text", flat=True).first()
    return text


def collection_id(name: str) -> UUID | None:
    """The id of the collection of that name, or None. In a scope."""
    pk: UUID | None = Collection.objects.filter(name=name).values_list("pk", flat=True).first()
    return pk
