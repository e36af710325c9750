"""Write memories of a conversation, a customer or the company. What members change is in `services`; nothing else
writes them.

Always: everything is scrubbed before it is kept (`scrub`), external text stays external and cannot instruct a model
later, and each memory belongs to the scope that the caller names. A model's request reaches only memories that a model
wrote, in the scopes of its turn. Scrubbing and embedding are slow: `prepare` does them outside of any transaction, the
rest runs inside one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from django.conf import settings
from django.db import connection
from django.db.models import Q, QuerySet

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.gates.detectors.catalogue import detect, detects
from apps.gates.detectors.pii import KINDS
from apps.memory import questions, recall
from apps.memory.consolidation import enqueue_consolidation
from apps.memory.enums import OF_MODELS, ArchiveReason, MergeReason, ScopeKind, SourceKind, Tier, Trust
from apps.memory.graph import enqueue_reading
from apps.memory.models import MemoryConsolidation, MemoryItem
from apps.memory.rules import Event
from apps.memory.schemas import Note, Scope
from apps.memory.sql.consolidation import MAX_EVENTS
from apps.tenants.queries import retention
from kernel.canonical import sha256_hex
from kernel.clock import now
from kernel.ids import parse_id
from kernel.taint import Taint, join
from kernel.tenancy import before_commit, current_tenant_id
from llm import embedding
from llm.enums import MemoryType

# More than a visitor's frame or an answer may hold; what a model wishes to remember is a sentence or two.
MAX_RAW, MAX_REMEMBERED = 24_000, 2_000
MAX_IN_SCOPE, MAX_LINKS, MAX_WORDS = 200, 20, 12
# A name stays: whom a memory belongs to knows it, and without names nothing that people say makes sense.
_SCRUB: Mapping[str, Mapping[str, object]] = {
    "secrets": {},
    "pii": {"entities": [kind for kind in KINDS if kind != "PERSON"]},
}
# What others say and a bot reads again later; the bot's own answers have passed its gates.
_FROM_OUTSIDE = frozenset({SourceKind.CONVERSATION_RAW, SourceKind.TOOL_OUTPUT_RAW, SourceKind.MEMORY_OP})
LEFT_OUT = "[Left out: words that would instruct the bot]"
_BATCH = 500
_COLUMNS = (
    "id, tenant_id, scope, content, memory_type, tier, trust, taint, source_kind, reference, session_id, created_at,"
    " updated_at, valid_until, tags, entity_refs, links, embedding, marked"
)
_ROW = "(" + "%s, " * 14 + "%s::text[], %s::text[], '[]', %s::vector, %s)"
_INSERT = f"INSERT INTO memory_memoryitem ({_COLUMNS}) VALUES %s ON CONFLICT DO NOTHING"  # noqa: S608  (our own column names)


def scrub(text: str) -> str:
    """Replace secrets and personal data, but not names, by their kind: `[CREDIT_CARD]`."""
    for detector, config in _SCRUB.items():
        text = detect(detector, text, config).redacted or text
    return text


def prepare(notes: Sequence[Note]) -> list[Note]:
    """Scrub, truncate and embed notes, in order. Outside of any transaction."""
    ready = [replace(note, content=clean_content(note)) for note in notes]
    vectors = embedding.embed_all([note.content for note in ready])
    return [replace(note, embedding=vector) for note, vector in zip(ready, vectors, strict=True)]


def keep(notes: Iterable[Note]) -> None:
    """Insert prepared notes before this scope commits, each once: an existing reference in the scope is left as it is.

    Notes without text are dropped.
    """
    kept = list(filter(_has_text, notes))
    for note in kept:
        before_commit(_insert, note)
    if any(note.tier is Tier.ACTIVE for note in kept):
        enqueue_reading()


def filter_unkept(notes: Sequence[Note]) -> list[Note]:
    """The notes whose conversation has no memory with their reference yet, in any scope."""
    condition = Q(session_id__in={note.session_id for note in notes}, reference__in={note.reference for note in notes})
    kept = set(MemoryItem.objects.filter(condition).values_list("session_id", "reference"))
    return [note for note in notes if (note.session_id, note.reference) not in kept]


def request_reference(content: str) -> str:
    """Derive the reference from the content, so that a model's repeated request is stored once."""
    return f"wish:{sha256_hex(content)[:32]}"


