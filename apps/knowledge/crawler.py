"""Crawl a website from a given page: pages of the same host only, within robots.txt and bounds of pages, bytes and
time.

The start page comes first, then the pages below its folder that the site's sitemaps list, then linked pages. Links are
followed within the site; a redirect to another host is not. Called by `intake_reading`.
"""

from __future__ import annotations

import html
import re
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import urljoin, urlsplit
from urllib.robotparser import RobotFileParser

from django.conf import settings

from apps.knowledge.parsing import Parsed, Problem, ProblemCode
from apps.knowledge.parsing.pages import plain_address
from apps.knowledge.sandboxed_parsing import read_page
from kernel.http.fetch import FetchFailed, Response, fetch
from kernel.stored_texts import stored_text

PAGES = 40
# Of a website that is read again: its known pages are visited first.
SOURCE_PAGES = 200
SECONDS = 180.0
_PAGE_BYTES = 2_000_000
_PAGE_SECONDS = 15.0
_ROBOTS_BYTES = 200_000
_HOPS = 4
_GONE = (404, 410)
_QUEUED = 400
_SITEMAPS = 10
_SITEMAP_SECONDS = 45.0
# Sitemaps are matched, not parsed as XML, because a hostile site's entities must not be expanded here.
_LOCATION = re.compile(r"<loc>\s*(?:<!\[CDATA\[)?([^<\]]{1,2000})")
_ENDINGS = {"text/html": ".html", "application/xhtml+xml": ".html", "text/plain": ".txt", "text/markdown": ".md"}
_WORDS = {
    "address_refused": stored_text("This address is not a public website."),
    "address_inside": stored_text("This address belongs to a private network."),
    "no_such_host": stored_text("We couldn't find a server at this address."),
    "too_slow": stored_text("The server took too long."),
    "too_large": stored_text("The page is larger than {size:d} MB.").format(size=_PAGE_BYTES // 1_000_000),
    "no_answer": stored_text("The server did not answer."),
}


@dataclass(frozen=True)
class CrawledPage:
    """One visited page: `parsed` holds its document or the problem; `total` is how many pages are known."""

    url: str
    parsed: Parsed
    total: int


def crawl(start: str, *, most: int = PAGES, known_pages: Sequence[str] = ()) -> Iterator[CrawledPage]:
    """Yield every page that can be read, the start page first, then those of `known_pages` that are on its site."""
    home, robots = urlsplit(start).netloc.lower(), _robots(start)
    waiting, known = deque([plain_address(start)]), {plain_address(start)}
    give_up, looked = time.monotonic() + SECONDS, 0
    if most > 1:
        listed = [url for url in _on_site([*known_pages, *_sitemap_pages(start, robots)], start) if url not in known]
        waiting.extend(listed)
        known.update(listed)
    while waiting and looked < most and time.monotonic() < give_up:
        url = waiting.popleft()
        looked += 1
        links: tuple[str, ...] = ()
        if robots is not None and not robots.can_fetch("SilasReader", url):
            parsed = _problem(stored_text("The website's robots.txt doesn't allow reading this page."))
        else:
            parsed, links = _read(url, home, first=looked == 1)
        for link in links:
            if link not in known and len(known) < _QUEUED and _is_same_host(link, home):
                known.add(link)
                waiting.append(link)
        yield CrawledPage(url, parsed, min(most, looked + len(waiting)))


def _read(url: str, home: str, *, first: bool) -> tuple[Parsed, tuple[str, ...]]:
    """Read the page's document and its links. A non-page, such as a picture, is skipped silently, unless it is the
    start."""
    try:
        answer = _fetch_following(url, home)
    except FetchFailed as failed:
        return _problem(_WORDS.get(failed.code, failed.code)), ()
    if answer is None:
        return _problem(stored_text("It redirects to another website, so it was skipped.")), ()
    if answer.status in _GONE:
        gone = stored_text("The server answered {status:d}.").format(status=answer.status)
        return Parsed(problems=(Problem(ProblemCode.MISSING, gone),)), ()
    if answer.status != 200:
        return _problem(stored_text("The server answered {status:d}.").format(status=answer.status)), ()
    ending = _ENDINGS.get(answer.kind)
    if ending is None:
        return (
            _problem(
                stored_text("It's not a web page ({type}).").format(type=answer.kind or stored_text("unknown type"))
            )
            if first
            else Parsed()
        ), ()
    name = urlsplit(url).path.rstrip("/").rpartition("/")[2] or urlsplit(url).netloc
    return read_page(answer.body, f"{name[:200]}{ending}", charset=answer.charset, base=answer.url)


def _fetch_following(url: str, home: str) -> Response | None:
    """Fetch and follow redirects; None if they lead away from the site."""
    for _ in range(_HOPS):
        answer = fetch(url, max_bytes=_PAGE_BYTES, seconds=_PAGE_SECONDS, allow_private=settings.WEBSITES_PRIVATE)
        if answer.status not in (301, 302, 303, 307, 308) or not answer.location:
            return answer
        url = plain_address(urljoin(answer.url, answer.location))
        if not _is_same_host(url, home):
            return None
    raise FetchFailed("no_answer")


def is_same_site(url: str, start: str) -> bool:
    """Whether the URL belongs to the site of the page `start`."""
    return _is_same_host(url, urlsplit(start).netloc.lower())


def _is_same_host(url: str, home: str) -> bool:
    """Compare hosts without `www.`: many sites redirect from the bare name to www, or back."""
    return urlsplit(url).netloc.lower().removeprefix("www.") == home.removeprefix("www.")


def _robots(start: str) -> RobotFileParser | None:
    """The site's robots.txt; None if it has none that can be read."""
    try:
        answer = _fetch_following(plain_address(urljoin(start, "/robots.txt")), urlsplit(start).netloc.lower())
    except FetchFailed:
        return None
    if answer is None or answer.status != 200 or len(answer.body) > _ROBOTS_BYTES:
        return None
    rules = RobotFileParser()
    rules.parse(answer.body.decode("utf-8", "replace").splitlines())
    return rules


def _sitemap_pages(start: str, robots: RobotFileParser | None) -> list[str]:
    """List the pages below the start page's folder that the site's sitemaps name, without the start page.

    Sitemaps are those of robots.txt, else `/sitemap.xml`; an index is followed. One that cannot be read is skipped.
    """
    home, folder = urlsplit(start).netloc.lower(), urlsplit(start).path.rpartition("/")[0] + "/"
    named = (robots.site_maps() if robots is not None else None) or [urljoin(start, "/sitemap.xml")]
    waiting = deque(_on_site(named, start))
    seen, pages = set(waiting), dict.fromkeys([plain_address(start)])
    give_up, looked = time.monotonic() + _SITEMAP_SECONDS, 0
    while waiting and looked < _SITEMAPS and len(pages) < _QUEUED and time.monotonic() < give_up:
        url = waiting.popleft()
        looked += 1
        if robots is not None and not robots.can_fetch("SilasReader", url):
            continue
        try:
            answer = _fetch_following(url, home)
        except FetchFailed:
            continue
        if answer is None or answer.status != 200:
            continue
        text = answer.body.decode("utf-8", "replace")
        found = _on_site([html.unescape(location.strip()) for location in _LOCATION.findall(text)], start)
        if "<sitemapindex" in text:
            waiting.extend(address for address in found if address not in seen)
            seen.update(found)
        else:
            pages.update(dict.fromkeys(page for page in found if urlsplit(page).path.startswith(folder)))
    return list(pages)[1:_QUEUED]


def _on_site(addresses: list[str], start: str) -> list[str]:
    """Keep the valid addresses of the site, each once, in their order."""
    kept = []
    for address in addresses:
        try:
            plain = plain_address(urljoin(start, address))
            if is_same_site(plain, start):
                kept.append(plain)
        except ValueError:
            continue
    return list(dict.fromkeys(kept))


def _problem(words: str) -> Parsed:
    return Parsed(problems=(Problem(ProblemCode.UNREADABLE, words),))
