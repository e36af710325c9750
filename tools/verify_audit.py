#!/usr/bin/env python3
"""Check an exported audit chain, or the receipt of an erasure, without the platform that made it:
`verify_audit.py FILE [--key PUBLIC_KEY_HEX] [--checkpoints FILE]`,
`verify_audit.py --receipt RECEIPT [FILE] [--key PUBLIC_KEY_HEX]`: the receipt, and that the chain in FILE holds it.

Needs only the package `cryptography`. The format, the reasons and what this can and cannot prove: docs/audit-format.md.
Prints one line, and on stderr what holds but could not be proven. Exit 0 when the chain holds, 1 when it does not, 2
when the file cannot be read at all.
"""

import argparse
import base64
import hashlib
import json
import re
import sys
from datetime import UTC, datetime, timedelta

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

STALE = timedelta(hours=1)
HEADER = {"chain", "checkpoints", "exported_at", "format", "head", "keys", "tenant", "version"}
HEAD = {"entry_hash": str, "seq": int}
CHECKPOINT = {
    "chain": str,
    "count": int,
    "created_at": str,
    "entry_hash": str,
    "key_id": str,
    "seq": int,
    "signature": str,
}
ENTRY = {
    "actor": str,
    "chain": str,
    "data": str,
    "entry_hash": str,
    "entry_id": str,
    "event": str,
    "prev_hash": str,
    "seq": int,
    "subject": str,
    "timestamp": str,
}


class Broken(Exception):
    """The chain does not hold from entry `seq` on."""

    def __init__(self, seq, reason):
        super().__init__(reason)
        self.seq = seq
        self.reason = reason


def canonical(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def parsed(line, seq):
    """The line's object; a line that is not its own canonical form is refused."""
    try:
        row = json.loads(line)
        if isinstance(row, dict) and canonical(row) + "\n" == line:
            return row
    except (ValueError, RecursionError):
        pass
    raise Broken(seq, "format")


def shaped(row, shape, seq):
    if not isinstance(row, dict) or {name: type(value) for name, value in row.items()} != shape:
        raise Broken(seq, "format")
    return row


def read_header(line):
    header = parsed(line, 0)
    if set(header) != HEADER or header["format"] != "silas-audit" or header["version"] != 1:
        raise Broken(0, "format")
    named = isinstance(header["tenant"], str) and re.fullmatch(r"@?[A-Za-z0-9_-]{1,60}", header["tenant"])
    if not named or not isinstance(header["chain"], str):
        raise Broken(0, "format")
    shaped(header["head"], HEAD, 0)
    keys, count = header["keys"], header["checkpoints"]
    if not isinstance(keys, dict) or not all(isinstance(key, str) for key in keys.values()):
        raise Broken(0, "format")
    if type(count) is not int or count < 0:
        raise Broken(0, "format")
    return header


def is_signed(checkpoint, keys):
    statement = {name: checkpoint[name] for name in CHECKPOINT if name != "signature"}
    try:
        key = bytes.fromhex(keys.get(checkpoint["key_id"], ""))
        if hashlib.sha256(key).hexdigest()[:16] != checkpoint["key_id"]:
            return False
        signature = base64.b64decode(checkpoint["signature"], validate=True)
        Ed25519PublicKey.from_public_bytes(key).verify(signature, canonical(statement).encode())
    except (InvalidSignature, ValueError):
        return False
    return True


def read_claims(file, header, keys):
    """What each checkpoint says the hash at its place is; None without a trusted signature. And the signed ones."""
    claims, proofs = {}, []
    for _ in range(header["checkpoints"]):
        row = shaped(parsed(file.readline(), 0), CHECKPOINT, 0)
        signed = row["chain"] == header["chain"] and is_signed(row, keys)
        claims.setdefault(row["seq"], []).append(row["entry_hash"] if signed else None)
        proofs += [row] if signed else []
    return claims, proofs


def newest_outside(lines, chain, pinned):
    """Of the checkpoints kept elsewhere the one of this chain furthest on that a pinned key signed."""
    found = None
    for line in lines:
        try:
            row = shaped(json.loads(line), CHECKPOINT, 0)
        except (ValueError, RecursionError, Broken):
            continue
        if row["chain"] == chain and (found is None or row["seq"] > found["seq"]) and is_signed(row, pinned):
            found = row
    return found


def unproven(entries, proofs, pinned, outside):
    """What a chain without a break still does not prove."""
    if not pinned:
        return ["no_pinned_key"]
    newest = max(proofs, key=lambda row: row["seq"], default=None)
    notes = [] if outside else ["no_outside_copy"]
    if newest is None:
        return notes + (["no_checkpoint"] if entries else [])
    if entries > newest["seq"]:
        notes.append(f"newest_entries={newest['seq'] + 1}-{entries}")
    if moment(newest["created_at"]) < datetime.now(UTC) - STALE:
        notes.append(f"old_checkpoint={newest['created_at']}")
    return notes


def moment(text):
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return datetime.min.replace(tzinfo=UTC)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def check_entry(entry, chain, last, claims):
    seq, expected = entry["seq"], last["seq"] + 1
    if seq > expected:
        raise Broken(expected, "missing")
    if seq < expected:
        raise Broken(seq, "order")
    if entry["prev_hash"] != last["entry_hash"]:
        raise Broken(seq, "link")
    hashed = {name: entry[name] for name in ENTRY if name != "entry_hash"}
    digest = hashlib.sha256(canonical(hashed).encode()).hexdigest()
    if entry["chain"] != chain or digest != entry["entry_hash"]:
        raise Broken(seq, "content")
    for claim in claims:
        if claim != entry["entry_hash"]:
            raise Broken(seq, "signature" if claim is None else "checkpoint")


def check_end(last, head, claims):
    """The head row and the checkpoints that no entry answered: the lowest place that one of them contradicts."""
    found = []
    if head["seq"] > last["seq"]:
        found.append((last["seq"] + 1, "tail"))
    elif head["seq"] < last["seq"]:
        found.append((max(head["seq"], 0) + 1, "head"))
    elif head["entry_hash"] != last["entry_hash"]:
        found.append((last["seq"], "head"))
    for seq, hashes in claims.items():
        if None in hashes:
            found.append((seq, "signature"))
        elif seq > last["seq"]:
            found.append((last["seq"] + 1, "tail"))
    if found:
        raise Broken(*min(found, key=lambda place: place[0]))


def check(file, trusted, lines=()):
    """One line, whether it is good news, and what could not be proven."""
    name = "unknown"
    pinned = {hashlib.sha256(bytes.fromhex(key)).hexdigest()[:16]: key for key in trusted}
    try:
        header = read_header(file.readline())
        claims, proofs = read_claims(file, header, pinned or header["keys"])
        outside = newest_outside(lines, header["chain"], pinned)
        if outside:
            claims.setdefault(outside["seq"], []).append(outside["entry_hash"])
            proofs.append(outside)
        name = header["tenant"]
        last = {"seq": 0, "entry_hash": "genesis"}
        for place, line in enumerate(file, start=1):
            entry = shaped(parsed(line, place), ENTRY, place)
            check_entry(entry, header["chain"], last, claims.pop(entry["seq"], []))
            last = entry
        check_end(last, header["head"], claims)
    except Broken as broken:
        return f"broken tenant={name} seq={broken.seq} reason={broken.reason}", False, []
    notes = [f"unproven tenant={name} {note}" for note in unproven(last["seq"], proofs, pinned, outside)]
    return f"ok tenant={name} entries={last['seq']} head={last['entry_hash']}", True, notes


def signed_by(key, signature, statement):
    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(key)).verify(
            base64.b64decode(signature, validate=True), canonical(statement).encode()
        )
    except (InvalidSignature, ValueError, TypeError):
        return False
    return True


