"""Write the columns Code and Tests of `docs/development/specification.md` from the citations in the tree.

A row's first column is a section's number. Files that cite it (`spec 5.2.1`) are listed, those that cite it most first,
at most three each. Run it after files have moved: `python tools/map_specification.py`.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "development" / "specification.md"
FOLDERS = ("apps", "kernel", "llm", "sandbox", "silas_platform", "tests")
CITED = re.compile(r"\b[sS]pec(?:ification)?s? ((?:\d+(?:\.\d+)*(?:, | and | to )?)+)")
SHOWN = 3


def citations() -> dict[str, Counter[str]]:
    """How often each file cites each section."""
    cited: dict[str, Counter[str]] = defaultdict(Counter)
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            for numbers in CITED.findall(path.read_text()):
                for number in re.findall(r"\d+(?:\.\d+)*", numbers):
                    cited[number][str(path.relative_to(ROOT))] += 1
    return cited


def files_column(cited: Counter[str], *, tests: bool) -> str:
    names = [name for name, _ in cited.most_common() if name.startswith("tests/") == tests]
    return ", ".join(f"`{name}`" for name in names[:SHOWN])


def main() -> None:
    cited = citations()
    lines = []
    for line in PAGE.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("| ") else []
        if len(cells) == 4 and re.fullmatch(r"[\d.]+", cells[0]):
            code, tests = (files_column(cited[cells[0]], tests=which) for which in (False, True))
            line = f"| {cells[0]} | {cells[1]} | {code} | {tests} |"
        lines.append(line)
    PAGE.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
