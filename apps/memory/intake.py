"""How does what an owner hands in at the console come into the knowledge?

Handing in writes a row; a web process reads it a moment later, because no worker may write knowledge (docs/adr/0053).
A row is claimed before it is read, and what a dead process left is claimed anew. Reading happens outside of any
transaction, in the sandbox (`reading`); every document is stored by `services.store_parsed`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import PurePosixPath
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection
from django.db.models import F
from django.db.models.functions import Now

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.bus.enums import SetAside
from apps.bus.signals import set_aside
from apps.memory import parsing, reading, website
from apps.memory.enums import IntakeKind, IntakeState
from apps.memory.models import Collection, Document, DocumentVersion, Intake
from apps.memory.parsing import Parsed, ParsedDocument, Problem, ProblemCode
from apps.memory.services import INDEXED_WITH, refresh_collection, store_parsed
from kernel.errors import NotFound, SilasError
from kernel.outside import LONGEST, host_of, is_outside_url
from kernel.tenancy import over_each, tenant_scope
from kernel.unseen import storable
from kernel.visiting import SCHEMES

LARGEST_UPLOAD = 10_000_000
LONGEST_TEXT = 200_000
MOST_WAITING = 50
KINDS = tuple(sorted(parsing.SUFFIXES - {".jsonl", ".ndjson"}))
_CLAIM_SECONDS = 120
_TRIES = 3
_KEPT_PROBLEMS = 20
_UNWRITABLE = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True)
class _Piece:
    """A part of what was handed in, under the reference that its document has."""

    reference: str
    parsed: Parsed
    url: str = ""
    total: int = 1


def hand_in_text(collection_id: UUID, *, title: str, text: str, once: UUID, actor: str) -> Intake:
    """Inside a scope, as all that hand in. Raises `SilasError` 422: nothing_in_it, too_large."""
    title, text = storable(" ".join(title.split()))[:200], storable(text)
    if not title or not text.strip():
        raise SilasError("nothing_in_it", "Give the text a title, and write something below it.", status=422)
    if len(text) > LONGEST_TEXT:
        raise SilasError("too_large", f"A text has at most {LONGEST_TEXT:,} characters.", status=422)
    return _handed_in(
        collection_id,
        IntakeKind.TEXT,
        name=title,
        reference=f"text/{title}",
        content=text.encode(),
        once=once,
        actor=actor,
    )


def hand_in_file(collection_id: UUID, *, name: str, data: bytes, once: UUID, actor: str) -> Intake:
    """`name` is what a browser called it: only its last part counts, and its ending only says how it is to be read.
    Raises `SilasError` 422: unsupported_type, nothing_in_it, too_large."""
    plain = storable(_UNWRITABLE.sub("", PurePosixPath(name.replace("\\", "/")).name))[-200:].strip()
    if PurePosixPath(plain).suffix.lower() not in KINDS:
        raise SilasError("unsupported_type", f"{plain or 'This file'} is none of {', '.join(KINDS)}.", status=422)
    if not data.strip():
        raise SilasError("nothing_in_it", f"{plain} is empty.", status=422)
    if len(data) > LARGEST_UPLOAD:
        raise SilasError("too_large", f"{plain} is larger than {LARGEST_UPLOAD // 1_000_000} MB.", status=422)
    return _handed_in(
        collection_id, IntakeKind.FILE, name=plain, reference=f"upload/{plain}", content=data, once=once, actor=actor
    )


def hand_in_website(collection_id: UUID, *, address: str, once: UUID, actor: str) -> Intake:
    """`address` may lack its scheme. Raises `SilasError("website_address")` 422."""
    url = website_address(address)
    return _handed_in(collection_id, IntakeKind.WEBSITE, name=url[:300], reference=url, once=once, actor=actor)


def read_again(document_id: UUID, *, once: UUID, actor: str) -> Intake:
    """A page is fetched anew; of anything else the text that is kept is cut and embedded anew. Raises `NotFound`."""
    row: Document | None = Document.objects.filter(pk=document_id).first()
    if row is None:
        raise NotFound("document")
    is_page = bool(host_of(row.source_ref, schemes=SCHEMES))
    kind = IntakeKind.PAGE if is_page else IntakeKind.AGAIN
    told = {"name": row.title[:300], "reference": row.source_ref, "document_id": row.pk}
    return _handed_in(row.collection_id, kind, once=once, actor=actor, **told)


def website_address(text: str) -> str:
    """The whole address of what somebody typed. Raises `SilasError("website_address")` 422."""
    url = text.strip()
    url = url if "://" in url else f"https://{url}"
    outside = host_of(url, schemes=SCHEMES) if settings.WEBSITES_PRIVATE else is_outside_url(url, schemes=SCHEMES)
    if not outside or len(url) > LONGEST:
        raise SilasError("website_address", "Give the address of a public website, such as example.com.", status=422)
    return url


def _handed_in(collection_id: UUID, kind: IntakeKind, *, once: UUID, actor: str, **fields: Any) -> Intake:
    if not Collection.objects.filter(pk=collection_id).exists():
        raise NotFound("collection")
    if Intake.objects.filter(state__in=(IntakeState.WAITING, IntakeState.RUNNING)).count() >= MOST_WAITING:
        raise SilasError("knowledge_busy", f"{MOST_WAITING} things wait to be read. Let some of them end first.")
    row, is_new = Intake.objects.get_or_create(
        once=once, defaults={"collection_id": collection_id, "kind": kind, "by": actor, **fields}
    )
    if is_new:
        data = {"kind": str(kind), "collection": str(collection_id)}
        record(AuditEvent.KNOWLEDGE_HANDED_IN, actor=actor, subject=f"intake:{row.pk}", data=data)
    handed_in: Intake = row
    return handed_in


def work_off() -> int:
    """Read everything that waits, of every tenant; how many were read. In a web process, outside of any scope."""
    try:
        return over_each(_waiting_tenants(), read_next)
    finally:
        connection.close()


def _waiting_tenants() -> list[UUID]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT memory_waiting_tenants()")
        return [tenant_id for (tenant_id,) in cursor.fetchall()]


def read_next(tenant_id: UUID) -> int:
    """One thing of this tenant, outside of any scope; how many there were. A large site keeps no other tenant waiting
    for more than itself."""
    with tenant_scope(tenant_id):
        row = _claimed()
    if row is None:
        return 0
    try:
        _read(tenant_id, row)
    except Exception as error:
        with tenant_scope(tenant_id):
            _end(row, IntakeState.FAILED, [["", f"Something went wrong on our side ({type(error).__name__})."]])
        raise
    return 1


def _claimed() -> Intake | None:
    """The oldest that is due, ours for a while. One that was claimed too often killed its readers, and ends."""
    due = Intake.objects.filter(state__in=(IntakeState.WAITING, IntakeState.RUNNING), due_at__lte=Now())
    found = due.order_by("due_at").select_for_update(of=("self",), skip_locked=True, no_key=True).first()
    if found is None:
        return None
    row: Intake = found
    if row.attempts >= _TRIES:
        _end(row, IntakeState.FAILED, [["", "Reading it broke off several times."]])
        return None
    until = Now() + timedelta(seconds=_CLAIM_SECONDS)
    Intake.objects.filter(pk=row.pk).update(state=IntakeState.RUNNING, attempts=F("attempts") + 1, due_at=until)
    return row


def _read(tenant_id: UUID, row: Intake) -> None:
    stored = 0
    problems: list[list[str]] = []
    for done, piece in enumerate(_pieces(tenant_id, row), start=1):
        stored += len(store_parsed(tenant_id, row.collection_id, piece.parsed, reference=piece.reference, actor=row.by))
        problems += [[piece.url, problem.message] for problem in piece.parsed.problems]
        with tenant_scope(tenant_id):
            _progress(row, done=done, total=max(piece.total, done), stored=stored)
    with tenant_scope(tenant_id):
        refresh_collection(row.collection_id)
        _end(row, IntakeState.DONE if stored else IntakeState.FAILED, problems)


def _pieces(tenant_id: UUID, row: Intake) -> Iterator[_Piece]:
    match row.kind:
        case IntakeKind.FILE:
            yield _Piece(row.reference, reading.read_file(bytes(row.content or b""), row.name))
        case IntakeKind.TEXT:
            yield _Piece(row.reference, _as_document(row.name, bytes(row.content or b"").decode()))
        case IntakeKind.AGAIN:
            with tenant_scope(tenant_id):
                parsed = _kept_text(row)
            yield _Piece(row.reference.partition("#")[0], parsed)
        case _:
            most = 1 if row.kind == IntakeKind.PAGE else website.PAGES
            for page in website.pages_of(row.reference, most=most):
                yield _Piece(page.url, _at(page), page.url, page.total)


def _at(page: website.Page) -> Parsed:
    """A page's document, with where it stands: citations lead there."""
    documents = tuple(ParsedDocument(each.title, each.text, page.url) for each in page.parsed.documents)
    return Parsed(documents, page.parsed.problems)


