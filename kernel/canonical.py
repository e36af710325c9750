"""Serialise values to canonical JSON, so that everyone who hashes a value hashes the same bytes (contract silas 0).

Sorted keys, no spaces, non-ASCII escaped, UTF-8. Callers dump nested models before they call this.
"""

from __future__ import annotations

import hashlib
import json

# NaN and infinity are no JSON: another program could not read, and so not hash, the same bytes.
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


def canonical_json(value: object) -> str:
    return _ENCODER.encode(value)


def canonical_bytes(value: object) -> bytes:
    return canonical_json(value).encode("utf-8")


def sha256_hex(value: object) -> str:
    """SHA-256 of bytes as they are, of text as UTF-8, of anything else as canonical JSON."""
    if isinstance(value, str):
        value = value.encode("utf-8")
    if not isinstance(value, bytes):
        value = canonical_bytes(value)
    return hashlib.sha256(value).hexdigest()
