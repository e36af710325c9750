"""Our source, read as text and syntax trees, for the tests that judge it."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("apps", "kernel", "llm", "sandbox", "silas_platform")


@dataclass(frozen=True)
class Module:
    name: str
    path: Path
    tree: ast.Module

    def names(self) -> dict[str, str]:
        """What a bare name in this module stands for: `{"run": "sandbox.run"}`."""
        found = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom):
                source = _absolute(self.name, node)
                found |= {alias.asname or alias.name: f"{source}.{alias.name}" for alias in node.names}
            elif isinstance(node, ast.Import):
                found |= {alias.asname: alias.name for alias in node.names if alias.asname}
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                found.setdefault(node.name, f"{self.name}.{node.name}")
        return found

    @cached_property
    def mentions(self) -> tuple[tuple[str, ast.expr], ...]:
        """Every dotted name used as a value, resolved through the imports, with where it stands."""
        known, found = self.names(), []
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Name | ast.Attribute) and (dotted := _dotted(node)):
                first, _, rest = dotted.partition(".")
                found.append((".".join(filter(None, (known.get(first, first), rest))), node))
        return tuple(found)

    @cached_property
    def calls(self) -> tuple[str, ...]:
        """Every dotted name that is called, resolved through the imports."""
        called = {id(node.func) for node in ast.walk(self.tree) if isinstance(node, ast.Call)}
        return tuple(name for name, node in self.mentions if id(node) in called)


@cache
def modules() -> tuple[Module, ...]:
    paths = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
    return tuple(
        Module(_name(path), path, ast.parse(path.read_text())) for path in paths if "/static/" not in str(path)
    )


def _name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _absolute(module: str, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    base = module.split(".")[: -node.level]
    return ".".join([*base, *([node.module] if node.module else [])])


def _dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (before := _dotted(node.value)):
        return f"{before}.{node.attr}"
    return ""
