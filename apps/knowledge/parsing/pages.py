"""Parse one page of a website: its document and the addresses that it links to."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from html.parser import HTMLParser
from urllib.parse import urldefrag, urljoin, urlsplit

from apps.knowledge.parsing.files import parse
from apps.knowledge.parsing.schemas import Parsed, Problem, ProblemCode
from kernel.stored_texts import stored_text

SCHEMES = ("https", "http")
MAX_URL_LENGTH = 500
MAX_LINKS = 2000


def parse_page(body: bytes, name: str, *, charset: str, base: str) -> tuple[Parsed, tuple[str, ...]]:
    """`charset` is what the server says, and is believed before the page's own word; `base` is the page's address."""
    try:
        page = _as_utf8(body, charset)
    except (LookupError, ValueError):
        return Parsed(
            problems=(
                Problem(
                    ProblemCode.WRONG_ENCODING,
                    stored_text("The page isn't encoded as {charset}, as it states.").format(charset=charset),
                ),
            )
        ), ()
    parsed = parse(page, name)
    # A tree that deep would be built again for its links.
    is_read = not any(problem.code == ProblemCode.BROKEN_HTML for problem in parsed.problems)
    return parsed, tuple(_links(page, base)) if name.endswith(".html") and is_read else ()


def plain_address(url: str) -> str:
    """One page, one address: without a fragment; empty for what cannot be read."""
    try:
        address = urldefrag(url).url
        parts = urlsplit(address)
    except ValueError:
        return ""
    if parts.scheme not in SCHEMES or not parts.netloc or len(address) > MAX_URL_LENGTH:
        return ""
    return parts._replace(path=parts.path or "/", netloc=parts.netloc.lower()).geturl()


def _as_utf8(body: bytes, charset: str) -> bytes:
    """With a mark in front where a charset is named, which is believed before what the page says itself."""
    if not charset:
        return body
    return codecs.BOM_UTF8 + body.decode(charset).removeprefix("\ufeff").encode()


def _links(page: bytes, base: str) -> Iterator[str]:
    collector = _Links()
    text = page.decode("utf-8", "replace")
    import nh3

    collector.feed(nh3.clean(text, tags={"a"}, attributes={"a": {"href"}}, url_schemes=set(SCHEMES), link_rel=None))
    urls = (_joined(base, href) for href in collector.found[:MAX_LINKS])
    return (url for url in dict.fromkeys(urls) if url)


def _joined(base: str, href: str) -> str:
    try:
        return plain_address(urljoin(base, href))
    except ValueError:
        return ""


class _Links(HTMLParser):
    """Sees nh3's clean output only (as the page's text is read)."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value for name, value in attrs if name == "href" and value]
