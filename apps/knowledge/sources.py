"""Sources that are read again on a schedule, with a report of what changed: websites, folders, and what accounts show.

A run is an intake of the source that also finds out what is gone. A page or entry that is deleted there is retired at
the end of the run: it leaves the search, and its versions stay for the citations that point at them. Always: nothing is
retired where the run broke off, or where everything, a website's start page, or more than half of what is known
vanished at once, because then the source is more likely broken than changed; a person may confirm the removal.
Functions run inside a scope unless they say otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypedDict
from urllib.parse import urlsplit
from uuid import UUID, uuid4

from django.db import transaction
from django.db.models import QuerySet

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.bus.deliveries import Delivery
from apps.bus.enums import Kind
from apps.bus.services import enqueue, schedule
from apps.knowledge import crawler, intake, ports
from apps.knowledge.enums import WITHOUT_ACCOUNT, IntakeState, SourceKind
from apps.knowledge.models import Collection, Document, Intake, KnowledgeSource
from apps.knowledge.parsing import Parsed, ProblemCode
from apps.knowledge.schemas import Outcome, SourceRequest
from apps.knowledge.services import INDEXED_WITH, retire_document
from apps.knowledge.source_readers.registry import is_location
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import NotFound, SilasError
from kernel.language import gettext
from kernel.tenancy import tenant_scope

MAX_SOURCES, MAX_LISTED = 20, 100
INTERVALS = (6, 24, 168)
CITED_FOR = timedelta(days=30)
_SOON = timedelta(minutes=1)
_FEW = 3


class Report(TypedDict, total=False):
    """What a run found: references by what became of them, at most 100 each, and how many of each there are.

    `failed` are pairs of a reference and the reason; `titles` names the documents that are listed. `kept`: what is gone
    was not retired, because the source looks broken. `error` says why the run broke off. `more`: there was no time to
    read everything. `state` and `ended_at` are there once it has ended.
    """

    counts: dict[str, int]
    added: list[str]
    updated: list[str]
    gone: list[str]
    failed: list[list[str]]
    titles: dict[str, str]
    kept: bool
    known: int
    error: str
    more: bool
    problems: int
    state: str
    ended_at: str


@dataclass(frozen=True)
class NewSource:
    """A source as a person describes it."""

    kind: str
    location: str
    every_hours: int
    connection_id: UUID | None = None


@dataclass(frozen=True)
class Change:
    """What a run found new, changed or gone, its document, and how many answers of the last 30 days cite that."""

    kind: str
    reference: str
    title: str
    document_id: UUID | None
    answers: int


def add_source(collection_id: UUID, new: NewSource, *, actor: str, dry_run: bool = False) -> KnowledgeSource:
    """Keep a source up to date; its first run starts at once. Safe to repeat.

    With `dry_run` the source is paused, and a run starts that only reports. Raises `NotFound`, `SilasError`:
    website_address 422, source_location 422, connection_missing 409, form_unreadable 422 for a kind or interval that is
    not offered, too_many for more than 20 sources.
    """
    location, connection_id = _check_new(new)
    if not Collection.objects.filter(pk=collection_id).exists():
        raise NotFound()
    if KnowledgeSource.objects.count() >= MAX_SOURCES:
        raise SilasError(
            ErrorCode.TOO_MANY, gettext("Keep at most {number} sources up to date.").format(number=MAX_SOURCES)
        )
    source: KnowledgeSource
    source, created = KnowledgeSource.objects.get_or_create(
        collection_id=collection_id,
        kind=new.kind,
        connection_id=connection_id,
        location=location,
        defaults={
            "every_hours": new.every_hours,
            "by": actor,
            "enabled": not dry_run,
            "next_at": None if dry_run else now(),
        },
    )
    if created:
        _audit(source, "add", actor)
        if dry_run:
            start_run(source.pk, dry_run=True)
            source.refresh_from_db()
        else:
            schedule(Kind.SOURCE_SYNC, scope_id=source.pk, due_at=now())
    return source


def _check_new(new: NewSource) -> tuple[str, UUID | None]:
    """The location and the account of a valid new source."""
    if new.every_hours not in INTERVALS or new.kind not in SourceKind.values:
        raise SilasError(ErrorCode.FORM_UNREADABLE)
    kind, location = SourceKind(new.kind), new.location.strip()
    if kind is SourceKind.WEBSITE:
        return intake.parse_website_address(location), None
    if kind is SourceKind.NOTION:
        location = location.lower()
    location = location.strip("/") if kind is SourceKind.FOLDER else location
    if len(location) > 500 or not is_location(kind, location):
        raise SilasError(ErrorCode.SOURCE_LOCATION)
    if kind in WITHOUT_ACCOUNT:
        return location, None
    if new.connection_id is None:
        raise SilasError(ErrorCode.CONNECTION_MISSING, gettext("Choose a connected account."))
    return location, _account(new.connection_id).id


def _account(connection_id: UUID | None) -> ports.AccountChoice:
    found = next((choice for choice in ports.list_accounts() if choice.id == connection_id), None)
    if found is None:
        raise SilasError(ErrorCode.CONNECTION_MISSING, gettext("The account is no longer connected."))
    return found


def lock_source(source_id: UUID) -> KnowledgeSource:
    """The source, locked for a change. Raises `NotFound`."""
    source: KnowledgeSource | None = _locked().filter(pk=source_id).first()
    if source is None:
        raise NotFound()
    return source


def turn_source(source_id: UUID, *, enabled: bool, actor: str) -> KnowledgeSource:
    """Pause or resume a source. Raises `NotFound`."""
    source = lock_source(source_id)
    if source.enabled != enabled:
        source.enabled, source.next_at = enabled, now() if enabled else None
        source.save(update_fields=["enabled", "next_at"])
        if enabled:
            schedule(Kind.SOURCE_SYNC, scope_id=source.pk, due_at=now())
        _audit(source, "turn", actor)
    return source


def remove_source(source_id: UUID, *, actor: str) -> None:
    """Stop keeping a source up to date; its documents stay. Raises `NotFound`."""
    source = lock_source(source_id)
    _audit(source, "remove", actor)
    source.delete()


def start_run(source_id: UUID, *, dry_run: bool) -> bool:
    """Start a run, unless one is in progress. Raises `NotFound`, `SilasError`: knowledge_busy, connection_missing."""
    source = lock_source(source_id)
    if source.intake_id and Intake.objects.filter(pk=source.intake_id, ended_at=None).exists():
        return False
    if source.kind == SourceKind.WEBSITE:
        pages = known_pages(source)
        known = len(pages)
        run = intake.submit_website(
            source.collection_id, address=source.location, known_pages=pages, once=uuid4(), actor=source.by
        )
    else:
        versions = _known_versions(source)
        known = len(versions)
        run = intake.submit_source(
            source.collection_id,
            request=SourceRequest(
                kind=SourceKind(source.kind),
                location=source.location,
                connection_id=source.connection_id,
                known=versions,
            ),
            name=str(source),
            home=_home(source),
            once=uuid4(),
            actor=source.by,
        )
    source.intake_id, source.dry_run = run.pk, dry_run
    source.report = dict(Report(counts={}, added=[], updated=[], gone=[], failed=[], titles={}, known=known))
    source.save(update_fields=["intake_id", "dry_run", "report"])
    return True


def confirm_removals(source_id: UUID, *, actor: str) -> None:
    """Have the documents retired that the last run found deleted and kept. Raises `NotFound`, 409 `nothing_to_remove`
    if there are none."""
    source = lock_source(source_id)
    run_id, report = source.intake_id, source.report
    if run_id is None or source.dry_run or not report.get("kept") or not report.get("ended_at"):
        raise SilasError(ErrorCode.NOTHING_TO_REMOVE)
    _audit(source, "confirm", actor)
    payload = {"ends": True, "confirmed": True}
    enqueue(Kind.DOCUMENT_INDEX, scope_id=run_id, payload=payload, message_id=f"{run_id}:confirmed")


def changes_of(source: KnowledgeSource) -> list[Change]:
    """What the last run found new, changed and gone, with the answers that it touches."""
    listed = [(kind, name) for kind in ("added", "updated", "gone") for name in source.report.get(kind, [])]
    listed = listed[: 3 * MAX_LISTED]
    found = Document.objects.filter(collection=source.collection_id, source_ref__in=[name for _, name in listed])
    documents = {reference: (pk, title) for reference, pk, title in found.values_list("source_ref", "pk", "title")}
    touched = [documents[name][0] for kind, name in listed if kind != "added" and name in documents]
    answers = ports.count_citations(touched, since=now() - CITED_FOR)
    titles: dict[str, str] = source.report.get("titles", {})
    changes = []
    for kind, name in listed:
        document_id, title = documents.get(name, (None, ""))
        count = answers.get(document_id, 0) if document_id else 0
        shown = name if source.kind == SourceKind.WEBSITE else titles.get(name) or title or name
        changes.append(Change(kind, name, shown, document_id, count))
    return changes


def is_running(source: KnowledgeSource) -> bool:
    return bool(source.report) and "state" not in source.report


def known_pages(source: KnowledgeSource) -> list[str]:
    """The pages of a website that the search finds, those that changed longest ago first."""
    found = Document.objects.filter(collection_id=source.collection_id, versions__chunks__isnull=False)
    references = found.order_by("updated_at", "pk").values_list("source_ref", flat=True).distinct()
    pages = [reference for reference in references if reference.startswith(("http://", "https://"))]
    return [page for page in pages if crawler.is_same_site(page, source.location)][: crawler.SOURCE_PAGES]


def _known_versions(source: KnowledgeSource) -> dict[str, str]:
    """The documents of the source that the search finds, with the versions that were read of them.

    A document that another version of this program has split or embedded is read again.
    """
    found = Document.objects.filter(
        source_id=source.pk, collection_id=source.collection_id, versions__chunks__isnull=False
    )
    rows = found.order_by("source_ref").values_list("source_ref", "source_version", "indexed_with").distinct()
    return {name: version if indexed == INDEXED_WITH else "" for name, version, indexed in rows}


def _home(source: KnowledgeSource) -> str:
    """What the references of the source's entries begin with: the place that their ids are unique in."""
    if source.kind == SourceKind.FOLDER:
        return "/".join(part for part in ("folder", source.location) if part)
    host = urlsplit(_account(source.connection_id).base_url).netloc
    # Of a location, the bucket or the language counts: each language has its own text of an article.
    within = source.location.partition("/")[0] if source.kind in (SourceKind.S3, SourceKind.ZENDESK) else ""
    return "/".join(part for part in (source.kind, host, within) if part)


