"""Measure how the product's Python reads: `python tools/measure_code.py [FOLDER]`, one figure a line.

Looks at the files alone, so that any two revisions are measured alike. The call graph is static and by name: a name is
followed to what its module imports or defines, a class to all its methods. Calls on objects whose class is not named
in the function, through registries and by events are not followed.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOMS = ("apps", "kernel", "llm", "sandbox", "silas_platform")
BANNED = re.compile(r"\b(nobody|somebody|whoever|whatever|anew|a yes|a no)\b", re.IGNORECASE)
WIRE = re.compile(r"(^|/)(wire|api|serializers|schemas)(/|\.py|_)")


@dataclass
class Function:
    module: str
    name: str
    lines: int
    calls: set[str] = field(default_factory=set)


@dataclass
class Source:
    path: Path
    module: str
    text: str
    tree: ast.Module
    imports: dict[str, str] = field(default_factory=dict)


def sources(root: Path) -> list[Source]:
    found = []
    for room in ROOMS:
        for path in sorted((root / room).rglob("*.py")):
            if "migrations" in path.parts:
                continue
            text = path.read_text()
            module = ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
            found.append(Source(path, module, text, ast.parse(text)))
    return found


def resolve_imports(source: Source) -> None:
    """Map each imported name to its dotted origin; function-level imports count too."""
    package = source.module if source.path.name == "__init__.py" else source.module.rpartition(".")[0]
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                source.imports[alias.asname or alias.name.split(".")[0]] = (
                    alias.asname and alias.name
                ) or alias.name.split(".")[0]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*parts, *([node.module] if node.module else [])])
            for alias in node.names:
                source.imports[alias.asname or alias.name] = f"{base}.{alias.name}"


def functions(source: Source) -> Iterator[Function]:
    def visit(node: ast.AST, prefix: str) -> Iterator[Function]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                found = Function(source.module, f"{prefix}{child.name}", (child.end_lineno or 0) - child.lineno + 1)
                collect(child, found)
                yield found
            elif isinstance(child, ast.ClassDef):
                yield from visit(child, f"{prefix}{child.name}.")
            elif isinstance(child, ast.If | ast.Try | ast.With):
                yield from visit(child, prefix)

    def collect(node: ast.AST, found: Function) -> None:
        for child in ast.walk(node):
            if isinstance(child, ast.Attribute):
                dotted = _dotted(child)
                head, _, rest = dotted.partition(".")
                if head in source.imports:
                    found.calls.add(f"{source.imports[head]}.{rest}")
                elif head == "self" and "." in found.name:
                    found.calls.add(f"{source.module}.{found.name.rpartition('.')[0]}.{rest}")
            elif isinstance(child, ast.Name):
                found.calls.add(source.imports.get(child.id, f"{source.module}.{child.id}"))

    yield from visit(source.tree, "")


def _dotted(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        head = _dotted(node.value)
        return f"{head}.{node.attr}" if head else ""
    return node.id if isinstance(node, ast.Name) else ""


class Graph:
    """Who may call whom, by name."""

    def __init__(self, found: list[Source]) -> None:
        self.functions: dict[str, Function] = {}
        self.methods: dict[str, list[str]] = defaultdict(list)
        self.exports: dict[str, str] = {}
        for source in found:
            resolve_imports(source)
        for source in found:
            for name, origin in source.imports.items():
                self.exports[f"{source.module}.{name}"] = origin
            for function in functions(source):
                key = f"{source.module}.{function.name}"
                self.functions[key] = function
                if "." in function.name:
                    self.methods[key.rpartition(".")[0]].append(key)

    def targets(self, function: Function) -> Iterator[str]:
        for call in function.calls:
            seen = set()
            while call not in self.functions and call in self.exports and call not in seen:
                seen.add(call)
                call = self.exports[call]
            if call in self.functions:
                yield call
            else:
                yield from self.methods.get(call, ())

    def files_from(self, ending: str) -> int:
        """How many files are reachable from the functions whose dotted name ends so; 0 where there is none."""
        todo = [key for key in self.functions if key.endswith(ending)]
        seen = set(todo)
        while todo:
            for target in self.targets(self.functions[todo.pop()]):
                if target not in seen:
                    seen.add(target)
                    todo.append(target)
        return len({self.functions[key].module for key in seen})

    def callers(self) -> dict[str, int]:
        counts: dict[str, int] = defaultdict(int)
        for function in self.functions.values():
            for target in set(self.targets(function)):
                counts[target] += 1
        return counts


def docstrings(source: Source) -> Iterator[str]:
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text:
                yield text


# The behaviours that the figures follow, each by the names that its first function had and has.
WALKS = {
    "a turn": ("sessions.runner._one_turn", "sessions.runner.run_turn"),
    "Approve": (
        "approvals.services.cards.decide_card",
        "approvals.cards.services.decide_card",
        "approvals.services.answering.answer_card",
    ),
    "a guarded call": ("guard.services.door.guarded_call", "guard.services.guarded_calls.guarded_call"),
    "a connection's set-up": (
        "connections.services.requesting.request",
        "connections.services.requests.request_connection",
    ),
}


def main(root: Path) -> None:
    found = sources(root)
    graph = Graph(found)
    lines = sum(source.text.count("\n") for source in found)
    comments = sum(line.lstrip().startswith("#") for source in found for line in source.text.splitlines())
    modules = [text for source in found if (text := ast.get_docstring(source.tree))]
    private = {
        key: function
        for key, function in graph.functions.items()
        if not function.name.rpartition(".")[2].startswith("__")
    }
    callers = graph.callers()
    single = [key for key, function in private.items() if callers.get(key, 0) == 1 and function.lines <= 5]
    any_lines = sum(
        bool(re.search(r"\bAny\b", line)) and "import" not in line
        for source in found
        if not WIRE.search(str(source.path))
        for line in source.text.splitlines()
    )
    questions = sum("?" in text.split("\n\n")[0] for text in modules)
    banned = sum(bool(BANNED.search(text)) for source in found for text in docstrings(source))
    figures = {
        "product files": len(found),
        "product lines": lines,
        "functions": len(graph.functions),
        "one caller and at most five lines": f"{len(single)} ({100 * len(single) / len(private):.1f} %)",
        "comment lines": f"{comments} ({100 * comments / lines:.1f} %)",
        "module docstrings that are questions": f"{questions} of {len(modules)}",
        "docstrings with banned words": banned,
        "lines with Any outside the wire": any_lines,
    }
    for name, figure in figures.items():
        print(f"{name:<42}{figure}")
    for name, endings in WALKS.items():
        print(f"files that {name:<31}{max(graph.files_from(ending) for ending in endings)}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve())
