"""Remember outside the database which version of each policy list was sealed last (ADR 100).

A line of the file SILAS_CHECKPOINTS names a tenant and, by kind, the version and hash of the list that was sealed,
certified by the installation key. Lines are only appended. A list that is older than its pin, or has none, does not
verify: an attacker with database access cannot restore an older certified list, and a missing or unreadable file fails
closed. A version above its pin verifies, because a pin is written after its COMMIT and may be read from a copy that
lags behind. Each process caches what it has read."""

from __future__ import annotations

import functools
import json
import logging
import os
import threading
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

from django.conf import settings

from apps.audit import checkpoint_file
from apps.tenants.enums import PolicyKind
from kernel import trust
from kernel.canonical import canonical_json, sha256_hex
from kernel.clock import now
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError

_log = logging.getLogger(__name__)
CERTIFICATE = "policy_pin"
# A reader may see an older version than a concurrent one; after this long an older version counts as restored.
OVERTAKEN_SECONDS = 60.0


@dataclass(frozen=True)
class Pin:
    """`since`: when the version became the active one, on this process' monotonic clock."""

    version: int
    digest: str
    since: float


def pin(tenant_id: UUID, sealed: Mapping[PolicyKind, tuple[int, str]], *, signing_key: str = "") -> None:
    """Append one line with the version and the text of the list that was sealed, for each of these kinds.

    Raises `SilasError("policy_pin_failed")` 503 when the file cannot be written.
    """
    digests = {kind.value: [version, digest_of(text)] for kind, (version, text) in sealed.items()}
    fields = {"tenant": str(tenant_id), "policy": digests, "at": now().isoformat()}
    certificate = trust.certify(CERTIFICATE, fields, signing_key=signing_key)
    try:
        checkpoint_file.append_line(canonical_json({**fields, "certificate": certificate}))
    except OSError as error:
        _log.error("policy_pin_failed tenant=%s: %s", tenant_id, error.strerror)
        raise SilasError(ErrorCode.POLICY_PIN_FAILED) from None


def pin_of(tenant_id: UUID, kind: PolicyKind) -> Pin | None:
    """The newest pinned version of the list."""
    with _lock:
        _read_new_lines()
        _verify_lines(tenant_id)
        return _pins.get((tenant_id, kind))


def learn(tenant_id: UUID, kind: PolicyKind, version: int, text: str) -> None:
    """Remember a certified version that is above its pin."""
    with _lock:
        _remember(tenant_id, kind, Pin(version, digest_of(text), time.monotonic()))


@functools.lru_cache(maxsize=1024)
def digest_of(text: str) -> str:
    return sha256_hex(text)


class _Place(NamedTuple):
    """How far the file was read."""

    path: str
    inode: int
    offset: int


_pins: dict[tuple[UUID, PolicyKind], Pin] = {}
# Lines of each tenant whose certificates were not verified yet.
_unread: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
_place = _Place("", 0, 0)
_lock = threading.Lock()


def _read_new_lines() -> None:
    """Read the lines that were appended since the last read; all of them if the file was replaced."""
    global _place
    path = settings.CHECKPOINTS_FILE
    try:
        stat = os.stat(path)
        # A file that was replaced or shortened is read from its beginning.
        start = _place.offset if (path, stat.st_ino) == _place[:2] and stat.st_size >= _place.offset else 0
        if start == stat.st_size:
            return
        with Path(path).open("rb") as file:
            file.seek(start)
            fresh = file.read()
    except OSError as error:
        if _place.path != path or _place.inode:
            _log.error("policy_pins_unreadable: %s", error.strerror)
        _place = _Place(path, 0, 0)
        return
    # A line that is being written is read once it is whole.
    whole = fresh[: fresh.rfind(b"\n") + 1]
    _place = _Place(path, stat.st_ino, start + len(whole))
    for line in whole.splitlines():
        if b'"policy":' in line and (row := _parsed(line)):
            _unread[row["tenant"]].append(row)


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        row = json.loads(line)
    except ValueError:
        return None
    types = {"tenant": str, "policy": dict, "at": str, "certificate": str}
    is_pin = isinstance(row, dict) and {name: type(value) for name, value in row.items()} == types
    return row if is_pin else None


def _verify_lines(tenant_id: UUID) -> None:
    for row in _unread.pop(str(tenant_id), []):
        fields = {name: value for name, value in row.items() if name != "certificate"}
        # A process that can write the file but has no signing key cannot raise or lower a pin.
        if not trust.is_certified(CERTIFICATE, fields, row["certificate"]):
            continue
        age = (now() - datetime.fromisoformat(row["at"])).total_seconds()
        for kind, (version, digest) in row["policy"].items():
            if kind in PolicyKind.values:
                _remember(tenant_id, PolicyKind(kind), Pin(version, digest, time.monotonic() - max(age, 0.0)))


def _remember(tenant_id: UUID, kind: PolicyKind, fresh: Pin) -> None:
    known = _pins.get((tenant_id, kind))
    if known is None or fresh.version > known.version:
        _pins[tenant_id, kind] = fresh
