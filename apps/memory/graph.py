"""Entities and relations of memories: read them in the background, and answer what was true when (spec 6.3).

Only memories that are recalled by themselves are read (`Tier.ACTIVE`); what is kept as said is not. Handler of
`Kind.MEMORY_READING`, on the queue `trusted`: no other worker may read memories (ADR 36). A run reads all that is not
read yet, so that one that was lost costs nothing. An entity belongs to the scope of its memories and joins no other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from uuid import UUID

from django.db.models import F, Q, QuerySet

from apps.bus import services as bus
from apps.bus.deliveries import Delivery
from apps.bus.enums import Kind
from apps.memory.dates import find_ranges
from apps.memory.enums import EntityKind, Predicate, Tier
from apps.memory.extraction import CUSTOMER, Named, Statement, canonical, normalise, read
from apps.memory.facts import Fact, timeline, true_at
from apps.memory.models import MemoryEntity, MemoryItem, MemoryRelation, may_be_recalled
from apps.memory.schemas import Scope
from kernel.clock import now
from kernel.taint import Taint
from kernel.tenancy import Read, built_once, current_tenant_id, in_scope

BATCH = 100
# How many relations of one scope a question reaches, the newest; how many steps it follows causes and names.
REACH, STEPS = 1_000, 3
# Relations that one memory keeps; of more, the oldest that ended are deleted.
MAX_RELATIONS = 60
_CUES = {
    Predicate.LIVES_IN: re.compile(r"\b(?:where|live|lives|living|moved?|address|home|city)\b", re.IGNORECASE),
    Predicate.WORKS_AT: re.compile(r"\b(?:works?|working|job|employer)\b", re.IGNORECASE),
    Predicate.PREFERS: re.compile(r"\b(?:prefers?|preferred|preferences?|rather|favou?rite|likes?)\b", re.IGNORECASE),
    Predicate.CALLED: re.compile(r"\b(?:called|names?|named)\b", re.IGNORECASE),
    Predicate.CAUSED_BY: re.compile(r"\b(?:why|cause|caused|because|reason|how come)\b", re.IGNORECASE),
}
_WORD = re.compile(r"[^\W_]{3,}")
_PLAIN_WORD = re.compile(r"[^\W_]+(?:-[^\W_]+)*")
_EMPTY_WORDS = frozenset(
    ("the", "and", "was", "were", "are", "has", "had", "have", "did", "does", "why", "what", "because", "that", "this")
)


def enqueue_reading() -> None:
    """Enqueue a run for the scope's company, due at once."""
    bus.enqueue(Kind.MEMORY_READING, scope_id=current_tenant_id())


async def handle_reading(delivery: Delivery) -> None:
    """Read memories until none is unread, in short transactions."""
    await read_all(delivery.tenant_id)


async def read_all(tenant_id: UUID) -> None:
    while await in_scope(tenant_id, read_batch):
        pass


def read_batch() -> bool:
    """Read entities and relations of some unread memories of the scope's company; True if there may be more.

    Locks the memories; what another run has locked is left to it.
    """
    unread = MemoryItem.objects.filter(tier=Tier.ACTIVE, read_at=None).order_by("created_at", "pk")
    items = list(unread.defer("embedding", "words").select_for_update(no_key=True, skip_locked=True)[:BATCH])
    for item in items:
        _store(item, read(item.content, written_at=item.updated_at, names=item.entity_refs))
    MemoryItem.objects.filter(pk__in=[item.pk for item in items]).update(read_at=now())
    return len(items) == BATCH


def _store(item: MemoryItem, statements: list[Statement]) -> None:
    """Add what the memory says and did not say before; end what it no longer says, from when it was changed."""
    said = {statement.says: statement for statement in statements}
    for relation in _relations_of(item).filter(Q(valid_to=None) | Q(valid_to__gt=item.updated_at)):
        if said.pop(_says(relation), None) is None:
            ends = max(relation.valid_from, item.updated_at)
            MemoryRelation.objects.filter(pk=relation.pk).update(valid_to=ends)
    entities = _entities(item.scope, said.values())
    MemoryRelation.objects.bulk_create([_relation_of(item, statement, entities) for statement in said.values()])
    kept = list(_relations_of(item).order_by(F("valid_to").desc(nulls_first=True)).values_list("pk", flat=True))
    if len(kept) > MAX_RELATIONS:
        MemoryRelation.objects.filter(pk__in=kept[MAX_RELATIONS:]).delete()


