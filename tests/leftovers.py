"""What did an earlier run of the tests leave behind? Folders of their servers, when the run was killed.

A folder counts as left when it is old and no process works inside: a run that is alive has its PostgreSQL there.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterable
from pathlib import Path

import psutil

_PREFIXES = ("silas-tests-", "silas-faults-", "silas-chaos-")
_OLD_SECONDS = 600.0


def sweep(root: Path, *, prefixes: Iterable[str] = _PREFIXES, older_than: float = _OLD_SECONDS) -> None:
    """Remove the left folders directly under `root`; what cannot be removed stays."""
    begun = time.time() - older_than
    old = [path for prefix in prefixes for path in root.glob(f"{prefix}*") if _changed(path) < begun]
    used = _working_places() if old else set()
    for path in old:
        if not any(place.is_relative_to(path) for place in used):
            shutil.rmtree(path, ignore_errors=True)


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return float("inf")


def _working_places() -> set[Path]:
    return {Path(process.info["cwd"]) for process in psutil.process_iter(["cwd"]) if process.info["cwd"]}
