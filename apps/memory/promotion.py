"""Promote memories that were said repeatedly, in the background (spec 6.4).

The job of `consolidation` calls it after duplicates were merged. A promoted memory is a new row in the same scope with
the worst taint of its originals and all of their events; the originals are kept, linked, archived and logged, and what
was kept as said stays in its lane. Nothing is promoted that was written after its author had read instructions to the
assistant, or that instructs or claims rights (`marks`). When the same is said again later, it counts for the promoted
memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta
from itertools import groupby
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection
from django.db.models.expressions import RawSQL

from apps.audit.enums import AuditEvent
from apps.audit.services import record
from apps.memory import questions
from apps.memory.enums import ArchiveReason, MergeReason, SourceKind, Tier, Trust
from apps.memory.marks import find_marks
from apps.memory.models import MemoryConsolidation, MemoryItem
from apps.memory.rules import ASKED, LADDER, NEEDS, Event, Level, next_level, parse_event
from apps.memory.sql.consolidation import FIND_PROMOTABLE, MAX_EVENTS, SAME
from kernel.clock import now
from kernel.taint import Taint, join
from kernel.tenancy import current_tenant_id
from llm.enums import MemoryType
from llm.offline.words import content as telling_words

# What was said before that is not read for promotion any more; also how few telling words are too few.
RAW_REACH, LEAST_WORDS = timedelta(days=30), 2
MAX_LINKS, MAX_WORDS = 20, 12


def find_promotable() -> list[list[UUID]]:
    """The ids of the scope's memories that say the same and may be promoted, by group."""
    least = [NEEDS[level].events for level in LADDER[1:]]
    values: dict[str, Any] = {"tenant": current_tenant_id(), "since": now() - RAW_REACH, "least": [*least, 2**31 - 1]}
    with connection.cursor() as cursor:
        cursor.execute(FIND_PROMOTABLE, values)
        return [ids for (ids,) in cursor.fetchall()]


def promote(groups: Iterable[Sequence[UUID]]) -> int:
    """Promote these groups by one level, as far as they still say the same; returns how many became another memory.

    Rows that are locked are left for the next run.
    """
    ids = [each for group in groups for each in group]
    rows = (
        MemoryItem.objects.filter(pk__in=ids, archived_at__isnull=True, marked=False)
        .annotate(same=RawSQL(SAME, []))  # noqa: S611  (our own expression, without parameters)
        .order_by("scope", "same", "created_at", "pk")
        .select_for_update(no_key=True, skip_locked=True)
    )
    locked = list(rows)
    former = set(MemoryConsolidation.objects.filter(merged_id__in=ids).values_list("merged_id", flat=True))
    fresh = [row for row in locked if row.pk not in former]
    count = sum(_promote(list(group)) for _, group in groupby(fresh, key=lambda row: (row.scope, row.same)))
    if count:
        record(AuditEvent.MEMORIES_PROMOTED, data={"count": count})
    return count


def make_profile(fact: MemoryItem) -> MemoryItem:
    """Make a profile memory of a locked fact. Only a person's answer may call this.

    It is confirmed unless it is external: taint never drops, and nothing external is trusted.
    """
    return _raise_to(Level.PROFILE, [fact])


def level_of(row: MemoryItem) -> Level:
    return Level.RAW if row.tier == Tier.LOW_REINGESTION else Level(row.memory_type)


def events_of(row: MemoryItem) -> list[Event]:
    """All events of a memory. Its own row is one, unless it stands for those of its originals."""
    others = [parse_event(text) for text in row.events]
    if others and row.source_kind in (SourceKind.PROMOTION, SourceKind.KEPT_PROPOSAL):
        return others
    return [Event(str(row.session_id or "-"), row.reference, row.created_at), *others]