async def handle_sync(delivery: Delivery) -> None:
    """Start the run that is due, and say when the next one is; a removed or paused source has none."""
    source_id = UUID(delivery.message.subject)
    await delivery.reschedule(_start_due, source_id)


def _start_due(source_id: UUID) -> datetime | None:
    source: KnowledgeSource | None = _locked().filter(pk=source_id, enabled=True).first()
    if source is None or source.next_at is None:
        return None
    if source.next_at > now():
        return source.next_at
    try:
        with transaction.atomic():
            start_run(source_id, dry_run=False)
    except SilasError as refusal:
        # Too much is waiting to be read, or the account is gone: the next interval tries again.
        if refusal.code == ErrorCode.CONNECTION_MISSING:
            _report_failure(source, refusal.message)
    due_at = now() + timedelta(hours=source.every_hours)
    KnowledgeSource.objects.filter(pk=source_id).update(next_at=due_at)
    return due_at


def _report_failure(source: KnowledgeSource, error: str) -> None:
    """Report a run that could not start."""
    failed = Report(counts={}, state=str(IntakeState.FAILED), error=error, ended_at=now().isoformat())
    KnowledgeSource.objects.filter(pk=source.pk).update(report=dict(failed), dry_run=False)


# What a run tells while it goes on


def source_of_run(intake_id: UUID) -> KnowledgeSource | None:
    source: KnowledgeSource | None = KnowledgeSource.objects.filter(intake_id=intake_id).first()
    return source


