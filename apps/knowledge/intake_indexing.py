"""Store parsed parts of a submission, in the trusted worker, which alone may write documents.

Handler of `Kind.DOCUMENT_INDEX`, on the queue `trusted`. A part comes from a worker that reads untrusted bytes, so it
is validated again, and it can only become the document that was submitted or a page of the named site, while the intake
is open. Nothing is parsed here. The message's scope is the intake, so parts come in order and the end comes last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db.models import F, Q
from django.db.models.functions import Greatest, Now
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.bus.deliveries import Delivery, Undeliverable
from apps.bus.enums import SetAside
from apps.bus.models import QueueMessage
from apps.bus.signals import set_aside
from apps.knowledge import crawler, sandboxed_parsing, sources
from apps.knowledge.enums import IntakeKind, IntakeState
from apps.knowledge.models import Document, DocumentVersion, Intake, ReadPart
from apps.knowledge.parsing import Parsed, ParsedDocument, Problem, ProblemCode
from apps.knowledge.schemas import Outcome
from apps.knowledge.services import INDEXED_WITH, expected_outcomes, refresh_collection, store_parsed
from kernel.error_codes import ErrorCode
from kernel.http.addresses import host_of
from kernel.http.fetch import SCHEMES
from kernel.stored_texts import stored_text
from kernel.tenancy import in_scope, in_thread

_KEPT_PROBLEMS = 20
BROKEN_OFF = stored_text("We tried several times and could not read this.")
OUR_FAULT = stored_text("Something went wrong on our side. Please try again.")


class IndexRequest(BaseModel):
    """Payload of the message: store a part, end the intake, or, with neither, store what needs no reading.

    `version` is of the part's entry; `unchanged` is how many entries of a source were not read, and `error` why its run
    broke off. `more`: there was no time to read all of them. `confirmed`: a person wants the documents removed that the
    run found deleted and kept.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    part: UUID | None = None
    version: str = Field(default="", max_length=200)
    ends: bool = False
    broken_off: bool = False
    unchanged: int = Field(default=0, ge=0, le=100_000)
    error: str = Field(default="", max_length=500)
    more: bool = False
    confirmed: bool = False


@dataclass(frozen=True)
class _LoadedPart:
    """A parsed part with its document's reference and its intake."""

    intake: Intake
    reference: str
    parsed: Parsed
    url: str = ""
    total: int = 1


async def index_intake(delivery: Delivery) -> None:
    """Store one part, or end the intake. Does nothing for an intake that has ended."""
    intake_id = UUID(delivery.message.subject)
    try:
        request = IndexRequest.model_validate(delivery.message.payload or {})
    except ValidationError:
        raise Undeliverable(
            ErrorCode.PAYLOAD_WRONG, "A message asks for something else than to store or to end."
        ) from None
    source = await in_scope(delivery.tenant_id, sources.source_of_run, intake_id)
    if request.ends:
        if source is not None:
            whole, confirmed = not request.broken_off, request.confirmed
            await in_thread(sources.retire_gone, delivery.tenant_id, source, whole=whole, confirmed=confirmed)
        await delivery.commit(_finish, intake_id, request)
        return
    part = await in_scope(delivery.tenant_id, _load_part, intake_id, request)
    if part is None:
        return
    row = part.intake
    if source is not None and source.dry_run:
        outcomes = await in_thread(
            expected_outcomes, delivery.tenant_id, row.collection_id, part.parsed, reference=part.reference
        )
    else:
        options = {"reference": part.reference, "actor": row.by}
        outcomes = await in_thread(store_parsed, delivery.tenant_id, row.collection_id, part.parsed, **options)
    await delivery.commit(_record_stored, part, request, outcomes)


def fail(message: QueueMessage) -> bool:
    """End the intake of a dead message as failed and notify its submitter, unless it has ended."""
    row = _lock_open_intake(UUID(message.subject))
    if row is not None:
        _close(row, IntakeState.FAILED, [["", OUR_FAULT]])
    return row is not None


def _lock_open_intake(intake_id: UUID) -> Intake | None:
    rows = Intake.objects.select_for_update(of=("self",), no_key=True).filter(pk=intake_id, ended_at=None)
    row: Intake | None = rows.first()
    return row


def _load_part(intake_id: UUID, request: IndexRequest) -> _LoadedPart | None:
    row: Intake | None = Intake.objects.filter(pk=intake_id, ended_at=None).first()
    if row is None:
        return None
    if row.kind == IntakeKind.TEXT:
        text = bytes(row.content or b"").decode()
        return _LoadedPart(row, row.reference, Parsed((ParsedDocument(row.name, text),)))
    if row.kind == IntakeKind.AGAIN:
        return _LoadedPart(row, row.reference.partition("#")[0], _stored_text(row))
    part: ReadPart | None = ReadPart.objects.filter(Q(pk=request.part), intake=row).first()
    return _validate_part(row, part) if part is not None else None


