"""What does an entry hash to, and where is a chain broken? Pure (docs/audit-format.md)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from kernel.canonical import canonical_json, sha256_hex

GENESIS = "genesis"
_PREV, _SEQ = "\x00prev\x00", -1


@dataclass(frozen=True)
class Entry:
    """One entry as exported: everything that is hashed, and its two hashes."""

    chain: UUID
    seq: int
    entry_id: UUID
    event: str
    actor: str
    subject: str
    data: str
    timestamp: datetime
    prev_hash: str
    entry_hash: str


@dataclass(frozen=True)
class Break:
    seq: int
    reason: str


def hashed_text(entry: Entry) -> str:
    """The canonical JSON that is hashed; `data` is text inside it (contract silas 14.1)."""
    return canonical_json(
        {
            "actor": entry.actor,
            "chain": str(entry.chain),
            "data": entry.data,
            "entry_id": str(entry.entry_id),
            "event": entry.event,
            "prev_hash": entry.prev_hash,
            "seq": entry.seq,
            "subject": entry.subject,
            "timestamp": entry.timestamp.isoformat(),
        }
    )


def hash_of(entry: Entry) -> str:
    return sha256_hex(hashed_text(entry))


def hash_parts(entry: Entry) -> tuple[str, str, str]:
    """The hashed text cut where the database puts the previous hash and the sequence number."""
    text = hashed_text(entry)
    head, rest = text.split('"prev_hash":"', 1)
    _, tail = rest.split(',"subject":', 1)
    return head + '"prev_hash":"', '","seq":', ',"subject":' + tail


def breaks(entries: Iterable[Entry]) -> Iterator[Break]:
    """Every place where the chain does not hold, first first; reasons: missing, order, link, content."""
    expected, prev = 1, GENESIS
    for entry in entries:
        if entry.seq != expected:
            yield Break(expected, "missing" if entry.seq > expected else "order")
        elif entry.prev_hash != prev:
            yield Break(entry.seq, "link")
        elif hash_of(entry) != entry.entry_hash:
            yield Break(entry.seq, "content")
        expected, prev = entry.seq + 1, entry.entry_hash
