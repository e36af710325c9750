"""Run an import: submit a file, read it in the sandbox, apply its parts in order, and end with a report.

A worker without the signing key reads the file (`read_run`, queue `parse`) and hands over validated records in parts;
the trusted worker applies one part in a transaction (`apply_part`, queue `trusted`). After a crash a part is applied
again as a whole or not at all. A dry run goes the same way and writes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from uuid import UUID

from pydantic import ValidationError

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.bus.deliveries import Delivery
from apps.bus.enums import Kind
from apps.bus.models import QueueMessage
from apps.bus.services import enqueue
from apps.imports.applying import Result, apply_contact, apply_conversation, apply_reply
from apps.imports.enums import Outcome, Reason, RunState, System
from apps.imports.models import ImportPart, ImportRun
from apps.imports.reading import MAX_PROBLEMS
from apps.imports.schemas import RECORD, ContactRecord, ConversationRecord, Part, Record
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import NotFound, SilasError
from kernel.language import gettext
from kernel.tenancy import in_scope, in_thread
from kernel.unicode_safety import replace_unstorable
from sandbox.readers import Reader, ReaderFailed, run_reader

MAX_UPLOAD_BYTES, MAX_RUNNING = 20_000_000, 5
KINDS = (".json", ".jsonl", ".ndjson", ".csv")
_AT_ONCE, _PART_BYTES = 100, 2_000_000
_READER = Reader(
    "apps.imports.reading", "read", ("apps.imports.reading",), seconds=120, memory_mb=1024, most_bytes=100_000_000
)


def submit(*, system: System, name: str, data: bytes, dry_run: bool, once: UUID, actor: str) -> ImportRun:
    """Begin an import. The same `once` is one run. Raises `SilasError` 422: unsupported_type, nothing_in_it, too_large;
    409 `import_busy`."""
    name = replace_unstorable(name.replace("\\", "/").rpartition("/")[2])[-200:].strip()
    if not name.lower().endswith(KINDS):
        raise SilasError(
            ErrorCode.UNSUPPORTED_TYPE,
            gettext("{value} is not supported. Upload one of {listed}.").format(
                value=name or "This file", listed=", ".join(KINDS)
            ),
        )
    if not data.strip():
        raise SilasError(ErrorCode.NOTHING_IN_IT, gettext("{plain} is empty.").format(plain=name))
    if len(data) > MAX_UPLOAD_BYTES:
        told = gettext("{plain} is larger than {value} MB.").format(plain=name, value=MAX_UPLOAD_BYTES // 1_000_000)
        raise SilasError(ErrorCode.TOO_LARGE, told, status=422)
    if ImportRun.objects.filter(ended_at=None).exclude(once=once).count() >= MAX_RUNNING:
        raise SilasError(ErrorCode.IMPORT_BUSY)
    row, is_new = ImportRun.objects.get_or_create(
        once=once, defaults={"system": system, "name": name, "dry_run": dry_run, "content": data, "by": actor}
    )
    if is_new:
        shown = {"system": system.value, "dry_run": dry_run, "bytes": len(data)}
        record(AuditEvent.IMPORT_STARTED, actor=actor, subject=f"import:{row.pk}", data=shown)
        enqueue(Kind.IMPORT_READ, scope_id=row.pk)
    begun: ImportRun = row
    return begun


def run_by_id(run_id: UUID) -> ImportRun:
    """Raises `NotFound`."""
    row: ImportRun | None = ImportRun.objects.defer("content").filter(pk=run_id).first()
    if row is None:
        raise NotFound()
    return row


def newest_runs(limit: int = 20) -> list[ImportRun]:
    return list(ImportRun.objects.defer("content")[:limit])


# -- the worker that reads ---------------------------------------------------------------------------------------------


async def read_run(delivery: Delivery) -> None:
    """Hand over what the file says, in parts, and then the end. Read again after a crash, it hands over the same."""
    run_id = UUID(delivery.message.subject)
    row = await in_scope(delivery.tenant_id, _open_run, run_id)
    if row is None:
        return
    try:
        parts = await in_thread(_parts, bytes(row.content or b""), row.system, row.name)
    except ReaderFailed:
        await delivery.commit(_enqueue_end, run_id, broken_off=True)
        return
    for number, part in enumerate(parts):
        await in_scope(delivery.tenant_id, _store_part, run_id, number, part)
    await delivery.commit(_enqueue_end, run_id)


def give_up(message: QueueMessage) -> bool:
    """Have the trusted worker end the run of a dead message."""
    run_id = UUID(message.subject)
    if _open_run(run_id) is None:
        return False
    _enqueue_end(run_id, broken_off=True)
    return True


def _open_run(run_id: UUID) -> ImportRun | None:
    """The columns that this worker's role may read; None once the run has ended."""
    row: ImportRun | None = (
        ImportRun.objects.filter(pk=run_id, ended_at=None).order_by().only("system", "name", "content").first()
    )
    return row


