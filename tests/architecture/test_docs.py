"""Documents lead where they say: links, decision records, sections of the contracts and the specification exist."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ADR = ROOT / "docs" / "adr"
DEVELOPMENT = ROOT / "docs" / "development"
LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)#\s]+)(?:#[^)\s]*)?\)")
CODE_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
NUMBERS = r"((?:\d+(?:\.\d+)*(?:, | and | to )?)+)"


def tracked(*patterns: str) -> list[Path]:
    listed = subprocess.run(["git", "ls-files", *patterns], cwd=ROOT, check=True, capture_output=True, text=True)
    return [path for name in listed.stdout.split() if (path := ROOT / name).is_file()]


def numbers_cited(before: str) -> dict[str, str]:
    """Each number that follows `before` in a Python file or document, with a file that cites it."""
    cited: dict[str, str] = {}
    for path in tracked("*.py", "*.md"):
        for numbers in re.findall(before + NUMBERS, path.read_text()):
            for number in re.findall(r"\d+(?:\.\d+)*", numbers):
                cited[number] = str(path.relative_to(ROOT))
    return cited


def test_every_link_between_documents_leads_somewhere() -> None:
    broken = [
        f"{path.relative_to(ROOT)}: {target}"
        for path in tracked("*.md")
        for target in LINK.findall(CODE_FENCE.sub("", path.read_text()))
        if not (path.parent / target).exists()
    ]
    assert broken == []


def test_every_cited_decision_is_in_the_index() -> None:
    listed = set(re.findall(r"^\| (\d+) \|", (ADR / "README.md").read_text(), re.MULTILINE))
    cited = {str(int(number)): where for number, where in numbers_cited(r"\bADRs? ").items() if number.isdigit()}
    assert {number: where for number, where in cited.items() if number not in listed} == {}


def test_index_lists_each_decision_once() -> None:
    in_force = r"^\| \d+ \| \[[^]]+\]\((\d{4}-[a-z0-9-]+\.md)\) \| \w"
    listed = re.findall(in_force, (ADR / "README.md").read_text(), re.MULTILINE)
    assert sorted(listed) == sorted(path.name for path in ADR.glob("[0-9]*.md"))


def test_every_cited_section_of_the_specification_has_a_row() -> None:
    rows = set(re.findall(r"^\| ([\d.]+) \|", (DEVELOPMENT / "specification.md").read_text(), re.MULTILINE))
    cited = numbers_cited(r"\bspec(?:ification)? ")
    assert {number: where for number, where in cited.items() if number not in rows} == {}


@pytest.mark.parametrize("contract", ["silas", "autonomy", "interfaces", "safety-loop"])
def test_every_cited_section_of_a_contract_has_a_heading(contract: str) -> None:
    headings = re.findall(r"^#+ ([A-D]?[\d.]+?)\.? ", (DEVELOPMENT / "contracts" / f"{contract}.md").read_text(), re.M)
    cited = {
        number: str(path.relative_to(ROOT))
        for path in tracked("*.py")
        for number in re.findall(rf"\bcontract {contract} ([A-D]?\d+(?:\.\d+)*)", path.read_text())
    }
    assert {number: where for number, where in cited.items() if number not in headings} == {}


def test_architecture_lists_the_rooms_in_the_order_of_their_imports() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["id"] == "rooms")
    page = (DEVELOPMENT / "architecture.md").read_text()
    listed = page.split("Among rooms", 1)[1].split("```\n", 2)[1].splitlines()
    assert listed == [layer.replace("(", "").replace(")", "") for layer in layers]


def test_every_path_in_the_developers_pages_exists() -> None:
    named = {
        f"{page.relative_to(ROOT)}: {name}"
        for page in DEVELOPMENT.rglob("*.md")
        for name in re.findall(r"`((?:apps|kernel|llm|sandbox|silas_platform|tests|tools)/[\w/.-]+)`", page.read_text())
        if not (ROOT / name).exists()
    }
    assert sorted(named) == []