def _relations_of(item: MemoryItem) -> QuerySet[MemoryRelation]:
    rows: QuerySet[MemoryRelation] = MemoryRelation.objects.filter(memory=item).select_related("subject", "object")
    return rows


def _says(relation: MemoryRelation) -> tuple[str, str, str, str]:
    target = relation.object.name if relation.object else ""
    return relation.subject.name, relation.predicate, target, canonical(relation.value)


def _relation_of(item: MemoryItem, statement: Statement, entities: dict[str, MemoryEntity]) -> MemoryRelation:
    return MemoryRelation(
        tenant_id=item.tenant_id,
        memory=item,
        subject=entities[statement.subject.name],
        predicate=statement.predicate,
        object=entities[statement.object.name] if statement.object else None,
        value=statement.value,
        valid_from=statement.since or min(item.updated_at, statement.until or item.updated_at),
        valid_to=statement.until,
        confidence=statement.confidence,
        created_at=item.updated_at,
    )


def _entities(scope: str, statements: Iterable[Statement]) -> dict[str, MemoryEntity]:
    """The entities that the statements name, by name. The rows are locked, in the order of their names."""
    named: dict[str, Named] = {}
    for statement in statements:
        for each in (statement.subject, statement.object):
            if each is not None:
                named.setdefault(each.name, each)
    rows = [
        MemoryEntity(
            tenant_id=current_tenant_id(),
            scope=scope,
            kind=named[name].kind,
            name=name,
            aliases=[named[name].said],
            created_at=now(),
        )
        for name in sorted(named)
    ]
    # To set a name to itself changes nothing and locks the row.
    MemoryEntity.objects.bulk_create(
        rows, update_conflicts=True, unique_fields=["tenant", "scope", "name"], update_fields=["name"]
    )
    entities = {entity.name: entity for entity in MemoryEntity.objects.filter(scope=scope, name__in=named)}
    for name, entity in entities.items():
        said = named[name].said
        if said not in entity.aliases and len(entity.aliases) < 10:
            entity.aliases = [*entity.aliases, said]
            entity.save(update_fields=["aliases"])
    return entities


def facts(scopes: Iterable[Scope], *, about: str = "", at: datetime | None = None) -> list[Fact]:
    """What memories of these scopes say was true at a moment (now), of everything or of one entity, oldest first."""
    rows = _relations(scopes).exclude(predicate=Predicate.MENTIONED)
    if about:
        rows = rows.filter(subject__name=canonical(about))
    return true_at(map(_fact, rows), at or now())


def newest_relations(scopes: Iterable[Scope]) -> Read[list[MemoryRelation]]:
    """What `rank_by_entity` ranks."""
    return _newest_relations.rows([str(scope) for scope in scopes], now())


@built_once
def _newest_relations(scopes: list[str], at: datetime) -> QuerySet[MemoryRelation]:
    return _relations(scopes, at)[:REACH]


def _relations(scopes: Iterable[Scope | str], at: datetime | None = None) -> QuerySet[MemoryRelation]:
    """The newest relations of memories in these scopes that are recalled by themselves, not expired, not archived."""
    rows: QuerySet[MemoryRelation] = MemoryRelation.objects.filter(
        may_be_recalled("memory__", at=at),
        memory__scope__in=[str(scope) if isinstance(scope, Scope) else scope for scope in scopes],
        memory__tier=Tier.ACTIVE,
    )
    related = rows.select_related("subject", "object", "memory").defer("memory__embedding", "memory__words")
    return related.order_by("-created_at", "-pk")


def _fact(relation: MemoryRelation) -> Fact:
    return Fact(
        memory_id=relation.memory_id,
        scope=relation.subject.scope,
        subject=relation.subject.name,
        predicate=Predicate(relation.predicate),
        value=str(relation.object) if relation.object else relation.value,
        since=relation.valid_from,
        until=relation.valid_to,
        written_at=relation.created_at,
        taint=Taint(relation.memory.taint),
        confidence=relation.confidence,
    )


