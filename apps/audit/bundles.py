"""Write and verify exported chains: JSON lines with a header, checkpoints and entries, which anyone can verify.

Every line is canonical JSON with exactly the fields of its kind; any other line is a fault at its position
(docs/audit-format.md).
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields, replace
from itertools import chain as joined
from pathlib import Path
from typing import Any, TextIO

from apps.audit.checkpoint_file import newest_by_chain
from apps.audit.checkpoints import write_checkpoint
from apps.audit.queries import Chain, ChainView, read_chain
from apps.audit.rules import (
    ChainBreak,
    Checkpoint,
    Entry,
    Head,
    Verification,
    key_id_of,
    unproven_notes,
    verify_entries,
)
from kernel.canonical import canonical_json
from kernel.clock import now

FORMAT, VERSION = "silas-audit", 1
_NAME = re.compile(r"@?[A-Za-z0-9_-]{1,60}\Z")
_HEADER = {"chain", "checkpoints", "exported_at", "format", "head", "keys", "tenant", "version"}


class BundleFault(Exception):
    """A line cannot be read. `seq` is the position of the entry, 0 before the first."""

    def __init__(self, seq: int) -> None:
        super().__init__(f"unreadable at {seq}")
        self.seq = seq


@dataclass(frozen=True)
class Bundle:
    tenant: str
    chain: str
    head: Head
    keys: dict[str, str]
    checkpoints: tuple[Checkpoint, ...]
    entries: Iterator[Entry]


def write_bundle(view: ChainView, path: Path) -> None:
    with path.open("w", encoding="ascii", newline="\n") as file:
        header = {
            "chain": str(view.chain.id),
            "checkpoints": len(view.checkpoints),
            "exported_at": now().isoformat(),
            "format": FORMAT,
            "head": asdict(view.head),
            "keys": view.keys,
            "tenant": view.chain.name,
            "version": VERSION,
        }
        file.write(canonical_json(header) + "\n")
        file.writelines(canonical_json(vars(row)) + "\n" for row in joined(view.checkpoints, view.entries))


def export_chain(chain: Chain) -> bytes:
    """Return a chain as a bundle, with a fresh checkpoint if this process holds the signing key. Outside of any
    scope."""
    write_checkpoint(chain)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bundle"
        read_chain(chain, lambda view: write_bundle(view, path))
        return path.read_bytes()


def verify_bundle(
    file: TextIO, *, trusted_keys: frozenset[str] = frozenset(), kept: Iterable[str] = ()
) -> tuple[str, Verification]:
    """Return the chain's name and the same result that the exporting database would give.

    `trusted_keys` are public keys in hex; if given, a checkpoint of any other key counts as unsigned. `kept` are lines
    of checkpoints that were kept elsewhere, of which only those of the trusted keys count.
    """
    try:
        bundle = read_bundle(file)
    except BundleFault as fault:
        return "unknown", _unreadable(fault)
    pinned = {key_id_of(bytes.fromhex(key)): key for key in trusted_keys}
    keys = pinned or bundle.keys
    outside = newest_by_chain(kept, pinned).get(bundle.chain)
    claims = [*bundle.checkpoints, *([outside] if outside else [])]
    try:
        result = verify_entries(bundle.entries, chain=bundle.chain, head=bundle.head, checkpoints=claims, keys=keys)
        left = unproven_notes(result, claims, chain=bundle.chain, pinned=pinned, outside=outside, now=now())
        result = replace(result, unproven=() if result.broken else left)
    except BundleFault as fault:
        result = _unreadable(fault)
    return bundle.tenant, result


def _unreadable(fault: BundleFault) -> Verification:
    return Verification(max(fault.seq - 1, 0), "", ChainBreak(fault.seq, "format"))


def read_bundle(file: TextIO) -> Bundle:
    """Read header and checkpoints at once, entries lazily. Raises `BundleFault`."""
    header = _parsed(file.readline(), 0)
    if set(header) != _HEADER or header["format"] != FORMAT or header["version"] != VERSION:
        raise BundleFault(0)
    head, keys, count = header["head"], header["keys"], header["checkpoints"]
    if not (isinstance(header["tenant"], str) and _NAME.match(header["tenant"]) and isinstance(header["chain"], str)):
        raise BundleFault(0)
    # `type() is int`, because True is an int as well.
    if not (_has_shape(head, Head) and _is_texts(keys) and type(count) is int and count >= 0):
        raise BundleFault(0)
    checkpoints = tuple(Checkpoint(**_row(file.readline(), Checkpoint, 0)) for _ in range(count))
    return Bundle(header["tenant"], header["chain"], Head(**head), keys, checkpoints, _entries(file))


def _entries(file: TextIO) -> Iterator[Entry]:
    for seq, line in enumerate(file, start=1):
        yield Entry(**_row(line, Entry, seq))


def _row(line: str, shape: type, seq: int) -> dict[str, Any]:
    row = _parsed(line, seq)
    if not _has_shape(row, shape):
        raise BundleFault(seq)
    return row


def _parsed(line: str, seq: int) -> dict[str, Any]:
    try:
        row = json.loads(line)
        if isinstance(row, dict) and line == canonical_json(row) + "\n":
            return row
    except (ValueError, RecursionError):
        pass
    raise BundleFault(seq)


def _has_shape(row: object, shape: type) -> bool:
    """True if the row has exactly the fields of the dataclass, each text or an integer as declared."""
    declared = {field.name: int if field.type == "int" else str for field in fields(shape)}
    return isinstance(row, dict) and {name: type(value) for name, value in row.items()} == declared


def _is_texts(keys: object) -> bool:
    return isinstance(keys, dict) and all(isinstance(value, str) for value in keys.values())
