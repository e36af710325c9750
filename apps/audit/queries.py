"""Read the chains, for verification, export and the console.

`read_chain` reads head, checkpoints and entries as of one moment while writers go on; entries are streamed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar
from uuid import UUID

from django.db import OperationalError, connection, transaction
from django.db.models import Count, Q, QuerySet, TextField
from django.db.models.functions import Cast
from psycopg.errors import SerializationFailure

from apps.audit.models import AuditCheckpoint, AuditEntry, AuditHead, AuditKey
from apps.audit.rules import (
    PLATFORM_CHAIN,
    ChainBreak,
    Checkpoint,
    Entry,
    Head,
    Verification,
    verify_entries,
)
from kernel.tenancy import platform_scope, tenant_scope

PLATFORM_NAME = "@platform"
_BATCH = 5_000
_ATTEMPTS = 5
# Longer than any transaction: within this time the order of numbers and the order of timestamps may differ.
_SLACK = timedelta(hours=1)
_STAMP = re.compile(r"(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)(\.\d{1,6})?\+00")
T = TypeVar("T")


@dataclass(frozen=True)
class Chain:
    """One chain and its name for people: its tenant's slug, or `@platform`."""

    name: str
    id: UUID

    def scope(self, reason: str) -> AbstractContextManager[object]:
        return platform_scope(reason) if self.id == PLATFORM_CHAIN else tenant_scope(self.id)


@dataclass(frozen=True)
class ChainView:
    """A chain as of one moment. `entries` may be read once, inside the reader."""

    chain: Chain
    head: Head
    checkpoints: tuple[Checkpoint, ...]
    keys: dict[str, str]
    entries: Iterator[Entry]


def chains() -> list[Chain]:
    """Return every tenant's chain by slug, the platform's own last."""
    return [*_chains_of(_tenants()), Chain(PLATFORM_NAME, PLATFORM_CHAIN)]


def chain_of(tenant_id: UUID) -> Chain:
    """Return the chain of one tenant, which must exist."""
    (chain,) = _chains_of(_tenants().filter(pk=tenant_id))
    return chain


def moved_chains(known: Mapping[str, Checkpoint]) -> list[Chain]:
    """Return the tenants' chains that do not end where their known checkpoint says, and the platform's chain. Reads all
    heads in one statement, outside of any scope."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT chain, seq, entry_hash FROM audit_heads()")
        ends = {chain: (seq, entry_hash) for chain, seq, entry_hash in cursor.fetchall()}
    signed = {UUID(chain): (checkpoint.seq, checkpoint.entry_hash) for chain, checkpoint in known.items()}
    moved = [chain for chain, end in ends.items() if signed.get(chain) != end]
    return [*_chains_of(_tenants().filter(pk__in=moved)), Chain(PLATFORM_NAME, PLATFORM_CHAIN)]


def _tenants() -> Any:
    tenant_model: Any = AuditHead._meta.get_field("tenant").related_model  # apps.tenants is above this room
    return tenant_model.objects.order_by("slug")


def _chains_of(tenants: Any) -> list[Chain]:
    return [Chain(slug, tenant_id) for slug, tenant_id in tenants.values_list("slug", "pk")]


def find_chain(name: str) -> Chain | None:
    return next((chain for chain in chains() if chain.name == name), None)


def read_chain(chain: Chain, use: Callable[[ChainView], T]) -> T:
    """Call `use` with the chain as of one moment. It is called again if the platform's chain grew meanwhile."""
    for attempt in range(_ATTEMPTS):
        try:
            return _read_once(chain, use)
        # The platform's scope appends an entry to the chain that is read, which can conflict with another writer's.
        except OperationalError as error:
            if attempt == _ATTEMPTS - 1 or not isinstance(error.__cause__, SerializationFailure):
                raise
    raise AssertionError("unreachable")


def _read_once(chain: Chain, use: Callable[[ChainView], T]) -> T:
    with transaction.atomic(savepoint=False):
        with connection.cursor() as cursor:
            # Before the scope sets its own values: PostgreSQL takes this only before a transaction's first query.
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        with chain.scope("audit_verify"):
            parts = head_of(chain.id), checkpoints_of(chain.id), public_keys(), entries_of(chain.id)
            return use(ChainView(chain, *parts))


def verify_chain(chain: Chain) -> Verification:
    """Verify a whole chain from its first entry, outside of any scope."""

    def verify(view: ChainView) -> Verification:
        keys, checkpoints = view.keys, view.checkpoints
        return verify_entries(view.entries, chain=str(chain.id), head=view.head, checkpoints=checkpoints, keys=keys)

    return read_chain(chain, verify)


@dataclass(frozen=True)
class Proof:
    """An entry as it is hashed and exported, and the first signed checkpoint of the chain up to it or a later entry;
    None before the next one is signed. `broken`: where the chain from the entry to the checkpoint, or to its end,
    does not hold."""

    entry: Entry
    checkpoint: Checkpoint | None
    public_key: str
    broken: ChainBreak | None


def proof_of(chain: UUID, seq: int) -> Proof | None:
    """Return the proof of one entry, at a cost that grows with the distance to its checkpoint; None without the
    entry."""
    if entry_at(chain, seq) is None:
        return None
    later = AuditCheckpoint.objects.filter(chain=chain, seq__gte=seq).order_by("seq", "created_at")[:1]
    checkpoint = next(_checkpoints(later), None)
    end = Head(checkpoint.seq, checkpoint.entry_hash) if checkpoint else head_of(chain)
    before, keys = entry_at(chain, seq - 1), public_keys()
    entries = list(entries_of(chain, after=seq - 1, upto=end.seq))
    result = verify_entries(
        entries,
        chain=str(chain),
        head=end,
        checkpoints=[checkpoint] if checkpoint else [],
        keys=keys,
        after=Head(seq - 1, before.entry_hash) if before else None,
    )
    return Proof(entries[0], checkpoint, keys.get(checkpoint.key_id, "") if checkpoint else "", result.broken)


