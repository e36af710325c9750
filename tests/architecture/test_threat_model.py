"""Every claim of the threat model names a test, and every test that `docs/security` cites exists under that name."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILE = re.compile(r"(?:tests|attack)/[\w/]+\.py")
# `test_name`, `test_start_of_a_name…` or `…_*`, and parts of names in brackets behind a file.
NAME = re.compile(r"(?<![\w/])test_\w+(?!\w*\.py)")
PART = re.compile(r"`([a-z]+(?:_[a-z0-9]+)+)`")


def rows() -> list[str]:
    """The last column of each row of the pages about attackers."""
    pages = sorted((ROOT / "docs" / "security").glob("*.md"))
    lines = [line for page in pages for line in page.read_text().splitlines() if line.startswith("| ")]
    return [line.rsplit("|", 2)[1] for line in lines if not line.startswith("| Attacker |")]


def test_index_leads_to_each_attacker_with_the_number_of_claims() -> None:
    index = (ROOT / "THREAT_MODEL.md").read_text()
    listed = dict(re.findall(r"\(docs/security/([\w-]+)\.md\) \| .* \| (\d+) \|", index))
    pages = (ROOT / "docs" / "security").glob("*.md")
    assert listed == {page.stem: str(page.read_text().count("\n| ") - 1) for page in pages}


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