def rank_by_entity(rows: Sequence[MemoryRelation], question: str) -> list[UUID]:
    """The memories of these relations about what a question names, best first: what it asks for, what is true now, the
    newest.

    One step further: what is said of that which those memories name. Of the customer themselves, who is meant by nearly
    every question, only what the question asks for.
    """
    asked = f" {_plain(question)} "
    known = {row.subject for row in rows} | {row.object for row in rows if row.object}
    named = {entity.pk for entity in known if entity.kind != EntityKind.EVENT and _is_named(entity, asked)}
    cues = {predicate for predicate, cue in _CUES.items() if cue.search(question)}
    if not named:
        return []
    direct = [row for row in rows if _about(row, named, cues)]
    reached = {row.object_id for row in direct if row.object_id} - named
    further = [row for row in rows if row.subject_id in reached and row not in direct]
    current = {fact.memory_id for fact in true_at(map(_fact, rows), now())}
    direct.sort(key=lambda row: (row.predicate not in cues, row.memory_id not in current))
    return list(dict.fromkeys(row.memory_id for row in (*direct, *further)))


def _about(row: MemoryRelation, named: set[UUID], cues: set[Predicate]) -> bool:
    if row.subject_id in named:
        return row.subject.name != CUSTOMER or row.predicate in cues
    return row.object_id in named


def _is_named(entity: MemoryEntity, asked: str) -> bool:
    """Whether the question names it; an order also by its number alone."""
    words = _plain(entity.name).split()
    if not words:
        return False
    by_number = entity.kind == EntityKind.REFERENCE and f" {words[-1]} " in asked
    return by_number or f" {' '.join(words)} " in asked


def _plain(text: str) -> str:
    return " ".join(_PLAIN_WORD.findall(normalise(text)))


def asks_for_cause(question: str) -> bool:
    return bool(_CUES[Predicate.CAUSED_BY].search(question))


def rank_by_cause(scopes: Iterable[Scope], question: str) -> list[UUID]:
    """Memories that say why, best first: of the events that share the most words with the question, then their causes
    and effects, step by step. Two texts tell of the same event if they have the same words."""
    rows = list(_relations(scopes).filter(predicate=Predicate.CAUSED_BY)[:REACH])
    asked = _words(question)
    ends = {row.pk: (_words(row.subject.name), _words(row.object.name)) for row in rows if row.object}
    shared = {row.pk: max(len(words & asked) for words in ends[row.pk]) for row in rows}
    least = max(1, (len(asked) + 1) // 2)
    ranked = sorted((row for row in rows if shared[row.pk] >= least), key=lambda row: -shared[row.pk])
    reached = {words for row in ranked for words in ends[row.pk]}
    for _ in range(STEPS):
        further = [row for row in rows if row not in ranked and reached & set(ends[row.pk])]
        ranked += further
        reached |= {words for row in further for words in ends[row.pk]}
    return list(dict.fromkeys(row.memory_id for row in ranked))


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.casefold())) - _EMPTY_WORDS


def rank_by_time(scopes: Iterable[Scope], question: str, *, tiers: Iterable[Tier]) -> list[UUID]:
    """Memories of the times that a question names, best first: of what began then, written then, true then."""
    ranges = find_ranges(question, today=now().date())
    if not ranges:
        return []
    scopes = list(scopes)
    told = timeline(map(_fact, _relations(scopes).exclude(predicate=Predicate.MENTIONED)[:REACH]))
    began = [fact.memory_id for fact in told if any(start <= fact.since < end for start, end, *_ in ranges)]
    lasted = [
        fact.memory_id
        for fact in told
        if any(fact.since < end and (fact.until is None or start < fact.until) for start, end, *_ in ranges)
    ]
    written = Q(pk__in=[])
    for start, end, *_ in ranges:
        written |= Q(created_at__gte=start, created_at__lt=end)
    items = MemoryItem.objects.filter(
        written, may_be_recalled(), scope__in=[str(scope) for scope in scopes], tier__in=list(tiers)
    )
    return list(dict.fromkeys([*began, *items.values_list("pk", flat=True)[:REACH], *lasted]))