def head_of(chain: UUID) -> Head:
    row = AuditHead.objects.filter(chain=chain).first()
    return Head(row.seq, row.entry_hash) if row else Head()


def checkpoints_of(chain: UUID) -> tuple[Checkpoint, ...]:
    return tuple(_checkpoints(AuditCheckpoint.objects.filter(chain=chain).order_by("seq", "created_at")))


def newest_checkpoints(chain: UUID, limit: int = 100) -> list[Checkpoint]:
    """Return checkpoints, the highest number first."""
    return list(_checkpoints(AuditCheckpoint.objects.filter(chain=chain).order_by("-seq", "-created_at")[:limit]))


def newest_checkpoint(chain: UUID) -> Checkpoint | None:
    newest = AuditCheckpoint.objects.filter(chain=chain).order_by("-seq", "-created_at")[:1]
    return next(_checkpoints(newest), None)


def _checkpoints(rows: QuerySet[AuditCheckpoint]) -> Iterator[Checkpoint]:
    made = Cast("created_at", TextField())
    for chain, seq, entry_hash, created_at, key_id, signature in rows.values_list(
        "chain", "seq", "entry_hash", made, "key_id", "signature"
    ):
        yield Checkpoint(str(chain), seq, entry_hash, seq, _iso(created_at), key_id, signature)


def _iso(stamp: str) -> str:
    """Convert PostgreSQL's text of a timestamp to Python's. One that Python cannot hold stays, and will not hash."""
    match = _STAMP.fullmatch(stamp)
    if not match:
        return stamp
    day, clock, fraction = match.groups(default="")
    return f"{day}T{clock}{fraction and fraction.ljust(7, '0')}+00:00"


def public_keys() -> dict[str, str]:
    return dict(AuditKey.objects.values_list("key_id", "public_key"))


def entries_of(chain: UUID, *, after: int | None = None, upto: int | None = None) -> Iterator[Entry]:
    """Yield the chain's entries in order, from a server-side cursor."""
    rows = AuditEntry.objects.filter(chain=chain).order_by("seq")
    if after is not None:
        rows = rows.filter(seq__gt=after)
    if upto is not None:
        rows = rows.filter(seq__lte=upto)
    stamp_text = Cast("timestamp", TextField())
    values = rows.values_list(
        "chain", "seq", "entry_id", "event", "actor", "subject", "data", stamp_text, "prev_hash", "entry_hash"
    )
    for chain_id, seq, entry_id, event, actor, subject, data, stamp, prev_hash, entry_hash in values.iterator(_BATCH):
        yield Entry(str(chain_id), seq, str(entry_id), event, actor, subject, data, _iso(stamp), prev_hash, entry_hash)


def newest_entries(
    chain: UUID, *, below: int | None, limit: int, events: Collection[str] = (), where: Q | None = None
) -> list[AuditEntry]:
    """Return at most `limit` entries, newest first: with a number below `below`, of the given events if any are given,
    and matching `where`."""
    rows = AuditEntry.objects.filter(where or Q(), chain=chain).order_by("-seq")
    if below is not None:
        rows = rows.filter(seq__lt=below)
    if events:
        rows = rows.filter(event__in=events)
    return list(rows[:limit])


def within_period(chain: UUID, since: datetime | None, until: datetime | None) -> Q:
    """Return the condition for entries from `since` to before `until`.

    It also bounds the entries' numbers, so that only a short part of a long chain is read. Entries are numbered when
    they commit, so these bounds are an hour wider.
    """
    condition = Q()
    if since is not None:
        condition &= Q(timestamp__gte=since, seq__gt=_last_before(chain, since - _SLACK))
    if until is not None:
        condition &= Q(timestamp__lt=until, seq__lte=_last_before(chain, until + _SLACK))
    return condition


def count_entries(chain: UUID, where: Q) -> tuple[int, int]:
    """Return how many entries match, and about how many subjects."""
    counts = AuditEntry.objects.filter(where, chain=chain).aggregate(
        entries=Count("pk"), subjects=Count("subject", distinct=True)
    )
    return counts["entries"], counts["subjects"]


def _last_before(chain: UUID, moment: datetime) -> int:
    """Return the number of the last entry before `moment`, by binary search; 0 if there is none."""
    low, high = 0, head_of(chain).seq
    while low < high:
        middle = (low + high + 1) // 2
        if AuditEntry.objects.filter(chain=chain, seq=middle, timestamp__lt=moment).exists():
            low = middle
        else:
            high = middle - 1
    return low


def entries_about(chain: UUID, subjects: Collection[str], *, limit: int) -> list[AuditEntry]:
    """Return the first `limit` entries about one of these subjects, in order."""
    return list(AuditEntry.objects.filter(chain=chain, subject__in=list(subjects)).order_by("seq")[:limit])


def entry_at(chain: UUID, seq: int) -> AuditEntry | None:
    # A larger number does not fit the column, and the database would raise instead of finding nothing.
    if not 0 < seq < 2**63:
        return None
    entry: AuditEntry | None = AuditEntry.objects.filter(chain=chain, seq=seq).first()
    return entry