def check_receipt(text, trusted, log=None):
    """One line, whether it is good news, and what could not be proven. `log`: the lines of a chain that was checked."""
    try:
        signed = json.loads(text)
        if signed["format"] != "silas-erasure" or signed["version"] != 1:
            raise Broken(0, "format")
        receipt, entry = signed["receipt"], shaped(signed["entry"], ENTRY, 0)
        seq, name, digest = entry["seq"], str(receipt["erasure"]), hashlib.sha256(canonical(receipt).encode())
        statement = {"silas": "certificate-1", "kind": "erasure_receipt", "fields": receipt}
        if not any(signed_by(key, signed["signature"], statement) for key in trusted or [signed["key"]]):
            raise Broken(seq, "signature")
        hashed = {field: entry[field] for field in ENTRY if field != "entry_hash"}
        if hashlib.sha256(canonical(hashed).encode()).hexdigest() != entry["entry_hash"]:
            raise Broken(seq, "content")
        if entry["chain"] != receipt["chain"] or entry["event"] != "person_erased":
            raise Broken(seq, "content")
        if json.loads(entry["data"])["receipt"] != digest.hexdigest():
            raise Broken(seq, "receipt")
        if log is not None and canonical(entry) + "\n" not in log:
            raise Broken(seq, "missing")
    except Broken as broken:
        return f"broken receipt seq={broken.seq} reason={broken.reason}", False, []
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return "broken receipt seq=0 reason=format", False, []
    notes = [] if trusted else ["unproven receipt no_pinned_key"]
    notes += ["unproven receipt not_compared_with_a_log"] if log is None else []
    return f"ok receipt erasure={name} person={receipt['person']} seq={seq}", True, notes


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Check an exported audit chain, or the receipt of an erasure.")
    parser.add_argument("file", nargs="?")
    parser.add_argument("--receipt", help="the receipt of an erasure")
    parser.add_argument("--key", action="append", default=[], help="public key (hex) that must have signed")
    parser.add_argument("--checkpoints", help="checkpoints that were kept elsewhere")
    options = parser.parse_args(arguments)
    if not all(re.fullmatch("[0-9a-f]{64}", key) for key in options.key):
        print("--key is a public key of 64 hex digits", file=sys.stderr)
        return 2
    if not options.file and not options.receipt:
        parser.error("name a file")
    try:
        lines = []
        if options.checkpoints:
            with open(options.checkpoints, encoding="utf-8", errors="replace") as kept:
                lines = kept.read().splitlines()
        results = []
        if options.file:
            with open(options.file, encoding="utf-8", errors="surrogateescape", newline="\n") as file:
                results.append(check(file, frozenset(options.key), lines))
        if options.receipt:
            log = None
            if options.file:
                with open(options.file, encoding="utf-8", errors="surrogateescape", newline="\n") as file:
                    log = set(file)
            with open(options.receipt, encoding="utf-8", errors="surrogateescape") as file:
                results.append(check_receipt(file.read(), frozenset(options.key), log))
    except OSError as error:
        print(f"{error.filename} cannot be read: {error.strerror}", file=sys.stderr)
        return 2
    for line, _, notes in results:
        print(line)
        for note in notes:
            print(note, file=sys.stderr)
    return 0 if all(sound for _, sound, _ in results) else 1


if __name__ == "__main__":
    sys.exit(main())