def store(note: Note) -> bool:
    """Store what a model asked to remember; False if its scope is full, so that a visitor cannot fill the database.

    A request that was made before counts as another event of the same memory. No model makes a profile (spec 6.4).
    """
    if note.memory_type is MemoryType.PROFILE:
        note = replace(note, memory_type=MemoryType.FACT)
    if _has_text(note) and _count_again(note):
        enqueue_consolidation()
        return True
    mine = MemoryItem.objects.filter(scope=str(note.scope), tier=Tier.ACTIVE)
    if not _has_text(note) or mine.count() >= MAX_IN_SCOPE:
        return False
    _insert([note])
    enqueue_reading()
    enqueue_consolidation()
    return True


def update(memory_id: str, note: Note, *, scopes: Iterable[Scope]) -> bool:
    """Replace a memory's content by the note's; False for a memory that a model may not change."""
    fields = {"content": note.content, "embedding": note.embedding, "taint": note.taint.value, "updated_at": now()}
    rows = _written_by_model(memory_id, scopes)
    if not _has_text(note) or not rows.update(**fields, events=[], read_at=None):
        return False
    # What was promoted was another text.
    rows.filter(source_kind=SourceKind.PROMOTION).update(memory_type=MemoryType.EPISODE.value)
    enqueue_reading()
    return True


def delete(memory_id: str, *, scopes: Iterable[Scope]) -> bool:
    return bool(_written_by_model(memory_id, scopes).delete()[0])


def link(memory_id: str, *, to: str, kind: str, scopes: Sequence[Scope]) -> bool:
    """Link two memories. Both must be written by a model, in the same scope."""
    ends = {str(row.pk): row for row in (_written_by_model(memory_id, scopes) | _written_by_model(to, scopes))}
    one, other = ends.get(memory_id), ends.get(to)
    if one is None or other is None or one is other or one.scope != other.scope or len(one.links) >= MAX_LINKS:
        return False
    one.links = [*one.links, {"to": to, "type": kind[:40]}]
    one.updated_at = now()
    one.save(update_fields=["links", "updated_at"])
    return True


def forget(scopes: Sequence[Scope], *, actor: str, subject: str) -> int:
    """Delete everything in these scopes, raw and remembered. The tenant's own scope is skipped."""
    own = [scope for scope in scopes if scope.kind is not ScopeKind.TENANT]
    rows = recall.memories_of(own)
    questions.withdraw_for_deleted(list(rows.values_list("pk", flat=True)))
    gone = int(rows.delete()[0])
    record(AuditEvent.MEMORY_FORGOTTEN, actor=actor, subject=subject, data={"count": gone})
    return gone


def delete_batch(which: Q, *, most: int) -> int:
    """Delete up to `most` of these memories, raw and remembered; returns how many."""
    ids = list(MemoryItem.objects.filter(which).order_by("pk").values_list("pk", flat=True)[:most])
    if ids:
        questions.withdraw_for_deleted(ids)
        MemoryItem.objects.filter(pk__in=ids).delete()
    return len(ids)


def delete_by_reference(scope: Scope, reference: str) -> bool:
    """Delete the memory with this reference; returns whether there was one."""
    return bool(MemoryItem.objects.filter(scope=str(scope), reference=reference).delete()[0])


def delete_tagged(tags: Sequence[str], *, source: SourceKind) -> int:
    """Delete the tenant's memories of this source that have one of these tags, in all scopes."""
    return int(MemoryItem.objects.filter(source_kind=source, tags__overlap=list(tags)).delete()[0])


def delete_expired_batch() -> bool:
    """Delete expired memories, as many as fit a short transaction; True if there may be more."""
    outlived, days = Q(valid_until__lt=now()), retention().memories
    if days is not None:
        outlived |= Q(created_at__lt=now() - timedelta(days=days))
    ids = list(MemoryItem.objects.filter(outlived).order_by().values_list("pk", flat=True)[:_BATCH])
    MemoryItem.objects.filter(pk__in=ids).order_by()._raw_delete("default")
    if ids and days is not None:
        record(AuditEvent.RETENTION_SWEPT, data={"kind": "memories", "count": len(ids)})
    return len(ids) == _BATCH


