"""Entry points for the sandbox: run a parser and return plain data for `apps.knowledge.sandboxed_parsing`."""

from __future__ import annotations

from dataclasses import asdict

from apps.knowledge.parsing.files import parse
from apps.knowledge.parsing.pages import parse_page
from apps.knowledge.parsing.schemas import Parsed


def read_file(data: bytes, name: str) -> tuple[dict[str, object], bytes]:
    return _told(parse(data, name)), b""


def read_page(data: bytes, name: str, charset: str, base: str) -> tuple[dict[str, object], bytes]:
    parsed, links = parse_page(data, name, charset=charset, base=base)
    return {**_told(parsed), "links": list(links)}, b""


def _told(parsed: Parsed) -> dict[str, object]:
    return asdict(parsed)
