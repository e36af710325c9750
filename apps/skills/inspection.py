"""Inspect a folder's contents, from texts alone; nothing is executed (spec 10.4). Pure.

`problems` keep a folder out; `notes` are for the person who decides. Neither is the security boundary: that is the
sandbox. These rules catch what an author did not mean, or hoped would not be read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from typing import Any

from apps.gates.detectors.credentials import holds_secret
from apps.skills import python_analysis
from apps.skills.schemas import SkillManifest

# A literal under a secret's name, however plain it is: `token = "…"`; `"password": "…"` with a figure in it.
_CREDENTIAL = re.compile(
    r"""(?ix) (?:password|passwd|api_?key|secret|token)
        (?: \s*[:=]\s*["'](?P<plain>[^"'\s]{8,})["']
          | ["']\s*:\s*["'](?=[^"']*[a-z])(?=[^"']*[0-9])(?P<mapped>[^"'\s{}<>$]{8,})["'] )"""
)
# Values that only name where a secret comes from, as OAuth needs it: an address, a slot to fill in, a field's name.
_ADDRESS = re.compile(r"https?://\S+", re.I)
_FILLED_IN = re.compile(r"\$?\{[^{}]*\}|<[^<>]*>|%\([^()]*\)s", re.I)
_FIELD = re.compile(r"[a-z]+(?:[_.-][a-z]+)*", re.I)
_SAYS_SECRET = re.compile(r"password|passwd|api[_.-]?key|secret|token|credential", re.I)
_COMPILED_NAMES = frozenset({".so", ".pyc", ".pyd", ".pyo", ".dll", ".exe", ".dylib", ".whl", ".egg"})
_COMPILED_BYTES = (b"\x7fELF", b"MZ", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe", b"PK\x03\x04", b"\x1f\x8b")
_TEXTS = frozenset({".py", ".md", ".sh", ".yaml", ".yml", ".toml", ".json", ".txt", ".csv"})
_UNSAFE_SHELL = re.compile(
    r"(curl|wget)\b(?:(?!curl|wget)[^\n|])*+\|\s*+(sudo\s++)?(ba|z|da)?sh\b|\beval\s+[\"']?\$", re.I
)
# Without these an account cannot be connected, or its loss is not noticed (spec 10.5, 10.6).
_SIGNS_IN = ("scripts/setup.py", "scripts/health_check.py")
_NAMED = re.compile(r"(?<![\w/.:-])(?:\./)?((?:scripts|references|assets|checks|guards)/[\w./-]*\.\w+)")
_LINKED = re.compile(r"\]\((?!\w+:|#|/)([^)\s#]+)")
# Words of a description that lists steps instead of saying when to use the skill (spec 10.1, description quality).
_SEQUENCE = re.compile(r"\b(first(?:ly)?|second(?:ly)?|then|next|after that|afterwards|finally|lastly)\b[ ,:]", re.I)
_STEP = re.compile(r"(?:^|\n)[^\S\n]*+\d++[.)]\s|\bstep \d+\b", re.I)
_COMMAND = re.compile(r"\b(?:scripts|checks)/\S+\.(?:py|sh)\b|```|(?:^|\s)--[a-z][\w-]+=", re.I)


def problems(manifest: SkillManifest, files: Mapping[str, bytes]) -> list[str]:
    """Return what keeps a folder from being installed; empty when nothing does."""
    messages = [f"description: {problem}" for problem in description_problems(manifest.description)]
    if python_analysis.is_too_long(files):
        return [*messages, "it contains too much Python code to be checked"]
    known = python_analysis.Known.of(files, manifest.requirements)
    for path, content in sorted(files.items()):
        messages += [f"{path}: {problem}" for problem in _file_problems(path, content, known)]
    for tool in manifest.tools:
        messages += [f"{tool.name}: {path} is missing" for path in _tool_paths(tool) if path not in files]
        messages += [
            f"{tool.name}: asks for {name}, which it does not take"
            for name in sorted(set(tool.ask) - set(tool.args.get("properties") or {}))
        ]
    return [*messages, *_missing_paths(manifest, files)]


def notes(manifest: SkillManifest, files: Mapping[str, bytes]) -> list[str]:
    """Return what a person should know before they approve."""
    messages = [
        f"Needs the package {name}; a sandbox has the standard library only." for name in manifest.requirements.packages
    ]
    networked = sorted(
        path
        for path, content in files.items()
        if path.startswith("scripts/") and path.endswith(".py") and python_analysis.opens_network(content)
    )
    if networked and not manifest.requirements.network:
        messages.append(f"{networked[0]} opens the network, which this skill is not given.")
    if manifest.requirements.network:
        messages.append(f"May reach {', '.join(manifest.requirements.network)} and nothing else.")
    if running := [tool.name for tool in manifest.tools if tool.executor]:
        messages.append(f"Runs code that a model writes ({', '.join(running)}), each time after a person's approval.")
    return [*messages, *_uncalled_scripts(manifest, files)]


def _uncalled_scripts(manifest: SkillManifest, files: Mapping[str, bytes]) -> list[str]:
    scripts = {path: content for path, content in files.items() if path.startswith("scripts/") and path.endswith(".py")}
    imported = {name for content in scripts.values() for name in python_analysis.imports(content)}
    called = {tool.script for tool in manifest.tools} | set(manifest.script_args)
    uncalled = sorted(path for path in scripts if path not in called and PurePosixPath(path).stem not in imported)
    if not uncalled or manifest.type == "connection":
        return []
    return [f"Nothing calls {', '.join(uncalled[:5])}: no tool or script_args names it."]


def description_problems(text: str) -> list[str]:
    """Require that a description says when to use the skill; how it is done belongs in the instructions."""
    if len(_SEQUENCE.findall(text)) >= 3 or len(_STEP.findall(text)) >= 2:
        return ["tells steps; say when to use the skill, and put the steps into the instructions"]
    if _COMMAND.search(text):
        return ["tells what to run; say when to use the skill, and put that into the instructions"]
    return []


def _file_problems(path: str, content: bytes, known: python_analysis.Known) -> Iterable[str]:
    suffix = PurePosixPath(path).suffix.lower()
    if suffix in _COMPILED_NAMES or (content.startswith(_COMPILED_BYTES) and not path.startswith("assets/")):
        return ["is compiled or packed; only what can be read is installed"]
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        return ["not text"] if suffix in _TEXTS else []
    messages = ["looks like it holds a credential"] if _holds_credential(text) or holds_secret(text) else []
    if suffix == ".sh" and _UNSAFE_SHELL.search(text):
        messages.append("runs in a shell what it fetched or was told")
    if suffix == ".py":
        # Guards and checks get variables of their own from the gate that runs them.
        messages += python_analysis.problems(text, known, has_env=path.startswith("scripts/"))
    return messages


def _holds_credential(text: str) -> bool:
    return any(not _is_placeholder(match["plain"] or match["mapped"]) for match in _CREDENTIAL.finditer(text))


def _is_placeholder(value: str) -> bool:
    """True for a value that only names where a secret comes from. An address that holds a key is found by what the key
    looks like (`holds_secret`)."""
    if _ADDRESS.fullmatch(value) or _FILLED_IN.fullmatch(value):
        return True
    return bool(_FIELD.fullmatch(value) and _SAYS_SECRET.search(value))


def _missing_paths(manifest: SkillManifest, files: Mapping[str, bytes]) -> list[str]:
    """Return the files that the front matter or the instructions name, or a connection needs, and that are not
    there."""
    declared = manifest.metadata.get("dry_run")
    named = [
        *manifest.script_args,
        *(list(declared) if isinstance(declared, dict) else []),
        *(_SIGNS_IN if manifest.type == "connection" else ()),
    ]
    if manifest.ui.icon:
        named.append(manifest.ui.icon.removeprefix("./"))
    body = files.get("SKILL.md", b"").decode("utf-8", "replace")
    named += [path.rstrip(".") for path in _NAMED.findall(body)]
    named += [path.removeprefix("./") for path in _LINKED.findall(body)]
    return [
        f"{path} is missing"
        for path in dict.fromkeys(named)
        if path not in files and not any(file.startswith(f"{path.rstrip('/')}/") for file in files)
    ]


def _tool_paths(tool: Any) -> list[str]:
    """Return the tool's script, and what its checks run inside `/sandbox/skill/`."""
    checks = [part for check in tool.verify for part in check.run.split() if part.startswith("/sandbox/skill/")]
    return [*filter(None, [tool.script]), *(part.removeprefix("/sandbox/skill/") for part in checks)]