def _written_by_model(memory_id: str, scopes: Iterable[Scope]) -> QuerySet[MemoryItem]:
    """The memory of that id if a model wrote it in one of these scopes and no person confirmed, corrected or pinned
    it."""
    named = Q(pk=parse_id(memory_id)) if parse_id(memory_id) else Q(pk__in=[])
    mine = [str(scope) for scope in scopes]
    rows: QuerySet[MemoryItem] = MemoryItem.objects.filter(named, scope__in=mine)
    untouched = rows.filter(pinned=False, revisions=[], archived_at__isnull=True)
    return untouched.filter(trust=Trust.WORKING, source_kind__in=OF_MODELS)


def _count_again(note: Note) -> bool:
    """Add an event to the memory with the note's reference, or to what it was promoted to; False if there is none.

    One that was archived because it was not used is recalled again.
    """
    rows = MemoryItem.objects.select_for_update(no_key=True)
    row = rows.filter(scope=str(note.scope), reference=note.reference).first()
    if row is None:
        return False
    while row.archive_reason == ArchiveReason.PROMOTED:
        log = MemoryConsolidation.objects.filter(merged_id=row.pk, reason=MergeReason.PROMOTED).first()
        promoted = rows.filter(pk=log.kept_id).first() if log else None
        if promoted is None:
            break
        row = promoted
    if row.trust == Trust.WORKING:
        row.taint = join(Taint(row.taint), note.taint).value
    event = Event(str(note.session_id or "-"), note.reference, now())
    if not any(text.startswith(f"{event.conversation} ") for text in (*row.events, f"{row.session_id or '-'} ")):
        row.events = [*row.events, str(event)][:MAX_EVENTS]
    row.marked = row.marked or note.marked
    row.used_at = now()
    if row.archive_reason == ArchiveReason.UNUSED:
        row.archived_at, row.archive_reason = None, ""
    row.save(update_fields=["taint", "events", "marked", "used_at", "archived_at", "archive_reason"])
    return True


def _has_text(note: Note) -> bool:
    return bool(note.content.strip())


def clean_content(note: Note) -> str:
    """The content as it may be kept.

    Text that would instruct a later reader (spec 5.12) is replaced by a remark; a model's request to remember such text
    is dropped.
    """
    most = MAX_REMEMBERED if note.tier is Tier.ACTIVE else MAX_RAW
    text = note.content[:most]
    if note.source in _FROM_OUTSIDE and looks_like_instructions(text):
        return "" if note.source is SourceKind.MEMORY_OP else LEFT_OUT
    return scrub(text)


def looks_like_instructions(text: str) -> bool:
    """Whether the text would instruct a model that reads it later."""
    return detects("jailbreak", text)


def _insert(notes: list[Note]) -> None:
    """Insert with SQL: every turn ends with this, and it takes a fifth of the time that the ORM needs."""
    moment, tenant_id = now(), current_tenant_id()
    with connection.cursor() as cursor:
        cursor.execute(
            _INSERT % ", ".join([_ROW] * len(notes)),
            [value for note in notes for value in _values(note, tenant_id, moment)],
        )


def _values(note: Note, tenant_id: UUID, moment: datetime) -> tuple[Any, ...]:
    """Values in the order of `_COLUMNS`."""
    days = settings.MEMORY_DAYS if note.tier is Tier.ACTIVE else settings.MEMORY_RAW_DAYS
    end = moment + timedelta(days=days)
    return (
        uuid4(),
        tenant_id,
        str(note.scope),
        note.content,
        note.memory_type.value,
        note.tier.value,
        note.trust.value,
        note.taint.value,
        note.source.value,
        note.reference,
        note.session_id,
        moment,
        moment,
        end if note.valid_until is None else min(end, note.valid_until),
        [tag[:60] for tag in note.tags[:MAX_WORDS]],
        [entity[:120] for entity in note.entity_refs[:MAX_WORDS]],
        None if note.embedding is None else str(note.embedding),
        note.marked,
    )
