"""No code walks over all companies: what is due is found by one question (ADR 115)."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
# Commands that a person runs stop at the first fault, and say it.
BY_HAND = ("management", "backup", "certification.py", "doctor.py")


def loops(path: Path) -> list[int]:
    """Lines with a loop or comprehension over `all_tenants()`."""
    heads = [
        (node.lineno if isinstance(node, ast.For | ast.AsyncFor) else node.target.lineno, node.iter)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.For | ast.AsyncFor | ast.comprehension)
    ]
    return [line for line, source in heads if "all_tenants(" in ast.unparse(source)]


def test_no_upkeep_loops_over_companies_by_itself() -> None:
    files = [*(ROOT / "apps").rglob("*.py"), *(ROOT / "silas_platform").rglob("*.py")]
    watched = [path for path in files if not set(BY_HAND) & set(path.parts)]
    found = [f"{path.relative_to(ROOT)}:{line}" for path in watched for line in loops(path)]
    assert found == []