def _promote(rows: Sequence[MemoryItem]) -> int:
    """Promote memories of one scope that say the same; returns how many became another memory."""
    top = max((level_of(row) for row in rows), key=LADDER.index)
    if top is Level.RAW and not _is_statement(rows[0].content):
        return 0
    following = next_level(top, [event for row in rows for event in events_of(row)])
    if following and find_marks(rows[0].content):
        return 0
    highest = [row for row in rows if level_of(row) is top]
    if following in ASKED and len(rows) == 1:
        questions.ask_about_profile(rows[0])
        return 0
    if following and following not in ASKED:
        _raise_to(following, rows)
        return len(rows)
    promoted = [row for row in highest if row.source_kind != SourceKind.MEMORY_OP]
    if top is Level.RAW or (not promoted and len(highest) == len(rows)):
        return 0
    kept = (promoted or highest)[0]
    return _absorb(kept, [row for row in rows if row.pk != kept.pk and (promoted or level_of(row) is not top)])


def _raise_to(level: Level, rows: Sequence[MemoryItem]) -> MemoryItem:
    """Insert what these memories become, in their scope, and archive those that are not kept as said."""
    moment, first, newest = now(), rows[0], max(rows, key=lambda row: row.created_at)
    taint = join(*(Taint(row.taint) for row in rows))
    ends = [row.valid_until for row in rows if row.tier == Tier.ACTIVE] or [
        newest.created_at + timedelta(days=settings.MEMORY_DAYS)
    ]
    sessions = {row.session_id for row in rows}
    by_person = level in ASKED
    kept = MemoryItem.objects.create(
        scope=first.scope,
        content=first.content,
        memory_type=MemoryType(level.value).value,
        tier=Tier.ACTIVE,
        trust=Trust.VERIFIED if by_person and taint is not Taint.EXTERNAL else Trust.WORKING,
        taint=taint.value,
        source_kind=SourceKind.KEPT_PROPOSAL if by_person else SourceKind.PROMOTION,
        reference=f"{level.value}:{first.pk}",
        session_id=sessions.pop() if len(sessions) == 1 else None,
        created_at=newest.created_at,
        updated_at=moment,
        valid_until=None if None in ends else max(end for end in ends if end),
        tags=list(dict.fromkeys(tag for row in rows for tag in row.tags))[:MAX_WORDS],
        entity_refs=list(dict.fromkeys(name for row in rows for name in row.entity_refs))[:MAX_WORDS],
        links=[{"to": str(row.pk), "type": "promoted from"} for row in rows[:MAX_LINKS]],
        marked=any(row.marked for row in rows),
        events=_united(rows),
        used_at=max((row.used_at for row in rows if row.used_at), default=None),
        uses=sum(row.uses for row in rows),
        pinned=any(row.pinned for row in rows),
        embedding=first.embedding,
    )
    _archive(rows, kept, before=Taint(kept.taint))
    return kept


def _absorb(kept: MemoryItem, rows: Sequence[MemoryItem]) -> int:
    """Let what was said again count for the memory that says it already.

    A confirmed memory stays as it is: what is external says the same, and adds nothing to it.
    """
    if not rows:
        return 0
    if kept.trust == Trust.WORKING:
        kept.taint = join(*(Taint(row.taint) for row in (kept, *rows))).value
    kept.events, kept.updated_at = _united([kept, *rows]), now()
    kept.save(update_fields=["taint", "events", "updated_at"])
    _archive(rows, kept, before=Taint(kept.taint))
    return len(rows)


def _united(rows: Sequence[MemoryItem]) -> list[str]:
    return sorted({str(event) for row in rows for event in events_of(row)})[:MAX_EVENTS]


def _archive(rows: Sequence[MemoryItem], kept: MemoryItem, *, before: Taint) -> None:
    moment = now()
    MemoryItem.objects.filter(pk__in=[row.pk for row in rows if row.tier == Tier.ACTIVE]).update(
        archived_at=moment, archive_reason=ArchiveReason.PROMOTED, pinned=False
    )
    MemoryConsolidation.objects.bulk_create(
        MemoryConsolidation(
            tenant_id=current_tenant_id(),
            merged_id=row.pk,
            kept_id=kept.pk,
            reason=MergeReason.PROMOTED,
            taint_before=row.taint,
            taint_after=before.value,
            type_before=level_of(row).value,
            type_after=kept.memory_type,
            created_at=moment,
        )
        for row in rows
    )


def _is_statement(text: str) -> bool:
    """Whether what a visitor said is worth remembering because it is repeated: greetings and questions are not."""
    return "?" not in text and len(set(telling_words(text))) >= LEAST_WORDS