def record_page(intake_id: UUID, name: str, outcomes: Sequence[Outcome], parsed: Parsed, *, version: str) -> None:
    """Add a page or an entry to the report of its run, if it belongs to one, and mark its document as the source's."""
    source = _locked().filter(intake_id=intake_id).first()
    if source is None:
        return
    report = source.report
    found = [str(outcome) for outcome in outcomes]
    if any(problem.code == ProblemCode.MISSING for problem in parsed.problems):
        found.append("gone")
    elif parsed.problems:
        found.append("failed")
    for kind in found:
        report["counts"][kind] = report["counts"].get(kind, 0) + 1
        listed = report.get(kind)
        if isinstance(listed, list) and (len(listed) < MAX_LISTED or kind == "gone"):
            listed.append([name, parsed.problems[0].message] if kind == "failed" else name)
            if parsed.documents and source.kind != SourceKind.WEBSITE:
                report["titles"][name] = parsed.documents[0].title
    source.save(update_fields=["report"])
    if outcomes and not source.dry_run and source.kind != SourceKind.WEBSITE:
        rows = Document.objects.filter(collection_id=source.collection_id, source_ref=name)
        rows.update(source_id=source.pk, source_version=version)


def record_unread(intake_id: UUID, *, unchanged: int, error: str, more: bool) -> None:
    """Add to the report how many entries a run did not need to read, why it broke off, and whether there is more.

    A run that had no time for everything is followed by another one soon, as long as runs get on.
    """
    source = _locked().filter(intake_id=intake_id).first()
    if source is None:
        return
    counts = source.report["counts"]
    gets_on = any(counts.get(outcome) for outcome in (Outcome.ADDED, Outcome.UPDATED, Outcome.REINDEXED))
    if unchanged:
        counts["unchanged"] = counts.get("unchanged", 0) + unchanged
    source.report |= {"error": error} if error else {}
    source.report |= {"more": True} if more else {}
    if more and gets_on and source.enabled and not source.dry_run:
        source.next_at = now() + _SOON
        schedule(Kind.SOURCE_SYNC, scope_id=source.pk, due_at=source.next_at)
    source.save(update_fields=["report", "next_at"])


