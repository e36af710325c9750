"""Detect links, images and HTML in a model's text that could leak data or run code when shown. Pure.

Images are fetched without a click, so an image URL of a foreign host can leak the conversation. Hosts that the tenant
allows, and their subdomains, are accepted if the scheme is harmless.
"""

from __future__ import annotations

import html
import re
from collections.abc import Collection, Iterator
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from apps.gates.detectors.findings import Detection, Span, build_detection

_SCRIPT, _IMAGE, _CARRIES, _STRANGE = 0.95, 0.7, 0.9, 0.3
# That many characters in a query, a fragment or one part of a path may carry what was said.
_MUCH = 24
_FAR = 2048

_MARKDOWN = re.compile(r"(!?+)\[[^\[\]\n]{0,512}+\]\(\s{0,4}+<?+([^\s<>)]{1,2048}+)[^)\n]{0,256}+\)?+")
_REFERENCE = re.compile(r"(?m)^ {0,3}+\[[^\[\]\n]{1,256}+\]:\s{0,64}+<?+([^\s<>]{1,2048}+)")
_USED = re.compile(r"!\[[^\[\]\n]{0,512}+\](?:\[[^\[\]\n]{0,256}+\])?+(?!\()")
_TAG = re.compile(r"<(/?+)([A-Za-z][A-Za-z0-9:-]{0,40}+)(?=[\s/>]|$)([^<>]{0,2048}+)>?+")
_COMMENT = re.compile(r"<!--|<!\[CDATA\[|<!DOCTYPE|<\?(?=[a-z=])", re.IGNORECASE)
_ATTRIBUTE = re.compile(
    r"(?<![\w-])([A-Za-z][\w:-]{0,40}+)\s{0,4}+=\s{0,4}+(\"[^\"]{0,2048}+|'[^']{0,2048}+|[^\s\"'<>]{1,2048}+)"
)
_BARE = re.compile(r"(?<![\w.+-])(?:https?+|ftp|wss?+)://[^\s<>\"')\]]{1,2048}+", re.IGNORECASE)
_SCHEME = re.compile(r"(?<![a-z0-9+.-])(?:javascript|vbscript|data|file|blob)\s{0,4}+:(?=\s{0,4}+[^\s])", re.IGNORECASE)
_CONTROL = re.compile(r"[\x00-\x20\x7f-\x9f\u200b-\u200f\u2060\ufeff]++")
_FETCHED = frozenset(
    {"src", "srcset", "background", "poster", "data", "style", "formaction", "action", "ping", "xlink:href"}
)
_LIVE_TAGS = """
script iframe object embed form input button svg math style link meta base frame frameset applet video audio source
track template noscript textarea select marquee body html head title
"""
_LIVE = frozenset(_LIVE_TAGS.split())
_IMAGES = frozenset({"img", "image", "picture"})


class _Link(NamedTuple):
    url: str
    start: int
    end: int
    fetched: bool


def detect_markup(text: str, *, allowed_hosts: Collection[str] = ()) -> Detection:
    """The score is how sure we are that showing the text does more than show it."""
    hosts = frozenset(host.lower().strip(".") for host in allowed_hosts)
    found = [*_tags(text), *_schemes(text)]
    for link in _links(text):
        judged = _judge(link, hosts)
        if judged:
            found.append((Span(link.start, link.end, judged[0]), judged[1]))
    return build_detection(text, found, alike=True)


def _links(text: str) -> Iterator[_Link]:
    """Signs that each sort has are looked for first, which costs next to nothing."""
    if "](" in text:
        for match in _MARKDOWN.finditer(text):
            yield _Link(match[2], *match.span(), fetched=bool(match[1]))
    if "]:" in text:
        shown = _USED.search(text) is not None
        for match in _REFERENCE.finditer(text):
            yield _Link(match[1], *match.span(), fetched=shown)
    if "://" in text:
        for match in _BARE.finditer(text):
            yield _Link(match[0], *match.span(), fetched=False)


def _tags(text: str) -> Iterator[tuple[Span, float]]:
    if "<" not in text:
        return
    for match in _COMMENT.finditer(text):
        yield Span(*match.span(), "HTML"), _IMAGE
    for match in _TAG.finditer(text):
        name = match[2].lower()
        written = match[3]
        attributes = [(key.lower(), value) for key, value in _ATTRIBUTE.findall(written)] if "=" in written else []
        runs = name in _LIVE or any(key.startswith("on") or _is_live(value) for key, value in attributes)
        fetches = name in _IMAGES or any(key in _FETCHED for key, _ in attributes)
        yield Span(*match.span(), "HTML"), _SCRIPT if runs else _CARRIES if fetches else _IMAGE


def _schemes(text: str) -> Iterator[tuple[Span, float]]:
    for match in _SCHEME.finditer(text) if ":" in text else ():
        if not _is_sentence(text, match):
            yield Span(*match.span(), "SCRIPT_URL"), _SCRIPT


def _is_sentence(text: str, match: re.Match[str]) -> bool:
    """`the data: see below` and `File: report` are words; a blank after the colon never stands in a URL that runs."""
    return match[0][-1] == ":" and text[match.end() : match.end() + 1].isspace()


def _judge(link: _Link, hosts: frozenset[str]) -> tuple[str, float] | None:
    url = _plain(link.url)
    if _is_live(url):
        return "SCRIPT_URL", _SCRIPT
    host, data = _parts(url)
    if host is None or _is_allowed(host, hosts):
        return None
    kind = "IMAGE" if link.fetched else "LINK"
    if data:
        return kind, _CARRIES if link.fetched or len(data) > 2 * _MUCH else _IMAGE
    return kind, _IMAGE if link.fetched else _STRANGE


def _plain(url: str) -> str:
    return _CONTROL.sub("", unquote(html.unescape(url[:_FAR])))


def _is_live(url: str) -> bool:
    scheme = _CONTROL.sub("", html.unescape(url[:200])).strip("\"'").lower()
    return scheme.startswith(("javascript:", "vbscript:", "data:", "file:", "blob:"))


def _parts(url: str) -> tuple[str | None, str]:
    """The host, None for a place on our own site, and what the address carries besides a place."""
    try:
        parts = urlsplit(url if "://" in url or not url.startswith(("//", "\\\\")) else "https://" + url[2:])
        host = parts.hostname
    except ValueError:
        return "", url
    if not host:
        return (None, "") if not parts.scheme or parts.scheme in {"mailto", "tel"} else ("", url)
    label = max(host.split("."), key=len)
    pieces = [parts.query, parts.fragment, *parts.path.split("/"), label]
    return host, "".join(
        piece for piece in pieces if len(piece) > _MUCH or (piece is parts.query and "=" in piece and len(piece) > 8)
    )


def _is_allowed(host: str, hosts: frozenset[str]) -> bool:
    host = host.lower().rstrip(".")
    return any(host == allowed or host.endswith("." + allowed) for allowed in hosts)
