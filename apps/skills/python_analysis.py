"""Find what a script does that it should not, by its syntax tree; nothing runs (spec 10.4)."""

from __future__ import annotations

import ast
import contextlib
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import PurePosixPath

from apps.skills import script_library
from apps.skills.schemas import Requirements

_SHELLS = frozenset(
    {
        "os.system",
        "os.popen",
        "subprocess.getoutput",
        "subprocess.getstatusoutput",
        "asyncio.create_subprocess_shell",
        "eval",
        "exec",
        "__import__",
        "builtins.eval",
        "builtins.exec",
        "importlib.import_module",
    }
)
_READS_ENV = frozenset({"os.environ.get", "os.environ.pop", "os.getenv", "os.getenvb"})
_SHELL_PROGRAMS = frozenset({"sh", "bash", "zsh", "dash", "ksh", "ash"})
_STARTS = ("subprocess.", "os.exec", "os.spawn", "os.posix_spawn", "asyncio.create_subprocess_exec", "pty.spawn")
_NETWORK = frozenset(
    {script_library.NAME, "socket", "ssl", "urllib", "http", "ftplib", "smtplib", "imaplib", "poplib", "telnetlib"}
)
# Variables that every sandbox sets, and those that lead to a connection's credentials and proxy.
_HARNESS_ENV = frozenset(
    {"PATH", "HOME", "TMPDIR", "LANG", "LC_ALL", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"}
)
# Where a package's name is not the name it is imported by.
_IMPORTED_AS = {
    "pyyaml": "yaml",
    "pillow": "pil",
    "beautifulsoup4": "bs4",
    "python_docx": "docx",
    "python_pptx": "pptx",
    "python_dateutil": "dateutil",
    "scikit_learn": "sklearn",
    "opencv_python": "cv2",
}


# Limits for the Python of one folder. Parsing takes a kilobyte of memory a token, and for a dotted name the square of
# its length: a megabyte of either would end the process that parses it.
MAX_CHARS, MAX_TOKENS = 1_000_000, 100_000
_TOKEN = re.compile(r"\w++|[^\w\s]")
_LONG_NAME = re.compile(r"\b(?:\w++[\s\\]*+\.[\s\\]*+){50}")


@dataclass(frozen=True)
class Known:
    """What scripts of this folder may import and which variables they may read."""

    modules: frozenset[str]
    env: frozenset[str]

    @classmethod
    def of(cls, files: Mapping[str, bytes], requirements: Requirements) -> Known:
        paths = [PurePosixPath(path) for path in files if path.endswith(".py")]
        own = {path.stem for path in paths} | {part for path in paths for part in path.parent.parts}
        plain = [name.lower().replace("-", "_") for name in requirements.packages]
        packages = {name for package in plain for name in (package, _IMPORTED_AS.get(package, package))}
        return cls(frozenset(own | packages | {script_library.NAME}), frozenset(requirements.env) | _HARNESS_ENV)


def problems(text: str, known: Known, *, has_env: bool) -> list[str]:
    """Return what is wrong with one script; a script that cannot be parsed has no other problem. `has_env`: it may read
    only variables that are declared."""
    try:
        tree = parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return [error.__class__.__name__]
    names = _aliases(tree)
    messages = {f"{name} is not allowed" for name in _forbidden_calls(tree, names)}
    if has_env:
        undeclared = _undeclared_env(tree, names, known)
        messages |= {f"reads {name}, which requirements.env does not name" for name in undeclared}
    messages |= {f"imports {name}, which requirements.packages does not name" for name in _undeclared(tree, known)}
    return sorted(messages)


def undeclared_imports(files: Mapping[str, bytes], requirements: Requirements) -> set[str]:
    """Return what the scripts of a folder import that neither comes with Python nor is declared."""
    known = Known.of(files, requirements)
    return {name for tree in _trees(files, "") for name in _undeclared(tree, known)}


def undeclared_variables(files: Mapping[str, bytes], requirements: Requirements) -> set[str]:
    """Return the variables that scripts read by a plain name and that are not declared."""
    known = Known.of(files, requirements)
    names = {name for tree in _trees(files, "scripts/") for name in _undeclared_env(tree, _aliases(tree), known)}
    return {name for name in names if name.isidentifier() and name.isupper()}


def _trees(files: Mapping[str, bytes], below: str) -> Iterator[ast.AST]:
    for path, content in sorted(files.items()):
        if path.endswith(".py") and path.startswith(below):
            with contextlib.suppress(SyntaxError, ValueError, RecursionError, MemoryError):
                yield parse(content.decode("utf-8"))


def opens_network(content: bytes) -> bool:
    return bool(imports(content) & _NETWORK)


def imports(content: bytes) -> set[str]:
    """Return the modules that a script imports, by the first part; none when it cannot be parsed."""
    try:
        tree = parse(content.decode("utf-8"))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()
    return {name.partition(".")[0] for node in _nodes(tree) for name in _imported_by(node)}


def is_too_long(files: Mapping[str, bytes]) -> bool:
    """True when the scripts of a folder are more than is parsed."""
    scripts = [content for path, content in files.items() if path.endswith(".py")]
    if sum(map(len, scripts)) > MAX_CHARS:
        return True
    return sum(len(_TOKEN.findall(script.decode("utf-8", "replace"))) for script in scripts) > MAX_TOKENS


# Several checks parse the same scripts, often again a moment later.
@lru_cache(maxsize=16)
def parse(text: str) -> ast.Module:
    """Raises SyntaxError, ValueError (also for what is too long to be parsed here), RecursionError and MemoryError."""
    if len(text) > MAX_CHARS or len(_TOKEN.findall(text)) > MAX_TOKENS or _LONG_NAME.search(text):
        raise ValueError("too long")
    return ast.parse(text)


@lru_cache(maxsize=16)
def _nodes(tree: ast.AST) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(tree))


