"""`python -m bench [NAME…]`: run every benchmark, or those named, print one table and write bench/results/latest.json.
`python -m bench scale` runs those of `SCALE`, which take long or several processes.

Each runs in a process of its own, because each has servers and settings of its own. A module here needs one
function, `run() -> list[Row]`. A benchmark that breaks is named at the end, and the exit code is 1; a missed bound is
shown and does not break the run, because machines differ.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from bench import report

MODULES = (
    "trips",
    "conversation",
    "first_delta",
    "agui",
    "retrieval",
    "bus",
    "sandbox",
    "approvals",
    "guard",
    "work",
    "window",
    "growth",
    "consolidation",
    "gates",
    "autonomy",
    "console",
    "events",
    "rest",
    "safety",
    "skills",
    "connections",
    "takeover",
    "paint",
    "interactions",
    "email",
    "backup",
    "person",
    "traces",
    "load",
)

SCALE = ("cluster", "idle", "sockets", "neighbour", "memory")


def main(names: list[str]) -> int:
    names = list(SCALE) if names == ["scale"] else names
    rows: list[report.Row] = []
    broken = []
    for name in names or MODULES:
        print(f"bench {name} …", file=sys.stderr, flush=True)
        found = _measured(name)
        rows += found
        broken += [] if found else [name]
    print(report.table(rows))
    if not names:
        report.write(rows)
    if broken:
        print(f"broken: {', '.join(broken)}", file=sys.stderr)
    return 1 if broken else 0


def _measured(name: str) -> list[report.Row]:
    """The rows of one module, measured in a child; none when it failed, which it has said on stderr."""
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "rows.json"
        subprocess.run([sys.executable, "-m", "bench", "--child", name, str(answer)], check=False)
        return [report.Row(**row) for row in json.loads(answer.read_text())] if answer.exists() else []


def _child(name: str, answer: str) -> None:
    rows = importlib.import_module(f"bench.{name}").run()
    Path(answer).write_text(json.dumps([dataclasses.asdict(row) for row in rows]))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        _child(sys.argv[2], sys.argv[3])
    else:
        sys.exit(main(sys.argv[1:]))
