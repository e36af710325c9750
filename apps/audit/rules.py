"""Hash entries and find where a chain is broken first. Pure (docs/audit-format.md).

Everything is text as exported, so that any changed byte is found. The chain's own links, the head row and the signed
checkpoints are three independent witnesses; the result is the lowest sequence number that any of them contradicts.
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
    """One entry as exported: everything that is hashed, and the hash."""

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
class ChainBreak:
    seq: int
    reason: str


@dataclass(frozen=True)
class Verification:
    """The result of a verification: how many entries are valid, the hash they end in, the first break if there is one,
    and notes about what could not be proven."""

    entries: int
    head: str
    broken: ChainBreak | None = None
    unproven: tuple[str, ...] = ()


def hashed_text(entry: Entry) -> str:
    """Return the canonical JSON that is hashed; `data` is text inside it (contract silas 14.1)."""
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


def compute_hash(entry: Entry) -> str:
    return sha256_hex(hashed_text(entry))


def key_id_of(public_key: bytes) -> str:
    return sha256_hex(public_key)[:16]


def signed_statement(checkpoint: Checkpoint) -> bytes:
    """Return the bytes that a checkpoint's signature covers."""
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
    """True if one of `keys` (public keys in hex by key id) signed the checkpoint. An id that is not the id of its key
    does not count."""
    try:
        public_key = bytes.fromhex(keys.get(checkpoint.key_id, ""))
        if key_id_of(public_key) != checkpoint.key_id:
            return False
        # Without `validate` other characters are dropped, and one signature would have many spellings.
        signature = base64.b64decode(checkpoint.signature, validate=True)
        Ed25519PublicKey.from_public_bytes(public_key).verify(signature, signed_statement(checkpoint))
    except (InvalidSignature, ValueError, binascii.Error):
        return False
    return True


def verify_entries(
    entries: Iterable[Entry],
    *,
    chain: str,
    head: Head,
    checkpoints: Iterable[Checkpoint],
    keys: Mapping[str, str],
    after: Head | None = None,
) -> Verification:
    """Walk `entries` (in order of seq, read once) and stop at the first break.

    `after` starts the walk behind an entry that is already trusted. Reasons: docs/audit-format.md.
    """
    last = after or Head()
    witnessed = _witnessed(checkpoints, chain, keys)
    for entry in entries:
        # What is not taken from `witnessed` here speaks of entries that are missing.
        broken = _fault(entry, chain, last) or _contradiction(entry, witnessed.pop(entry.seq, ()))
        if broken:
            return Verification(last.seq, last.entry_hash, broken)
        last = Head(entry.seq, entry.entry_hash)
    ends = [*_head_faults(last, head), *_beyond(last, witnessed)]
    return Verification(last.seq, last.entry_hash, min(ends, key=lambda end: end.seq, default=None))


def _witnessed(checkpoints: Iterable[Checkpoint], chain: str, keys: Mapping[str, str]) -> dict[int, list[str]]:
    """Return the hashes that checkpoints claim, by sequence number; an unsigned checkpoint claims `_UNSIGNED`."""
    claims: dict[int, list[str]] = {}
    for checkpoint in checkpoints:
        signed = checkpoint.chain == chain and is_signed(checkpoint, keys)
        claims.setdefault(checkpoint.seq, []).append(checkpoint.entry_hash if signed else _UNSIGNED)
    return claims


def _fault(entry: Entry, chain: str, last: Head) -> ChainBreak | None:
    if entry.seq > last.seq + 1:
        return ChainBreak(last.seq + 1, "missing")
    if entry.seq <= last.seq:
        return ChainBreak(entry.seq, "order")
    if entry.prev_hash != last.entry_hash:
        return ChainBreak(entry.seq, "link")
    if entry.chain != chain or compute_hash(entry) != entry.entry_hash:
        return ChainBreak(entry.seq, "content")
    return None


def _contradiction(entry: Entry, claims: Iterable[str]) -> ChainBreak | None:
    for claim in claims:
        if claim != entry.entry_hash:
            return ChainBreak(entry.seq, "checkpoint" if claim else "signature")
    return None


def _head_faults(last: Head, head: Head) -> Iterator[ChainBreak]:
    if head.seq > last.seq:
        yield ChainBreak(last.seq + 1, "tail")
    elif head.seq < last.seq:
        yield ChainBreak(max(head.seq, 0) + 1, "head")
    elif head.entry_hash != last.entry_hash:
        yield ChainBreak(last.seq, "head")


def _beyond(last: Head, claims: Mapping[int, list[str]]) -> Iterator[ChainBreak]:
    """Yield a break for each checkpoint of a missing entry: a signed one proves that the tail was cut off."""
    for seq, hashes in claims.items():
        if _UNSIGNED in hashes:
            yield ChainBreak(seq, "signature")
        elif seq > last.seq:
            yield ChainBreak(last.seq + 1, "tail")


# If the newest checkpoint is older than this, entries written since may have been cut off behind it.
STALE = timedelta(hours=1)


def unproven_notes(
    result: Verification,
    checkpoints: Iterable[Checkpoint],
    *,
    chain: str,
    pinned: Mapping[str, str],
    outside: Checkpoint | None,
    now: datetime,
) -> tuple[str, ...]:
    """Return what a chain without a break does not prove, in notes that all verifiers share (docs/audit-format.md)."""
    if not pinned:
        return ("no_pinned_key",)
    signed = (
        checkpoint
        for checkpoint in sorted(checkpoints, key=lambda checkpoint: checkpoint.seq, reverse=True)
        if checkpoint.chain == chain and is_signed(checkpoint, pinned)
    )
    newest = next(signed, None)
    notes = [] if outside else ["no_outside_copy"]
    if newest is None:
        return (*notes, "no_checkpoint") if result.entries else tuple(notes)
    if result.entries > newest.seq:
        notes.append(f"newest_entries={newest.seq + 1}-{result.entries}")
    if _moment(newest.created_at) < now - STALE:
        notes.append(f"old_checkpoint={newest.created_at}")
    return tuple(notes)


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return datetime.min.replace(tzinfo=UTC)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
