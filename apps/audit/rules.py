"""What does an entry hash to, and where is a chain broken first? Pure (docs/audit-format.md).

Everything is text as exported, so that a byte changed anywhere changes a verdict. The chain's own links, the head row
and the signed checkpoints are three witnesses; the lowest sequence number that any of them contradicts is the answer.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from kernel.canonical import canonical_bytes, canonical_json, sha256_hex

GENESIS = "genesis"
PLATFORM_CHAIN = UUID(int=0)
_UNSIGNED = ""


@dataclass(frozen=True)
class Entry:
    """One entry as exported: everything that is hashed, and its hash."""

    chain: str
    seq: int
    entry_id: str
    event: str
    actor: str
    subject: str
    data: str
    timestamp: str
    prev_hash: str
    entry_hash: str


@dataclass(frozen=True)
class Head:
    """Where a chain ends: its last sequence number and that entry's hash."""

    seq: int = 0
    entry_hash: str = GENESIS


@dataclass(frozen=True)
class Checkpoint:
    """A signed statement about the chain's first `seq` entries; `signature` is base64."""

    chain: str
    seq: int
    entry_hash: str
    count: int
    created_at: str
    key_id: str
    signature: str


@dataclass(frozen=True)
class Break:
    seq: int
    reason: str


@dataclass(frozen=True)
class Finding:
    """What a verification saw: how many entries held, the hash they end in, the first break if there is one, and in
    words what it could not prove."""

    entries: int
    head: str
    broken: Break | None = None
    unproven: tuple[str, ...] = ()


def hashed_text(entry: Entry) -> str:
    """The canonical JSON that is hashed; `data` is text inside it (contract silas 14.1)."""
    return canonical_json(
        {
            "actor": entry.actor,
            "chain": entry.chain,
            "data": entry.data,
            "entry_id": entry.entry_id,
            "event": entry.event,
            "prev_hash": entry.prev_hash,
            "seq": entry.seq,
            "subject": entry.subject,
            "timestamp": entry.timestamp,
        }
    )


def hash_of(entry: Entry) -> str:
    return sha256_hex(hashed_text(entry))


def key_id_of(public_key: bytes) -> str:
    return sha256_hex(public_key)[:16]


def statement(checkpoint: Checkpoint) -> bytes:
    """The bytes that a checkpoint's signature covers."""
    return canonical_bytes(
        {
            "chain": checkpoint.chain,
            "count": checkpoint.count,
            "created_at": checkpoint.created_at,
            "entry_hash": checkpoint.entry_hash,
            "key_id": checkpoint.key_id,
            "seq": checkpoint.seq,
        }
    )


def is_signed(checkpoint: Checkpoint, keys: Mapping[str, str]) -> bool:
    """`keys`: public keys in hex by key id. An id that is not its key's own is no key."""
    try:
        public_key = bytes.fromhex(keys.get(checkpoint.key_id, ""))
        if key_id_of(public_key) != checkpoint.key_id:
            return False
        signature = base64.b64decode(checkpoint.signature, validate=True)
        Ed25519PublicKey.from_public_bytes(public_key).verify(signature, statement(checkpoint))
    except (InvalidSignature, ValueError, binascii.Error):
        return False
    return True


def inspect(
    entries: Iterable[Entry],
    *,
    chain: str,
    head: Head,
    checkpoints: Iterable[Checkpoint],
    keys: Mapping[str, str],
    after: Head | None = None,
) -> Finding:
    """Walk `entries` (in order of seq, read once) and stop at the first break.

    `after` starts the walk behind an entry that is already trusted. Reasons: docs/audit-format.md.
    """
    last = after or Head()
    witnessed = _witnessed(checkpoints, chain, keys)
    for entry in entries:
        broken = _fault(entry, chain, last) or _contradiction(entry, witnessed.pop(entry.seq, ()))
        if broken:
            return Finding(last.seq, last.entry_hash, broken)
        last = Head(entry.seq, entry.entry_hash)
    ends = [*_head_faults(last, head), *_beyond(last, witnessed)]
    return Finding(last.seq, last.entry_hash, min(ends, key=lambda found: found.seq, default=None))


def _witnessed(checkpoints: Iterable[Checkpoint], chain: str, keys: Mapping[str, str]) -> dict[int, list[str]]:
    """The hashes that checkpoints claim per sequence number; a checkpoint that nobody signed claims `_UNSIGNED`."""
    claims: dict[int, list[str]] = {}
    for checkpoint in checkpoints:
        signed = checkpoint.chain == chain and is_signed(checkpoint, keys)
        claims.setdefault(checkpoint.seq, []).append(checkpoint.entry_hash if signed else _UNSIGNED)
    return claims


def _fault(entry: Entry, chain: str, last: Head) -> Break | None:
    if entry.seq > last.seq + 1:
        return Break(last.seq + 1, "missing")
    if entry.seq <= last.seq:
        return Break(entry.seq, "order")
    if entry.prev_hash != last.entry_hash:
        return Break(entry.seq, "link")
    if entry.chain != chain or hash_of(entry) != entry.entry_hash:
        return Break(entry.seq, "content")
    return None


def _contradiction(entry: Entry, claims: Iterable[str]) -> Break | None:
    for claim in claims:
        if claim != entry.entry_hash:
            return Break(entry.seq, "checkpoint" if claim else "signature")
    return None


def _head_faults(last: Head, head: Head) -> Iterator[Break]:
    if head.seq > last.seq:
        yield Break(last.seq + 1, "tail")
    elif head.seq < last.seq:
        yield Break(max(head.seq, 0) + 1, "head")
    elif head.entry_hash != last.entry_hash:
        yield Break(last.seq, "head")


def _beyond(last: Head, claims: Mapping[int, list[str]]) -> Iterator[Break]:
    """Checkpoints of entries that are not there: signed ones prove that the tail was cut."""
    for seq, hashes in claims.items():
        if _UNSIGNED in hashes:
            yield Break(seq, "signature")
        elif seq > last.seq:
            yield Break(last.seq + 1, "tail")


# A checkpoint that is older than this is no fresh one: entries made since may have been cut off behind it.
STALE = timedelta(hours=1)


def unproven(
    finding: Finding,
    checkpoints: Iterable[Checkpoint],
    *,
    chain: str,
    pinned: Mapping[str, str],
    outside: Checkpoint | None,
    now: datetime,
) -> tuple[str, ...]:
    """What a chain without a break still does not prove, in words that the verifiers share (docs/audit-format.md)."""
    if not pinned:
        return ("no_pinned_key",)
    latest_first = sorted(checkpoints, key=lambda each: each.seq, reverse=True)
    newest = next((each for each in latest_first if each.chain == chain and is_signed(each, pinned)), None)
    notes = [] if outside else ["no_outside_copy"]
    if newest is None:
        return (*notes, "no_checkpoint") if finding.entries else tuple(notes)
    if finding.entries > newest.seq:
        notes.append(f"newest_entries={newest.seq + 1}-{finding.entries}")
    if _moment(newest.created_at) < now - STALE:
        notes.append(f"old_checkpoint={newest.created_at}")
    return tuple(notes)


def _moment(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return datetime.min.replace(tzinfo=UTC)
    return found if found.tzinfo else found.replace(tzinfo=UTC)
