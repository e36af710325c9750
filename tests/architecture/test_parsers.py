"""Parsers of foreign bytes run in the sandbox: no other module imports one unless it is listed with a reason."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.architecture.source import Module, modules

_PARSERS = """
    bs4 bz2 configparser csv defusedxml docx email frontmatter gzip html.parser html5lib lxml lzma mailbox markdown
    markdown_it marshal mistune nh3 odf openpyxl pandas pickle PIL plistlib pptx pypdf selectolax shelve tarfile tomllib
    trafilatura xlrd xml yaml zipfile zlib zstandard
"""
PARSERS = frozenset(_PARSERS.split())
# What runs in the sandbox: `sandbox.readers.Reader`s start these.
READERS = (
    "apps.knowledge.parsing",
    "sandbox.archives.unpacking",
    "apps.imports.reading",
    "apps.messengers.email.reading",
)
# Everything else that imports a parser: whose bytes it reads, and what bounds them.
ALLOWED = {
    "apps.contacts.person_export": "writes a ZIP, opens none",
    "apps.messengers.email.adapter": "writes mails, reads none",
    "apps.messengers.email.servers": "hands mails over, reads none",
    "apps.messengers.formatting": "our own cleaned HTML of messages, in pieces of a few thousand characters",
    "apps.sessions.markdown": "messages of bots and staff, bounded in length for visitors; cleans what came of it",
    "apps.skills.imports.adapter": "writes YAML, reads none",
    "apps.skills.loader": "front matter of a SKILL.md: at most 100,000 characters, its depth judged first",
    "apps.skills.packages.archive": "writes packages, opens none",
    "apps.toolservers.rules": "cleans the first 40,000 characters of a tool's answer",
    "apps.work.plans": "a plan's blocks, with a loader of its own that knows no aliases, anchors and tags",
    "llm.calls": "a model's answer, bounded by its tokens",
    "llm.fences": "Markdown of our own plans, and of a model's answer, bounded by its tokens",
    "llm.glossary": "a file of this code",
    "llm.language_detection": "a file of this code",
    "llm.offline.languages": "files of this code",
    "sandbox.launch": "between two processes of ours",
    "sandbox.keeper.contained": "between two processes of ours",
    "sandbox.keeper.serve": "between two processes of ours",
    "kernel.csv_files": "writes CSV, reads none",
    "kernel.http.client": "gzip of a fetched page, piece by piece up to a bound; a reader takes the page",
    "apps.simulations.reports": "writes JUnit",
    "apps.simulations.scripts": "files that an operator names",
    "silas_platform.management.commands.simulate": "files that an operator names",
    "silas_platform.demo": "files of this code",
    "silas_platform.demo_month": "files of this code",
}


# Files that the operator of this machine names on the command line, and the demo.
CALLERS = {"apps.knowledge.services"}


def parsers_of(module: Module) -> set[str]:
    return {parser for name in _imported(module.tree) for parser in PARSERS if f"{name}.".startswith(f"{parser}.")}


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called in ("import_module", "__import__"):
                yield str(node.args[0].value)


def is_reader(name: str) -> bool:
    return any(f"{name}.".startswith(f"{reader}.") for reader in READERS)


def test_only_readers_in_the_sandbox_import_parsers() -> None:
    found = {module.name for module in modules() if parsers_of(module) and not is_reader(module.name)}
    assert found - set(ALLOWED) == set()
    assert set(ALLOWED) - found == set()


@pytest.mark.parametrize(
    "line",
    [
        "import zipfile",
        "import xml.etree.ElementTree as tree",
        "from html.parser import HTMLParser",
        "from html import parser",
        "def read():\n    from PIL import Image",
        "import importlib\nimportlib.import_module('lxml.html')",
    ],
)
def test_import_of_a_parser_is_found(line: str) -> None:
    module = next(iter(modules()))
    assert parsers_of(Module("apps.anywhere", module.path, ast.parse(line)))


def test_documents_are_parsed_by_readers_and_for_the_command_line_alone() -> None:
    forbidden = (
        "parse",
        "read",
        "files.parse",
        "files.read",
        "pages.parse_page",
        "readers.read_file",
        "readers.read_page",
        "pdf.parse_pdf",
        "html.parse_html",
    )
    names = {f"apps.knowledge.parsing.{name}" for name in forbidden} | {"sandbox.archives.unpacking.unpack"}
    found = {module.name for module in modules() if not is_reader(module.name) and names & set(module.calls)}
    assert found == CALLERS