def _parts(data: bytes, system: str, name: str) -> list[str]:
    """The parts of a file as `ImportPart.found` has them."""
    result = run_reader(_READER, data, system=system, name=name)
    told = result.answer["problems"] if isinstance(result.answer, dict) else []
    problems = [(int(line), str(reason)) for line, reason in told[:MAX_PROBLEMS]]
    records: list[str] = []
    parts, size = [], 0
    for line in _lines(result.blob):
        try:
            RECORD.validate_json(line)
        except ValidationError:
            problems.append((_line_of(line), Reason.INVALID))
            continue
        if records and (len(records) >= _AT_ONCE or size + len(line) > _PART_BYTES):
            parts.append(_dumped(records))
            records, size = [], 0
        records.append(line)
        size += len(line)
    return [*parts, *([_dumped(records)] if records else []), _dumped([], problems[:MAX_PROBLEMS])]


def _lines(blob: bytes) -> Iterator[str]:
    return (line for line in blob.decode(errors="replace").split("\n") if line)


def _line_of(line: str) -> int:
    try:
        number = json.loads(line)["line"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return 0
    return number if isinstance(number, int) and number >= 0 else 0


def _dumped(records: list[str], problems: list[tuple[int, str]] | None = None) -> str:
    return f'{{"records": [{", ".join(records)}], "problems": {json.dumps(problems or [])}}}'


def _store_part(run_id: UUID, number: int, found: str) -> None:
    if not ImportRun.objects.filter(pk=run_id, ended_at=None).exists():
        return
    row = ImportPart(run_id=run_id, number=number, found=found)
    ImportPart.objects.bulk_create([row], ignore_conflicts=True)
    enqueue(Kind.IMPORT_APPLY, scope_id=run_id, payload={"number": number}, message_id=f"{run_id}:import:{number}")


def _enqueue_end(run_id: UUID, *, broken_off: bool = False) -> None:
    payload = {"ends": True, "broken_off": broken_off}
    enqueue(Kind.IMPORT_APPLY, scope_id=run_id, payload=payload, message_id=f"{run_id}:import:end")


# -- the trusted worker ------------------------------------------------------------------------------------------------


async def apply_part(delivery: Delivery) -> None:
    """Apply a part, or end the run."""
    run_id, payload = UUID(delivery.message.subject), delivery.message.payload or {}
    if payload.get("ends"):
        await delivery.commit(_end, run_id, RunState.FAILED if payload.get("broken_off") else RunState.DONE)
    else:
        await delivery.commit(_apply, run_id, int(payload.get("number", -1)))


def fail(message: QueueMessage) -> bool:
    """End the run of a dead message as failed; what was applied stays, and the same file may be imported again."""
    return _end(UUID(message.subject), RunState.FAILED)


def _lock(run_id: UUID) -> ImportRun | None:
    rows = ImportRun.objects.select_for_update(of=("self",), no_key=True).defer("content")
    row: ImportRun | None = rows.filter(pk=run_id, ended_at=None).first()
    return row


def _apply(run_id: UUID, number: int) -> None:
    row = _lock(run_id)
    part: ImportPart | None = ImportPart.objects.filter(run_id=run_id, number=number).first()
    if row is None or part is None:
        return
    try:
        found = Part.model_validate_json(part.found)
    except ValidationError:
        _count(row, "line", 0, (Outcome.SKIPPED, Reason.INVALID))
    else:
        for each in found.records:
            _count(row, each.kind, each.line, _applied(each, row))
        for line, reason in found.problems:
            known = Reason(reason) if reason in Reason.values else Reason.INVALID
            _count(row, "line", line, (Outcome.SKIPPED, known))
    row.save(update_fields=["counts", "problems"])
    part.delete()


def _applied(each: Record, row: ImportRun) -> Result:
    write = not row.dry_run
    if isinstance(each, ContactRecord):
        return apply_contact(each, row.system, write=write)
    if isinstance(each, ConversationRecord):
        return apply_conversation(each, row.system, write=write)
    return apply_reply(each, actor=row.by, write=write)


def _count(row: ImportRun, kind: str, line: int, result: Result) -> None:
    outcome, reason = result
    counts = row.counts.setdefault(kind, {})
    counts[outcome.value] = counts.get(outcome.value, 0) + 1
    if reason is not None and len(row.problems) < MAX_PROBLEMS:
        row.problems.append([line, reason.value])


def _end(run_id: UUID, state: RunState) -> bool:
    row = _lock(run_id)
    if row is None:
        return False
    row.state, row.content, row.ended_at = state, None, now()
    row.save(update_fields=["state", "content", "ended_at"])
    ImportPart.objects.filter(run=row).delete()
    totals = {outcome.value: sum(counts.get(outcome.value, 0) for counts in row.counts.values()) for outcome in Outcome}
    data = {"state": state.value, "dry_run": row.dry_run, **totals}
    record(AuditEvent.IMPORT_ENDED, subject=f"import:{row.pk}", data=data)
    return True