def _as_document(title: str, text: str) -> Parsed:
    return Parsed((ParsedDocument(title, text),))


def _kept_text(row: Intake) -> Parsed:
    newest = DocumentVersion.objects.filter(document_id=row.document_id).select_related("document").order_by("-number")
    version: DocumentVersion | None = newest.first()
    if version is None:
        return Parsed(problems=(Problem(ProblemCode.MISSING, "The document was deleted meanwhile."),))
    # Whatever it was cut with before, it is cut anew.
    Document.objects.filter(pk=version.document_id, indexed_with=INDEXED_WITH).update(indexed_with="")
    document = version.document
    part = row.reference.partition("#")[2]
    return Parsed((ParsedDocument(document.title, version.text, document.url, part),))


def _progress(row: Intake, *, done: int, total: int, stored: int) -> None:
    until = Now() + timedelta(seconds=_CLAIM_SECONDS)
    Intake.objects.filter(pk=row.pk).update(done=done, total=total, stored=stored, due_at=until)


def _end(row: Intake, state: IntakeState, problems: list[list[str]]) -> None:
    """The bytes are not kept: what was read of them stands in the document."""
    kept = problems[:_KEPT_PROBLEMS]
    Intake.objects.filter(pk=row.pk).update(state=state, problems=kept, content=None, ended_at=Now())
    data = {"status": str(state), "problems": len(problems)}
    record(AuditEvent.KNOWLEDGE_READ, actor=row.by, subject=f"intake:{row.pk}", data=data)
    if state == IntakeState.FAILED:
        set_aside(SetAside.DOCUMENT, row.by)
