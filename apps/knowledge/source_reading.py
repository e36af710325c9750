"""Read a source with entries: list it, read what is new or changed, and tell what is deleted.

Runs in the worker that reads untrusted bytes. An account's secrets are unsealed inside one guarded call, which is the
whole run; the bytes of an entry are parsed in the sandbox. Always: nothing counts as deleted unless the listing ended
without a failure.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from uuid import UUID

from apps.bus.deliveries import Delivery
from apps.bus.schemas import LeaseRef
from apps.guard import services as guard
from apps.guard.enums import Intent, Origin, Phase, RunStatus, TerminalReason
from apps.guard.schemas import Call, CallContext, CallFailed, Done, Failed, HandlerResult, Refused, RunRef
from apps.knowledge import sandboxed_parsing
from apps.knowledge.parsing import Parsed, Problem, ProblemCode
from apps.knowledge.ports import open_account
from apps.knowledge.schemas import SourceRequest
from apps.knowledge.source_readers import http_client
from apps.knowledge.source_readers.folder import FolderReader
from apps.knowledge.source_readers.port import SUFFIXES, Entry, EntryFailed, SourceFailed, SourceReader
from apps.knowledge.source_readers.registry import open_reader
from apps.tenants.models import Tenant
from kernel.canonical import sha256_hex
from kernel.stored_texts import stored_text
from kernel.tenancy import current_tenant_id, in_scope, tenant_scope

MAX_ENTRIES = 1000
SECONDS = 300.0
# Longer than a run goes on: its last request and the parsing of what it brought end before.
_PATIENCE_SECONDS = http_client.MOST_SECONDS + sandboxed_parsing.FILE_SECONDS + 30
_MAX_REFERENCE, _MAX_VERSION = 500, 200
_DELETED = stored_text("It has been deleted there.")


@dataclass(frozen=True)
class ReadEntry:
    """What became of one entry, by its reference. `version` is empty for one that has to be read again."""

    reference: str
    parsed: Parsed
    total: int
    version: str = ""


@dataclass(frozen=True)
class SourceEnd:
    """How a run ended: `unchanged` entries were not read, and `error` says why the run broke off, if it did.

    `more`: its time was over before everything was read, and what is deleted was not looked for.
    """

    unchanged: int = 0
    error: str = ""
    more: bool = False


Store = Callable[[ReadEntry], None]


async def read_source(
    delivery: Delivery, intake_id: UUID, request: SourceRequest, *, home: str, store: Store
) -> SourceEnd:
    """Read the source, and hand every entry that is new, changed, deleted or unreadable to `store`, inside a scope.

    `home` is what the references of its entries begin with.
    """
    tenant_id = delivery.tenant_id

    def run(reader: SourceReader) -> SourceEnd:
        return _run(reader, request, home=home, store=lambda entry: _in_scope(tenant_id, store, entry))

    if request.connection_id is None:
        return await asyncio.to_thread(_read_folder, tenant_id, request, run)
    return await _read_with_account(delivery, intake_id, request, run)


def _read_folder(tenant_id: UUID, request: SourceRequest, run: Callable[[SourceReader], SourceEnd]) -> SourceEnd:
    with tenant_scope(tenant_id):
        slug = str(Tenant.objects.values_list("slug", flat=True).get(pk=tenant_id))
    try:
        return run(FolderReader(slug, request.location))
    except SourceFailed as failed:
        return SourceEnd(error=failed.message)


async def _read_with_account(
    delivery: Delivery, intake_id: UUID, request: SourceRequest, run: Callable[[SourceReader], SourceEnd]
) -> SourceEnd:
    """Read inside one guarded call of a run that is allowed this call alone."""
    connection_id, tool = request.connection_id, f"source:{request.kind}"
    assert connection_id is not None
    ended: list[SourceEnd] = []

    def work(ctx: CallContext) -> HandlerResult:
        account = open_account(ctx, connection_id)
        try:
            ended.append(run(open_reader(request.kind, account, request.location)))
        except SourceFailed as failed:
            raise CallFailed(failed.code, failed.message, effect_free=True) from None
        return HandlerResult({"unchanged": ended[0].unchanged})

    guarded = await in_scope(delivery.tenant_id, _open_run, tool, intake_id, delivery.lease.ref)
    args = {"connection": str(connection_id), "location": request.location}
    call = Call(tool=tool, args=args, access=frozenset({tool}), patience_seconds=_PATIENCE_SECONDS)
    outcome = await guard.guarded_call(guarded, Intent.RUN_CONNECTION, call, context={"work": work})
    await in_scope(delivery.tenant_id, _close_run, guarded)
    match outcome:
        case Done():
            return ended[0]
        case Failed() | Refused():
            return SourceEnd(error=outcome.reason)
        case _:
            return SourceEnd(error=stored_text("This account can't be read without an approval."))


def _run(reader: SourceReader, request: SourceRequest, *, home: str, store: Store) -> SourceEnd:
    give_up = time.monotonic() + SECONDS
    listed, unchanged, read = _list(reader), 0, 0
    for entry in listed.values():
        reference, version = f"{home}/{entry.id}", entry.version[:_MAX_VERSION]
        if version and request.known.get(reference) == version:
            unchanged += 1
            continue
        # At least one entry is read, so that a slow source is read to its end run by run.
        if read and time.monotonic() > give_up:
            return SourceEnd(unchanged, more=True)
        read += 1
        if len(reference) > _MAX_REFERENCE or not reference.isprintable():
            unnamable = _failed(ProblemCode.UNREADABLE, stored_text("Its name cannot be used."))
            store(ReadEntry(f"{home}/{sha256_hex(entry.id.encode(errors='replace'))}", unnamable, len(listed)))
            continue
        store(ReadEntry(reference, _read(reader, entry), len(listed), version))
    for reference in request.known:
        entry_id = reference.removeprefix(f"{home}/")
        if entry_id not in listed and reader.is_deleted(entry_id):
            store(ReadEntry(reference, _failed(ProblemCode.MISSING, _DELETED), len(listed)))
    return SourceEnd(unchanged)


def _list(reader: SourceReader) -> dict[str, Entry]:
    listed: dict[str, Entry] = {}
    try:
        for entry in reader.entries():
            if entry.id:
                listed[entry.id] = entry
            if len(listed) > MAX_ENTRIES:
                words = stored_text("The source has more than {most:d} entries. Choose a smaller part of it.")
                raise SourceFailed("too_many_entries", words.format(most=MAX_ENTRIES))
    except EntryFailed as failed:
        raise SourceFailed("answer_unreadable", failed.message) from None
    return listed


def _read(reader: SourceReader, entry: Entry) -> Parsed:
    try:
        content = reader.read(entry)
    except EntryFailed as failed:
        return _failed(failed.code, failed.message)
    except SourceFailed as failed:
        if failed.code != "access_denied":
            raise
        return _failed(ProblemCode.UNREADABLE, failed.message)
    except ValueError:
        # What the reader took for text or a number is none; the next entry may be whole.
        return _failed(ProblemCode.UNREADABLE, http_client.unreadable().message)
    if content is None:
        return _failed(ProblemCode.MISSING, _DELETED)
    name = entry.title or PurePosixPath(entry.id).stem
    parsed = sandboxed_parsing.read_file(content.body, f"{name[:200]}{SUFFIXES[content.media_type]}")
    documents = tuple(
        replace(document, title=entry.title[:300] or document.title, url=entry.url, part="")
        for document in parsed.documents[:1]
    )
    return Parsed(documents, parsed.problems)


def _failed(code: ProblemCode, message: str) -> Parsed:
    return Parsed(problems=(Problem(code, message),))


def _in_scope(tenant_id: UUID, store: Store, entry: ReadEntry) -> None:
    with tenant_scope(tenant_id):
        store(entry)


def _open_run(tool: str, intake_id: UUID, lease: LeaseRef) -> RunRef:
    run = guard.open_run(
        Origin.WORK, intake_id, deployment_id=None, phase=Phase.EXECUTION, allow=[tool], critical=False
    )
    return RunRef(current_tenant_id(), run.pk, lease)


def _close_run(run: RunRef) -> None:
    guard.close_run(run.run_id, status=RunStatus.COMPLETED, reason=TerminalReason.COMPLETED)
