"""Read submitted files and websites in a worker without the signing key, because their bytes are untrusted.

Handler of `Kind.DOCUMENT_INTAKE`, on the queue `parse`. Parsers run in the sandbox (`sandboxed_parsing`); websites are
fetched here, other sources by `source_reading`. This worker may write no document: it adds each parsed part as a row
and enqueues a message for the trusted worker, which validates and stores it (`intake_indexing`). Reading again after a
crash leaves parts that were handed over as they are. The message's scope is the intake.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass
from uuid import UUID

from apps.bus.deliveries import Delivery
from apps.bus.enums import Kind
from apps.bus.models import QueueMessage
from apps.bus.services import enqueue
from apps.knowledge import crawler, sandboxed_parsing, source_reading
from apps.knowledge.enums import IntakeKind
from apps.knowledge.models import Intake, ReadPart
from apps.knowledge.parsing import Parsed, Problem, ProblemCode
from apps.knowledge.schemas import SourceRequest
from apps.knowledge.source_reading import ReadEntry, SourceEnd
from kernel.canonical import sha256_hex
from kernel.stored_texts import stored_text
from kernel.tenancy import in_scope


@dataclass(frozen=True)
class _Part:
    """A page, or a whole file, whose `url` is empty; `total` is the number of known parts. `url` is the reference of an
    entry of a source, and `version` how the source marks it."""

    parsed: Parsed
    url: str = ""
    total: int = 1
    version: str = ""


async def read_intake(delivery: Delivery) -> None:
    """Store every part that can be read, then enqueue the end."""
    intake_id = UUID(delivery.message.subject)
    row = await in_scope(delivery.tenant_id, _open_intake, intake_id)
    if row is None:
        return
    if row.kind == IntakeKind.SOURCE:
        await delivery.commit(_enqueue_source_end, intake_id, await _read_source(delivery, intake_id, row))
        return
    parts = _parts(row)
    while (part := await asyncio.to_thread(next, parts, None)) is not None:
        await in_scope(delivery.tenant_id, _store_part, intake_id, part)
    await delivery.commit(_enqueue_end, intake_id)


def give_up(message: QueueMessage) -> bool:
    """Have the trusted worker end the intake of a dead message, which notifies the submitter."""
    intake_id = UUID(message.subject)
    if _open_intake(intake_id) is None:
        return False
    _enqueue_end(intake_id, broken_off=True)
    return True


def _open_intake(intake_id: UUID) -> Intake | None:
    """The columns that this worker's role may read; None once the intake has ended."""
    rows = Intake.objects.filter(pk=intake_id, ended_at=None).order_by()
    row: Intake | None = rows.only("kind", "name", "reference", "content").first()
    return row


def _parts(row: Intake) -> Iterator[_Part]:
    if row.kind == IntakeKind.FILE:
        yield _Part(sandboxed_parsing.read_file(bytes(row.content or b""), row.name))
        return
    known: list[str] = json.loads(bytes(row.content)) if row.content else []
    most = 1 if row.kind == IntakeKind.PAGE else crawler.SOURCE_PAGES if known else crawler.PAGES
    for page in crawler.crawl(row.reference, most=most, known_pages=known):
        yield _Part(page.parsed, page.url, page.total)


async def _read_source(delivery: Delivery, intake_id: UUID, row: Intake) -> SourceEnd:
    def store(entry: ReadEntry) -> None:
        _store_part(intake_id, _Part(entry.parsed, entry.reference, entry.total, entry.version))

    request = SourceRequest.model_validate_json(bytes(row.content or b""))
    return await source_reading.read_source(delivery, intake_id, request, home=row.reference, store=store)


def _store_part(intake_id: UUID, part: _Part) -> None:
    """Store it for the trusted worker, unless the intake has ended meanwhile."""
    if not Intake.objects.filter(pk=intake_id, ended_at=None).exists():
        return
    content = sandboxed_parsing.dump_parsed(part.parsed)
    if len(content) > ReadPart.LONGEST:
        content = sandboxed_parsing.dump_parsed(
            Parsed(problems=(Problem(ProblemCode.TOO_LARGE, stored_text("The document contains too much text.")),))
        )
    row = ReadPart(intake_id=intake_id, url=part.url, total=part.total, found=content)
    # A part that was stored before a crash stays; this worker's role may insert parts and not read them.
    ReadPart.objects.bulk_create([row], ignore_conflicts=True)
    payload = {"part": str(row.pk), "version": part.version}
    message_id = f"{intake_id}:{sha256_hex(part.url)[:32]}"
    enqueue(Kind.DOCUMENT_INDEX, scope_id=intake_id, payload=payload, message_id=message_id)


def _enqueue_end(intake_id: UUID, *, broken_off: bool = False) -> None:
    payload = {"ends": True, "broken_off": broken_off}
    enqueue(Kind.DOCUMENT_INDEX, scope_id=intake_id, payload=payload, message_id=f"{intake_id}:end")


def _enqueue_source_end(intake_id: UUID, end: SourceEnd) -> None:
    payload = {
        "ends": True,
        "broken_off": bool(end.error),
        "unchanged": end.unchanged,
        "error": end.error[:500],
        "more": end.more,
    }
    enqueue(Kind.DOCUMENT_INDEX, scope_id=intake_id, payload=payload, message_id=f"{intake_id}:end")
