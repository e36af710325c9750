"""Every test that THREAT_MODEL.md cites in "What holds against whom" exists under that name."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILE = re.compile(r"(?:tests|attack)/[\w/]+\.py")
# `test_name`, `test_start_of_a_name…` or `…_*`, and parts of names in brackets behind a file.
NAME = re.compile(r"(?<![\w/])test_\w+(?!\w*\.py)")
PART = re.compile(r"`([a-z]+(?:_[a-z0-9]+)+)`")


def rows() -> list[str]:
    """The last column of each row."""
    text = (ROOT / "THREAT_MODEL.md").read_text()
    section = text.partition("## What holds against whom\n")[2].partition("\n## ")[0]
    table = section.partition("| Attacker | Tries to |")[2]
    return [line.rsplit("|", 2)[1] for line in table.splitlines()[2:] if line.startswith("|")]


def functions() -> set[str]:
    found = (re.findall(r"def (test_\w+)", path.read_text()) for path in (ROOT / "tests").rglob("*.py"))
    return {name for names in found for name in names}


def test_every_row_cites_something() -> None:
    assert len(rows()) > 50
    assert [row for row in rows() if not row.strip()] == []


def test_every_cited_file_exists() -> None:
    cited = {name for row in rows() for name in FILE.findall(row)}
    assert len(cited) > 30
    assert sorted(name for name in cited if not (ROOT / name).exists()) == []


def test_every_cited_test_exists() -> None:
    known = functions()
    cited = {name for row in rows() for name in NAME.findall(FILE.sub("", row)) if not (ROOT / f"{name}.py").exists()}
    files = {path.stem for path in (ROOT / "tests").rglob("test_*.py")}
    assert sorted(one for one in cited - files if not any(name.startswith(one) for name in known)) == []


def test_every_part_of_a_name_is_of_a_test() -> None:
    known = functions()
    parts = {part for row in rows() for part in PART.findall(row) if not part.startswith("test_")}
    assert sorted(part for part in parts if not any(part in name for name in known)) == []
