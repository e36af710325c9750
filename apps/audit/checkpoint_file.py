"""Keep checkpoints outside the database too, in a file that is only appended to (SILAS_CHECKPOINTS).

An owner of the database can drop checkpoints and cut the log behind them, but not in this file. A line is a checkpoint
as canonical JSON; other rooms keep lines of their own kind beside them (`apps.tenants.policy_pins`). Lines that no
pinned installation key signed are ignored.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable
from pathlib import Path

from django.conf import settings

from apps.audit.rules import Checkpoint, is_signed, key_id_of
from kernel import trust
from kernel.canonical import canonical_json

logger = logging.getLogger(__name__)
_SHAPE = {name: int if name in ("seq", "count") else str for name in Checkpoint.__dataclass_fields__}


def pinned_keys() -> dict[str, str]:
    """Return the pinned public keys by their id."""
    return {key_id_of(bytes.fromhex(root)): root for root in trust.roots()}


def append_checkpoint(checkpoint: Checkpoint) -> None:
    """Append a checkpoint. An error of the disk is only logged, because the audit log must go on without it."""
    try:
        append_line(canonical_json(vars(checkpoint)))
    except OSError as error:
        logger.error("audit_outside_copy_failed: %s", error.strerror)


def append_line(line: str) -> None:
    """Append a line to the file and sync it to disk. Raises `OSError`."""
    path = Path(settings.CHECKPOINTS_FILE)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "w") as file:
        file.write(f"{line}\n")
        file.flush()
        os.fsync(file.fileno())


def read_newest(path: Path | None = None) -> dict[str, Checkpoint]:
    """Return the newest checkpoint of each chain that a pinned key signed; empty if there is no file."""
    try:
        lines = (path or Path(settings.CHECKPOINTS_FILE)).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return {}
    return newest_by_chain(lines, pinned_keys())


def newest_by_chain(lines: Iterable[str], keys: dict[str, str]) -> dict[str, Checkpoint]:
    newest: dict[str, Checkpoint] = {}
    # From the end, so that only the last lines of each chain cost the verification of a signature.
    for line in reversed([*lines]):
        checkpoint = _read(line)
        if checkpoint is None:
            continue
        known = newest.get(checkpoint.chain)
        if (known is None or checkpoint.seq > known.seq) and is_signed(checkpoint, keys):
            newest[checkpoint.chain] = checkpoint
    return newest


def _read(line: str) -> Checkpoint | None:
    try:
        row = json.loads(line)
    except ValueError:
        return None
    if not isinstance(row, dict) or {name: type(value) for name, value in row.items()} != _SHAPE:
        return None
    return Checkpoint(**row)
