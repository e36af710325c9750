"""What staff read is plain English: the words of the old dialect appear on no page, in no message and in no script."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CONSOLE = ROOT / "apps" / "console"
# Django templates that staff read: the console, the administration and the emails of accounts.
TEMPLATE_FOLDERS = (
    *sorted((CONSOLE / "pages").glob("*/templates")),
    ROOT / "templates",
    ROOT / "apps" / "tenants" / "templates",
)

BANNED = re.compile(
    r"""\b(
        nobody | somebody | anybody | everybody | whoever | whomever | anew | e-mails?
        | letters?(?!,|\ and\ digits)
        | (?:a|the|your|this|their|his|her|said|say|says)\ (?:yes|no)(?!\ longer|\ more|\ one)
        | stands? | standing\ yes | sees?\ to\ (?:it|this|them) | in\ force
        | begun | come\ back\ by\ itself | by\ itself | by\ themselves | called\ off | call\ it\ off
        | wanted | narrow\ (?:it|the\ list) | put\ (?:it\ )?in\ force | taken\ back | take\ it\ back
    )\b""",
    re.IGNORECASE | re.VERBOSE,
)
# Attributes whose values people read or hear.
READ_ATTRIBUTES = re.compile(r'(?:aria-label|placeholder|title|alt)="([^"]*)"')
TEMPLATE_CODE = re.compile(r"\{%.*?%\}|\{\{.*?\}\}|\{#.*?#\}|<style.*?</style>", re.DOTALL)
TEMPLATE_STRINGS = re.compile(r"\|(?:default|pluralize):\"([^\"]*)\"")
TAGS = re.compile(r"<[^>]*>")
SCRIPT_STRINGS = re.compile(r'"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`')
SCRIPT_COMMENTS = re.compile(r"/\*.*?\*/", re.DOTALL)


def template_texts(path: Path) -> Iterator[str]:
    """Yield the text between tags, the attributes that are read, and the strings inside template tags."""
    source = path.read_text()
    yield from TEMPLATE_STRINGS.findall(source)
    markup = TEMPLATE_CODE.sub(" … ", source)
    yield from READ_ATTRIBUTES.findall(markup)
    yield TAGS.sub(" | ", markup)


def python_texts(path: Path) -> Iterator[str]:
    """Yield the string literals that hold a space and are not docstrings."""
    tree = ast.parse(path.read_text())
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield re.sub(r"\{\w+\}", "…", node.value) if " " in node.value else ""


def script_texts(path: Path) -> Iterator[str]:
    """Yield the string literals that hold a space."""
    source = SCRIPT_COMMENTS.sub("", path.read_text())
    yield from (literal for literal in SCRIPT_STRINGS.findall(source) if " " in literal)


def sources() -> Iterator[Path]:
    for folder in TEMPLATE_FOLDERS:
        yield from sorted(path for path in folder.rglob("*") if path.suffix in (".html", ".txt"))
    yield from sorted(CONSOLE.rglob("*.py"))
    yield from sorted((ROOT / "static").rglob("*.js"))


READERS = {".html": template_texts, ".txt": template_texts, ".py": python_texts, ".js": script_texts}


@pytest.mark.parametrize("path", list(sources()), ids=lambda path: str(path.relative_to(ROOT)))
def test_staff_read_no_banned_words(path: Path) -> None:
    found = [
        f"{match.group()!r} in “{' '.join(text[max(match.start() - 40, 0) : match.end() + 40].split())}”"
        for text in READERS[path.suffix](path)
        for match in BANNED.finditer(text)
    ]
    assert found == []


@pytest.mark.parametrize(
    "sentence",
    [
        "Nobody waits for it any more",
        "Somebody has to decide",
        "Ask whoever invited you",
        "Ask anew with these values",
        "A letter with a link is on its way",
        "It waits for a yes",
        "Put before you because policy said no",
        "It stands on no site",
        "Bert sees to this",
    ],
)
def test_banned_words_are_recognised(sentence: str) -> None:
    assert BANNED.search(sentence)


@pytest.mark.parametrize(
    "sentence", ["Lowercase letters, digits and single hyphens", "The server no longer lists this tool", "Understand"]
)
def test_plain_words_are_not_banned(sentence: str) -> None:
    assert not BANNED.search(sentence)
