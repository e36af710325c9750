"""What does a website say? Its pages, one after the other, from the page that somebody named.

Only pages of the same host, what its robots.txt allows, so many pages, bytes and seconds and no more. Where a page
leads to is followed within those walls; a redirect to another host is not. Called by the reading of what was handed in.
"""

from __future__ import annotations

import codecs
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from urllib.parse import urldefrag, urljoin, urlsplit
from urllib.robotparser import RobotFileParser

import nh3
from django.conf import settings

from apps.memory.parsing import Parsed, Problem, ProblemCode, parse
from kernel.visiting import SCHEMES, Answer, NotReached, visit

PAGES = 40
SECONDS = 180.0
_PAGE_BYTES = 2_000_000
_PAGE_SECONDS = 15.0
_ROBOTS_BYTES = 200_000
_HOPS = 4
_QUEUED = 400
_LONGEST_ADDRESS = 500
_ENDINGS = {"text/html": ".html", "application/xhtml+xml": ".html", "text/plain": ".txt", "text/markdown": ".md"}
_WORDS = {
    "address_refused": "This address leads to no public website.",
    "address_inside": "This address leads into a private network.",
    "no_such_host": "Nobody knows a server of this name.",
    "too_slow": "The server took too long.",
    "too_large": f"The page is larger than {_PAGE_BYTES // 1_000_000} MB.",
    "no_answer": "The server did not answer.",
}


@dataclass(frozen=True)
class Page:
    """One page that was looked at: `parsed` holds its document, or the problem; `total` is how many are known of."""

    url: str
    parsed: Parsed
    total: int


def pages_of(start: str, *, most: int = PAGES) -> Iterator[Page]:
    """Every page that can be read, the named one first."""
    home, robots = urlsplit(start).netloc.lower(), _robots(start)
    waiting, known = deque([_plain(start)]), {_plain(start)}
    give_up, looked = time.monotonic() + SECONDS, 0
    while waiting and looked < most and time.monotonic() < give_up:
        url = waiting.popleft()
        looked += 1
        links: tuple[str, ...] = ()
        if robots is not None and not robots.can_fetch("SilasReader", url):
            parsed = _problem("The site's robots.txt asks not to read this page.")
        else:
            parsed, links = _read(url, home, first=looked == 1)
        for link in links:
            if link not in known and len(known) < _QUEUED and _is_at(link, home):
                known.add(link)
                waiting.append(link)
        yield Page(url, parsed, min(most, looked + len(waiting)))


def _read(url: str, home: str, *, first: bool) -> tuple[Parsed, tuple[str, ...]]:
    """The page's document and the links on it. What is no page (a picture) is passed over without a word, unless
    somebody named it."""
    try:
        answer = _followed(url, home)
    except NotReached as failed:
        return _problem(_WORDS.get(failed.code, failed.code)), ()
    if answer is None:
        return _problem("It leads to another website, which is not read."), ()
    if answer.status != 200:
        return _problem(f"The server answered {answer.status}."), ()
    ending = _ENDINGS.get(answer.kind)
    if ending is None:
        return (
            (_problem(f"It is no page but {answer.kind or 'something without a type'}."), ())
            if first
            else (
                Parsed(),
                (),
            )
        )
    try:
        body = _as_utf8(answer)
    except (LookupError, UnicodeDecodeError):
        return Parsed(problems=(Problem(ProblemCode.WRONG_ENCODING, f"It is not {answer.charset}, as it says."),)), ()
    name = urlsplit(url).path.rstrip("/").rpartition("/")[2] or urlsplit(url).netloc
    parsed = parse(body, f"{name[:200]}{ending}")
    return parsed, _links(body, answer.url) if ending == ".html" else ()


def _followed(url: str, home: str) -> Answer | None:
    """The answer at the end of its redirects; None where they lead away from the site."""
    for _ in range(_HOPS):
        answer = visit(url, most=_PAGE_BYTES, seconds=_PAGE_SECONDS, private=settings.WEBSITES_PRIVATE)
        if answer.status not in (301, 302, 303, 307, 308) or not answer.location:
            return answer
        url = _plain(urljoin(answer.url, answer.location))
        if not _is_at(url, home):
            return None
    raise NotReached("no_answer")


def _is_at(url: str, home: str) -> bool:
    """Whether it is the same site: most lead from the bare name to www, or back."""
    return urlsplit(url).netloc.lower().removeprefix("www.") == home.removeprefix("www.")


def _as_utf8(answer: Answer) -> bytes:
    """In the encoding that the header names, if it names one: the mark in front is believed before the page's own
    word."""
    if not answer.charset:
        return answer.body
    return codecs.BOM_UTF8 + answer.body.decode(answer.charset).removeprefix("\ufeff").encode()


def _links(body: bytes, base: str) -> tuple[str, ...]:
    collector = _Links()
    page = body.decode("utf-8", "replace")
    collector.feed(nh3.clean(page, tags={"a"}, attributes={"a": {"href"}}, url_schemes=set(SCHEMES), link_rel=None))
    found = (_plain(urljoin(base, href)) for href in collector.found)
    return tuple(dict.fromkeys(url for url in found if url))


class _Links(HTMLParser):
    """Sees nh3's clean output only (as the page's text is read)."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value for name, value in attrs if name == "href" and value]


def _plain(url: str) -> str:
    """One page, one address: without a fragment; empty for what cannot be read."""
    try:
        address = urldefrag(url).url
        parts = urlsplit(address)
    except ValueError:
        return ""
    if parts.scheme not in SCHEMES or not parts.netloc or len(address) > _LONGEST_ADDRESS:
        return ""
    return parts._replace(path=parts.path or "/", netloc=parts.netloc.lower()).geturl()


def _robots(start: str) -> RobotFileParser | None:
    """What the site asks of readers; None where it says nothing."""
    try:
        answer = _followed(_plain(urljoin(start, "/robots.txt")), urlsplit(start).netloc.lower())
    except NotReached:
        return None
    if answer is None or answer.status != 200 or len(answer.body) > _ROBOTS_BYTES:
        return None
    rules = RobotFileParser()
    rules.parse(answer.body.decode("utf-8", "replace").splitlines())
    return rules


def _problem(words: str) -> Parsed:
    return Parsed(problems=(Problem(ProblemCode.UNREADABLE, words),))
