"""Submit files, texts, websites and runs of other sources to the knowledge (ADR 109).

A submission writes a row and enqueues one message. Files and websites are read by the worker without the signing key
(`intake_reading`), and the trusted worker stores the result (`intake_indexing`). Typed texts, and texts that are stored
already, need no reading and go to the trusted worker directly.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import PurePosixPath
from uuid import UUID

from django.conf import settings

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.bus.enums import Kind
from apps.bus.services import enqueue
from apps.knowledge import parsing
from apps.knowledge.enums import IntakeKind, IntakeState
from apps.knowledge.models import Collection, Document, Intake
from apps.knowledge.schemas import SourceRequest
from kernel.error_codes import ErrorCode
from kernel.errors import NotFound, SilasError
from kernel.http.addresses import MAX_URL_LENGTH, host_of, is_public_url
from kernel.http.fetch import SCHEMES
from kernel.language import gettext
from kernel.unicode_safety import replace_unstorable

MAX_UPLOAD_BYTES = 10_000_000
MAX_TEXT_LENGTH = 200_000
MAX_WAITING = 50
KINDS = tuple(sorted(parsing.SUFFIXES - {".jsonl", ".ndjson"}))
_NEEDS_NO_READING = (IntakeKind.TEXT, IntakeKind.AGAIN)
_UNWRITABLE = re.compile(r"[\x00-\x1f\x7f]")


def submit_text(collection_id: UUID, *, title: str, text: str, once: UUID, actor: str, reference: str = "") -> Intake:
    """Submit a typed text, known by its title unless `reference` says otherwise. All submissions run inside a scope.

    Raises `SilasError` 422: nothing_in_it, too_large.
    """
    title, text = replace_unstorable(" ".join(title.split()))[:200], replace_unstorable(text)
    if not title or not text.strip():
        raise SilasError(ErrorCode.NOTHING_IN_IT, gettext("Add a title and a text."))
    if len(text) > MAX_TEXT_LENGTH:
        raise SilasError(
            ErrorCode.TOO_LARGE,
            gettext("A text has at most {max_text_length:,} characters.").format(max_text_length=MAX_TEXT_LENGTH),
            status=422,
        )
    return _create_intake(
        collection_id,
        IntakeKind.TEXT,
        name=title,
        reference=reference or f"text/{title}",
        content=text.encode(),
        once=once,
        actor=actor,
    )


def submit_file(collection_id: UUID, *, name: str, data: bytes, once: UUID, actor: str) -> Intake:
    """Submit an uploaded file. Only the last part of `name` is used, and its suffix only chooses the parser.

    Raises `SilasError` 422: unsupported_type, nothing_in_it, too_large.
    """
    plain = replace_unstorable(_UNWRITABLE.sub("", PurePosixPath(name.replace("\\", "/")).name))[-200:].strip()
    if PurePosixPath(plain).suffix.lower() not in KINDS:
        raise SilasError(
            ErrorCode.UNSUPPORTED_TYPE,
            gettext("{value} is not supported. Upload one of {listed}.").format(
                value=plain or "This file", listed=", ".join(KINDS)
            ),
        )
    if not data.strip():
        raise SilasError(ErrorCode.NOTHING_IN_IT, gettext("{plain} is empty.").format(plain=plain))
    if len(data) > MAX_UPLOAD_BYTES:
        raise SilasError(
            ErrorCode.TOO_LARGE,
            gettext("{plain} is larger than {value} MB.").format(plain=plain, value=MAX_UPLOAD_BYTES // 1_000_000),
            status=422,
        )
    return _create_intake(
        collection_id, IntakeKind.FILE, name=plain, reference=f"upload/{plain}", content=data, once=once, actor=actor
    )


def submit_website(
    collection_id: UUID, *, address: str, once: UUID, actor: str, known_pages: Sequence[str] = ()
) -> Intake:
    """Submit a website; `address` may lack its scheme. `known_pages` are visited whether the site still links to them
    or not. Raises `SilasError("website_address")` 422."""
    url = parse_website_address(address)
    content = json.dumps(list(known_pages)).encode() if known_pages else None
    return _create_intake(
        collection_id, IntakeKind.WEBSITE, name=url[:300], reference=url, content=content, once=once, actor=actor
    )


def submit_source(
    collection_id: UUID, *, request: SourceRequest, name: str, home: str, once: UUID, actor: str
) -> Intake:
    """Submit a run of a source with entries, whose references begin with `home`."""
    content = request.model_dump_json().encode()
    return _create_intake(
        collection_id, IntakeKind.SOURCE, name=name[:300], reference=home, content=content, once=once, actor=actor
    )


def refresh_document(document_id: UUID, *, once: UUID, actor: str) -> Intake:
    """Fetch a web page again; split and embed the stored text of any other document again. Raises `NotFound`."""
    row: Document | None = Document.objects.filter(pk=document_id).first()
    if row is None:
        raise NotFound()
    is_page = bool(host_of(row.source_ref, schemes=SCHEMES))
    kind = IntakeKind.PAGE if is_page else IntakeKind.AGAIN
    fields = {"name": row.title[:300], "reference": row.source_ref, "document_id": row.pk}
    return _create_intake(row.collection_id, kind, once=once, actor=actor, **fields)


def parse_website_address(text: str) -> str:
    """Complete a typed address to a URL. Raises `SilasError("website_address")` 422."""
    url = text.strip()
    url = url if "://" in url else f"https://{url}"
    outside = host_of(url, schemes=SCHEMES) if settings.WEBSITES_PRIVATE else is_public_url(url, schemes=SCHEMES)
    if not outside or len(url) > MAX_URL_LENGTH:
        raise SilasError(ErrorCode.WEBSITE_ADDRESS)
    return url


def _create_intake(collection_id: UUID, kind: IntakeKind, *, once: UUID, actor: str, **fields: object) -> Intake:
    if not Collection.objects.filter(pk=collection_id).exists():
        raise NotFound()
    if Intake.objects.filter(state__in=(IntakeState.WAITING, IntakeState.RUNNING)).count() >= MAX_WAITING:
        raise SilasError(
            ErrorCode.KNOWLEDGE_BUSY,
            gettext("{max_waiting} items are waiting to be read. Try again when some of them are done.").format(
                max_waiting=MAX_WAITING
            ),
        )
    row, is_new = Intake.objects.get_or_create(
        once=once, defaults={"collection_id": collection_id, "kind": kind, "by": actor, **fields}
    )
    if is_new:
        data = {"kind": str(kind), "collection": str(collection_id)}
        record(AuditEvent.KNOWLEDGE_HANDED_IN, actor=actor, subject=f"intake:{row.pk}", data=data)
        enqueue(Kind.DOCUMENT_INDEX if kind in _NEEDS_NO_READING else Kind.DOCUMENT_INTAKE, scope_id=row.pk)
    handed_in: Intake = row
    return handed_in
