"""Adapt foreign scripts. Pure.

Python stays as it is. Its arguments are read from its syntax, because a model could report other ones of the same file
each time. A shell script gets a Python entry point that starts it with the arguments it is given. Scripts in other
languages are not run.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from apps.skills import python_analysis
from apps.skills.imports.errors import import_refused
from apps.skills.schemas import Requirements

if TYPE_CHECKING:
    from apps.skills.imports.adapter import Report

_TYPES = {"int": "integer", "float": "number", "str": "string"}
_POSITIONS = re.compile(r"\$\{?([1-9])\b")
_WORD = re.compile(r"^[a-z][a-z0-9_]{0,59}$")
_WRAPPER = '''\
"""Starts {name} in this sandbox, with the arguments it is given and no others."""

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).with_name("{name}")

if __name__ == "__main__":
    sys.exit(subprocess.run(["{shell}", str(SCRIPT), *sys.argv[1:]], check=False).returncode)
'''


def adapt_scripts(
    meta: Mapping[str, Any], files: Mapping[str, bytes], report: Report
) -> tuple[dict[str, object], dict[str, bytes]]:
    """Return the front matter with `script_args` for every script that can be called, and the files with their
    wrappers. Raises `SilasError("import_refused")` for more Python than is read."""
    if python_analysis.is_too_long(files):
        raise import_refused("It contains too much Python code to be checked.")
    adapted, declared = dict(files), dict(meta.get("script_args") or {})
    for path in sorted(files):
        suffix = PurePosixPath(path).suffix
        if not path.startswith("scripts/") or path in declared:
            continue
        if suffix == ".py":
            _declare(path, files[path], declared, report)
        elif suffix in (".sh", ".bash"):
            _wrap(path, files[path], adapted, declared, report)
        elif suffix in (".js", ".ts", ".rb", ".pl", ".mjs", ".php"):
            report.unresolved.append(f"{path} is not Python: nothing runs it")
    meta = {**meta, "script_args": declared} if declared else dict(meta)
    return _with_requirements(meta, adapted, report), adapted


def _declare(path: str, content: bytes, declared: dict[str, object], report: Report) -> None:
    args = arguments(content)
    if args is None:
        report.unresolved.append(f"{path}: what it takes cannot be read off it; say so under script_args to call it")
        return
    declared[path] = args
    report.mapped.append(f"{path}: takes {', '.join(args) or 'nothing'}, as its code says")


def _wrap(path: str, content: bytes, files: dict[str, bytes], declared: dict[str, object], report: Report) -> None:
    text, name = content.decode("utf-8", "replace"), PurePosixPath(path).name
    entry = f"{path.rpartition('.')[0]}_{PurePosixPath(path).suffix[1:]}.py"
    if entry in files:
        report.unresolved.append(f"{path}: {entry} is taken, so nothing starts it")
        return
    shell = "/bin/bash" if "bash" in text.partition("\n")[0] else "/bin/sh"
    files[entry] = _WRAPPER.format(name=name, shell=shell).encode()
    highest = max((int(position) for position in _POSITIONS.findall(text)), default=0)
    declared[entry] = {f"arg{number}": _positional(number) for number in range(1, highest + 1)}
    report.rewritten.append(f"{path}: started by {entry}")
    if "$@" in text or "$*" in text:
        report.unresolved.append(f"{path}: takes any number of arguments; the entry point takes {highest}")


def _positional(number: int) -> dict[str, object]:
    return {"type": "string", "passed": "position", "max_length": 2000, "description": f"argument {number}"}


def arguments(content: bytes) -> dict[str, Any] | None:
    """Return the `script_args` of a script by its `add_argument` calls or its `sys.argv`; None when they cannot be
    read."""
    try:
        tree = python_analysis.parse(content.decode("utf-8"))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    if not _is_program(tree):
        return None
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _is_named(node.func, "add_argument")]
    if not calls:
        return _by_position(tree)
    parsed = [_argument(call) for call in calls]
    readable = [arg for arg in parsed if arg is not None]
    return dict(readable) if len(readable) == len(parsed) else None


def _is_program(tree: ast.Module) -> bool:
    """True when running the file does something; a module that only defines is for others to import."""
    passive = (
        ast.Import,
        ast.ImportFrom,
        ast.FunctionDef,
        ast.ClassDef,
        ast.Assign,
        ast.AnnAssign,
        ast.AsyncFunctionDef,
    )
    return any(not isinstance(node, passive) and not _is_text(node) for node in tree.body)


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_named(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == name


def _by_position(tree: ast.AST) -> dict[str, object] | None:
    used = [node for node in ast.walk(tree) if _is_named_argv(node)]
    indices = [
        _index(node) for node in ast.walk(tree) if isinstance(node, ast.Subscript) and _is_named_argv(node.value)
    ]
    counted = sum(_is_length(node) for node in ast.walk(tree))
    if len(used) != len(indices) + counted or any(index is None for index in indices):
        return None
    highest = max((index for index in indices if index is not None), default=0)
    return {f"arg{number}": _positional(number) for number in range(1, highest + 1)}


def _is_named_argv(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "argv"


def _is_length(node: ast.AST) -> bool:
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len"):
        return False
    return bool(node.args) and _is_named_argv(node.args[0])


def _index(node: ast.Subscript) -> int | None:
    value = node.slice.value if isinstance(node.slice, ast.Constant) else None
    return value if isinstance(value, int) and 0 <= value <= 9 else None


def _argument(call: ast.Call) -> tuple[str, dict[str, object]] | None:
    """Return one `add_argument` call as a name and its declaration; None for what has no plain counterpart."""
    flags = [arg.value for arg in call.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
    options = {word.arg: word.value for word in call.keywords if word.arg}
    long = next((flag for flag in flags if flag.startswith("--")), None)
    if (
        not flags
        or len(flags) != len(call.args)
        or set(options) & {"nargs", "dest"}
        or (flags[0][0] == "-" and not long)
    ):
        return None
    name = (long or flags[0]).lstrip("-").replace("-", "_").lower()
    if not _WORD.match(name) or (long and long != f"--{name.replace('_', '-')}"):
        return None
    spec = _kind_of(options)
    if spec is None:
        return None
    spec["passed"] = "option" if long else "position"
    spec |= _limits_of(options, is_option=long is not None, is_boolean=spec["type"] == "boolean")
    return name, spec


def _kind_of(options: Mapping[str, ast.expr]) -> dict[str, object] | None:
    action = _constant(options.get("action"))
    if action == "store_true":
        return {"type": "boolean"}
    if action not in (None, "store"):
        return None
    kind = options.get("type")
    name = kind.id if isinstance(kind, ast.Name) else "str" if kind is None else ""
    return {"type": _TYPES.get(name, "string")}


def _limits_of(options: Mapping[str, ast.expr], *, is_option: bool, is_boolean: bool) -> dict[str, object]:
    limits: dict[str, object] = {}
    if text := _constant(options.get("help")):
        limits["description"] = str(text)[:300]
    choices = [_constant(choice) for choice in getattr(options.get("choices"), "elts", ())]
    if choices and all(isinstance(choice, str | int | float) for choice in choices):
        limits["choices"] = choices[:50]
    default = False if is_boolean else _constant(options.get("default"))
    if default is None and is_option and _constant(options.get("required")) is not True:
        limits["optional"] = True
    elif default is not None:
        limits["default"] = default
    return limits


def _constant(node: ast.expr | None) -> object:
    return node.value if isinstance(node, ast.Constant) else None


def _with_requirements(meta: dict[str, Any], files: Mapping[str, bytes], report: Report) -> dict[str, object]:
    """Declare what the scripts import and read, so that a reviewer sees what is missing."""
    requirements = dict(meta.get("requirements") or {})
    missing = sorted(python_analysis.undeclared_imports(files, _requirements(requirements)))
    variables = sorted(python_analysis.undeclared_variables(files, _requirements(requirements)))
    if missing:
        requirements["packages"] = [*requirements.get("packages", []), *missing]
        report.unresolved.append(f"Needs {', '.join(missing)}, which a sandbox does not have")
    if variables:
        requirements["env"] = [*requirements.get("env", []), *variables]
        report.unresolved.append(f"Reads {', '.join(variables)} from its environment, which are not set")
    return {**meta, "requirements": requirements} if requirements else meta


def _requirements(declared: Mapping[str, object]) -> Requirements:
    try:
        return Requirements.model_validate(dict(declared))
    except ValueError:
        return Requirements()