def _aliases(tree: ast.AST) -> dict[str, str]:
    """Return what each imported name of the script stands for: `from os import system as s` gives `s: os.system`."""
    aliases: dict[str, str] = {}
    for node in _nodes(tree):
        if isinstance(node, ast.Import):
            aliases |= {name.asname: name.name for name in node.names if name.asname}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            aliases |= {name.asname or name.name: f"{node.module}.{name.name}" for name in node.names}
    return aliases


def _full_name(node: ast.expr, names: Mapping[str, str]) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join([names.get(node.id, node.id), *reversed(parts)])


def _forbidden_calls(tree: ast.AST, names: Mapping[str, str]) -> Iterator[str]:
    for node in _nodes(tree):
        if not isinstance(node, ast.Call):
            continue
        name = _full_name(node.func, names)
        if name in _SHELLS:
            yield name
        if any(
            word.arg == "shell" and not (isinstance(word.value, ast.Constant) and word.value.value is False)
            for word in node.keywords
        ):
            yield "shell=True"
        if name.startswith(_STARTS) and _runs_shell_command(list(_words(node))):
            yield "a shell with text that is put together"


def _words(call: ast.Call) -> Iterator[ast.expr]:
    """Return the started command as far as it is in the call: a list, or word by word."""
    for given in (*call.args, *(word.value for word in call.keywords if word.arg == "args")):
        yield from given.elts if isinstance(given, ast.List | ast.Tuple) else [given]


def _runs_shell_command(words: list[ast.expr]) -> bool:
    """True for `["sh", "-c", f"…{name}…"]`: anything but a plain text after a shell that is given a command."""
    shell = next((at for at, word in enumerate(words) if PurePosixPath(_text(word)).name in _SHELL_PROGRAMS), None)
    rest = [] if shell is None else words[shell + 1 :]
    is_command = any(_text(word).startswith("-") and _text(word).endswith("c") for word in rest)
    return is_command and not all(isinstance(word, ast.Constant) for word in rest)


def _text(node: ast.expr) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _undeclared_env(tree: ast.AST, names: Mapping[str, str], known: Known) -> Iterator[str]:
    """Yield undeclared variables by name; the whole environment, or a computed name, is never declared."""
    seen_nodes: set[int] = set()
    for node in _nodes(tree):
        key = _env_key(node, names)
        if key is not None:
            seen_nodes |= {id(child) for child in ast.walk(node)}
            variable = key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else ""
            if not (variable.startswith("SILAS_") or variable in known.env or variable.upper() in _HARNESS_ENV):
                yield variable or "a variable that is computed"
    for node in _nodes(tree):
        is_whole = isinstance(node, ast.Attribute | ast.Name) and _full_name(node, names) in (
            "os.environ",
            "os.environb",
        )
        if is_whole and id(node) not in seen_nodes:
            yield "the whole environment"


def _env_key(node: ast.AST, names: Mapping[str, str]) -> ast.expr | None:
    if isinstance(node, ast.Subscript) and _full_name(node.value, names) == "os.environ":
        return node.slice
    if isinstance(node, ast.Call) and node.args:
        is_read = _full_name(node.func, names) in _READS_ENV
        return node.args[0] if is_read else None
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], ast.In | ast.NotIn):
        return node.left if _full_name(node.comparators[0], names) == "os.environ" else None
    return None


def _undeclared(tree: ast.AST, known: Known) -> Iterator[str]:
    """Yield modules that come neither with Python nor with the platform and are not in the folder; an import that the
    script can do without is allowed."""
    optional = {id(child) for node in _nodes(tree) if _is_attempt(node) for child in ast.walk(node)}
    for node in _nodes(tree):
        if id(node) in optional:
            continue
        for name in _imported_by(node):
            root = name.partition(".")[0]
            if root not in sys.stdlib_module_names and root not in known.modules and root.lower() not in known.modules:
                yield root


def _is_attempt(node: ast.AST) -> bool:
    if not isinstance(node, ast.Try):
        return False
    caught = [handler.type for handler in node.handlers if handler.type is not None]
    names = {getattr(part, "id", getattr(part, "attr", "")) for kind in caught for part in ast.walk(kind)}
    return not names.isdisjoint(("ImportError", "ModuleNotFoundError"))


def _imported_by(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [name.name for name in node.names]
    if isinstance(node, ast.ImportFrom) and node.module and not node.level:
        return [node.module]
    return []
