"""What do we know about this question, and what does this citation point at?

Both read inside a tenant scope and see only collections whose level is among the given ones; anything else does not
exist. Turns embed the question first, outside the scope, then `search` in one round trip. Callers: sessions, widgets,
console, the guard's handler.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection as Words
from dataclasses import dataclass
from uuid import UUID

from django.db import connection

from apps.memory import embedding
from apps.memory.models import DocumentVersion
from kernel.errors import NotFound
from kernel.llm.briefing import Passage
from kernel.tenancy import current_tenant_id

# PostgreSQL's text parser is asked for no more than this of a question.
_ASKED = 4000
_AROUND = 1500


@dataclass(frozen=True)
class OpenedPassage:
    """A citation's place in its document version. `before` and `after` are the neighbouring text, at most 1500
    characters; `newest` says whether the document still reads like this."""

    document_id: UUID
    version_id: UUID
    title: str
    url: str
    quote: str
    before: str
    after: str
    newest: bool


async def embed_query(text: str) -> embedding.Vector | None:
    """The question's vector for `search`; None when there is nothing in it to look for."""
    return await asyncio.to_thread(embedding.embed, text)


def search(text: str, *, vector: embedding.Vector | None, levels: Words[str], k: int = 6) -> tuple[Passage, ...]:
    """The `k` best passages, best first (issue: reciprocal rank fusion). `title` names document and section; `score` is
    the cosine similarity, 0 to 1: it says how near a passage is, the order says which is best."""
    if vector is None or not levels:
        return ()
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT * FROM memory_search(%s::uuid, %s::text[], %s, %s::vector, %s)",
            [current_tenant_id(), list(levels), text[:_ASKED].replace("\0", " "), str(vector), k],
        )
        return tuple(
            Passage(str(document), str(version), title, url, start, end, quote, similarity)
            for document, version, title, url, start, end, quote, similarity in cursor
        )


def passage(
    document_id: UUID, *, start: int, end: int, levels: Words[str], version_id: UUID | None = None
) -> OpenedPassage:
    """The bytes `start` to `end` of a version (the newest without `version_id`) and what stands around them.

    Raises `NotFound` for a document out of reach and for offsets that are no whole characters of the text.
    """
    versions = DocumentVersion.objects.filter(document_id=document_id, document__collection__min_level__in=levels)
    wanted = versions.filter(id=version_id) if version_id else versions
    version = wanted.select_related("document").order_by("-number").first()
    if version is None:
        raise NotFound("passage")
    stored = version.text.encode()
    if not 0 <= start < end <= len(stored):
        raise NotFound("passage")
    try:
        before, quote, after = stored[:start].decode(), stored[start:end].decode(), stored[end:].decode()
    except UnicodeDecodeError as error:
        raise NotFound("passage") from error
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
