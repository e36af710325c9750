"""Figures of the benchmarks, each beside a baseline measured in the same run."""

from __future__ import annotations

import dataclasses
import json
import os
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

RESULTS = Path(__file__).with_name("results") / "latest.json"
HEAD = ("figure", "value", "baseline", "", "ratio", "bound", "")


@dataclasses.dataclass(frozen=True)
class Row:
    """One figure. `bound` is the promise in words; `holds` says whether it was kept, None where nothing is promised."""

    name: str
    value: float
    unit: str
    baseline_name: str
    baseline: float
    ratio: float
    bound: str = ""
    holds: bool | None = None


def table(rows: Sequence[Row]) -> str:
    """Aligned columns for the screen."""
    lines = [HEAD, *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEAD))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def write(rows: Sequence[Row], path: Path = RESULTS) -> None:
    path.parent.mkdir(exist_ok=True)
    found = {
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "rows": [dataclasses.asdict(row) for row in rows],
    }
    path.write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def machine() -> dict[str, object]:
    """What the figures were measured on, and how busy it was."""
    names = [line.split(":", 1)[1].strip() for line in _cpuinfo() if line.startswith("model name")]
    return {
        "cpu": names[0] if names else platform.processor(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "load": os.getloadavg()[0],
    }


def _cpuinfo() -> list[str]:
    source = Path("/proc/cpuinfo")
    return source.read_text().splitlines() if source.exists() else []


def _cells(row: Row) -> tuple[str, ...]:
    verdict = {True: "ok", False: "MISSED", None: ""}[row.holds]
    value, baseline = (f"{number:.3g} {row.unit}".strip() for number in (row.value, row.baseline))
    return (row.name, value, baseline, row.baseline_name, f"{row.ratio:.2f}", row.bound, verdict)
