"""Read submitted files and websites in a worker without the signing key, because their bytes are untrusted.

Handler of `Kind.DOCUMENT_INTAKE`, on the queue `parse`. Parsers run in the sandbox (`sandboxed_parsing`); websites are
fetched here. This worker may write no document: it adds each parsed part as a row and enqueues a message for the
trusted worker, which validates and stores it (`intake_indexing`). Reading again after a crash leaves parts that were
handed over as they are. The message's scope is the intake.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from uuid import UUID

from apps.bus.deliveries import Delivery
from apps.bus.enums import Kind
from apps.bus.models import QueueMessage
from apps.bus.services import enqueue
from apps.knowledge import crawler, sandboxed_parsing
from apps.knowledge.enums import IntakeKind
from apps.knowledge.models import Intake, ReadPart
from apps.knowledge.parsing import Parsed, Problem, ProblemCode
from kernel.canonical import sha256_hex
from kernel.stored_texts import stored_text
from kernel.tenancy import in_scope


@dataclass(frozen=True)
class _Part:
    """A page, or a whole file, whose `url` is empty; `total` is the number of known parts."""

    parsed: Parsed
    url: str = ""
    total: int = 1


async def read_intake(delivery: Delivery) -> None:
    """Store every part that can be read, then enqueue the end."""
    intake_id = UUID(delivery.message.subject)
    row = await in_scope(delivery.tenant_id, _open_intake, intake_id)
    if row is None:
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
    most = 1 if row.kind == IntakeKind.PAGE else crawler.PAGES
    for page in crawler.crawl(row.reference, most=most):
        yield _Part(page.parsed, page.url, page.total)


def _store_part(intake_id: UUID, part: _Part) -> None:
    content = sandboxed_parsing.dump_parsed(part.parsed)
    if len(content) > ReadPart.LONGEST:
        content = sandboxed_parsing.dump_parsed(
            Parsed(problems=(Problem(ProblemCode.TOO_LARGE, stored_text("The document contains too much text.")),))
        )
    row = ReadPart(intake_id=intake_id, url=part.url, total=part.total, found=content)
    ReadPart.objects.bulk_create([row], ignore_conflicts=True)
    message_id = f"{intake_id}:{sha256_hex(part.url)[:32]}"
    enqueue(Kind.DOCUMENT_INDEX, scope_id=intake_id, payload={"part": str(row.pk)}, message_id=message_id)


def _enqueue_end(intake_id: UUID, *, broken_off: bool = False) -> None:
    payload = {"ends": True, "broken_off": broken_off}
    enqueue(Kind.DOCUMENT_INDEX, scope_id=intake_id, payload=payload, message_id=f"{intake_id}:end")