def _validate_part(row: Intake, part: ReadPart) -> _LoadedPart:
    """Validate a part again. Raises `Undeliverable` for a part that no reader of ours produces."""
    try:
        parsed = sandboxed_parsing.load_parsed(part.found)
    except ValidationError:
        raise Undeliverable(ErrorCode.PART_UNREADABLE, "A part has another shape than a reader gives it.") from None
    if row.kind == IntakeKind.FILE:
        return _LoadedPart(row, row.reference, parsed)
    if row.kind == IntakeKind.SOURCE:
        return _validate_entry(row, part, parsed)
    if not crawler.is_same_site(part.url, row.reference):
        raise Undeliverable(ErrorCode.PART_ELSEWHERE, "A part is of another website than the one that was named.")
    # A page's documents lead where it stands: citations go there.
    documents = tuple(ParsedDocument(document.title, document.text, part.url) for document in parsed.documents)
    return _LoadedPart(row, part.url, Parsed(documents, parsed.problems), part.url, min(part.total, crawler.PAGES))


def _validate_entry(row: Intake, part: ReadPart, parsed: Parsed) -> _LoadedPart:
    if not part.url.startswith(f"{row.reference}/"):
        raise Undeliverable(ErrorCode.PART_ELSEWHERE, "A part is of another source than the one that was named.")
    documents = tuple(
        ParsedDocument(document.title, document.text, document.url if host_of(document.url, schemes=SCHEMES) else "")
        for document in parsed.documents[:1]
    )
    return _LoadedPart(row, part.url, Parsed(documents, parsed.problems), part.url, part.total)


def _stored_text(row: Intake) -> Parsed:
    versions = DocumentVersion.objects.filter(Q(document_id=row.document_id)).select_related("document")
    version = versions.order_by("-number").first()
    if version is None:
        return Parsed(problems=(Problem(ProblemCode.MISSING, stored_text("The document has been deleted.")),))
    # Clear the marker, so that the text is split and embedded again.
    Document.objects.filter(pk=version.document_id, indexed_with=INDEXED_WITH).update(indexed_with="")
    document = version.document
    part = row.reference.partition("#")[2]
    return Parsed((ParsedDocument(document.title, version.text, document.url, part),))


def _record_stored(part: _LoadedPart, request: IndexRequest, outcomes: Sequence[Outcome]) -> None:
    row = _lock_open_intake(part.intake.pk)
    if row is None:
        return
    sources.record_page(row.pk, part.url, outcomes, part.parsed, version=request.version)
    problems = [[part.url, problem.message] for problem in part.parsed.problems]
    row.stored, row.problems = row.stored + len(outcomes), [*row.problems, *problems][:_KEPT_PROBLEMS]
    if request.part is None:
        _close(row, IntakeState.DONE if row.stored else IntakeState.FAILED, row.problems)
        return
    ReadPart.objects.filter(pk=request.part).delete()
    Intake.objects.filter(pk=row.pk).update(
        state=IntakeState.RUNNING,
        done=F("done") + 1,
        total=Greatest(part.total, F("done") + 1),
        stored=row.stored,
        problems=row.problems,
    )


def _finish(intake_id: UUID, request: IndexRequest) -> None:
    row = _lock_open_intake(intake_id)
    if row is None:
        return
    sources.record_unread(intake_id, unchanged=request.unchanged, error=request.error, more=request.more)
    if request.broken_off:
        _close(row, IntakeState.FAILED, [*row.problems, ["", request.error or BROKEN_OFF]])
        return
    # A source may have nothing new; what could not be read of it is in its report.
    is_done = row.stored or row.kind == IntakeKind.SOURCE
    _close(row, IntakeState.DONE if is_done else IntakeState.FAILED, row.problems)


def _close(row: Intake, state: IntakeState, problems: list[list[str]]) -> None:
    """End the intake and delete its bytes: the text is in the document's versions."""
    kept = problems[-_KEPT_PROBLEMS:]
    ReadPart.objects.filter(intake=row).delete()
    ended = {"state": state, "problems": kept, "stored": row.stored, "content": None, "ended_at": Now()}
    Intake.objects.filter(pk=row.pk).update(**ended)
    refresh_collection(row.collection_id)
    sources.record_end(row.pk, state, len(problems))
    data = {"status": str(state), "problems": len(problems)}
    record(AuditEvent.KNOWLEDGE_READ, actor=row.by, subject=f"intake:{row.pk}", data=data)
    if state == IntakeState.FAILED:
        set_aside(SetAside.DOCUMENT, row.by)
