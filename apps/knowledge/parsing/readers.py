"""Entry points for the sandbox: run a parser and return plain data for `apps.knowledge.sandboxed_parsing`."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import PurePath

from apps.knowledge.parsing.files import SUFFIXES, parse
from apps.knowledge.parsing.office import parse_office
from apps.knowledge.parsing.pages import parse_page
from apps.knowledge.parsing.schemas import Parsed


def read_file(data: bytes, name: str) -> tuple[dict[str, object], bytes]:
    return _told(parse(data, name)), b""


def read_attachment(data: bytes, name: str, most: int) -> tuple[dict[str, object], bytes]:
    """The first `most` characters of a file's text, office files among them."""
    parsed = parse(data, name) if PurePath(name).suffix.lower() in SUFFIXES else parse_office(data, name)
    return _told(
        replace(parsed, documents=tuple(replace(each, text=each.text[:most]) for each in parsed.documents))
    ), b""


def read_page(data: bytes, name: str, charset: str, base: str) -> tuple[dict[str, object], bytes]:
    parsed, links = parse_page(data, name, charset=charset, base=base)
    return {**_told(parsed), "links": list(links)}, b""


def _told(parsed: Parsed) -> dict[str, object]:
    return asdict(parsed)