def record_end(intake_id: UUID, state: IntakeState, problems: int) -> None:
    """Close the report of a run."""
    source = _locked().filter(intake_id=intake_id).first()
    if source is not None:
        source.report |= {"state": str(state), "problems": problems, "ended_at": now().isoformat()}
        source.save(update_fields=["report"])


def retire_gone(tenant_id: UUID, source: KnowledgeSource, *, whole: bool, confirmed: bool = False) -> None:
    """Retire the documents that a run found gone. Safe to repeat. Opens its own scopes.

    `whole`: the run did not break off. `confirmed`: a person wants it, however much it is.
    """
    with tenant_scope(tenant_id):
        source.refresh_from_db()
    gone, known = source.report.get("gone", []), int(source.report.get("known", 0))
    if not gone or source.dry_run:
        return
    suspicious = not whole or source.location in gone or len(gone) >= known or len(gone) > max(_FEW, known // 2)
    with tenant_scope(tenant_id):
        locked = lock_source(source.pk)
        locked.report["kept"] = suspicious and not confirmed
        locked.save(update_fields=["report"])
    if suspicious and not confirmed:
        return
    for name in gone:
        retire_document(tenant_id, source.collection_id, reference=name, actor=source.by)


def _locked() -> QuerySet[KnowledgeSource]:
    rows: QuerySet[KnowledgeSource] = KnowledgeSource.objects.select_for_update(of=("self",), no_key=True)
    return rows


def _audit(source: KnowledgeSource, verb: str, actor: str) -> None:
    record(AuditEvent.SOURCE_CHANGED, actor=actor, subject=f"source:{source.pk}", data={"verb": verb})
