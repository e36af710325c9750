"""Convert a web page's visible text to Markdown, without scripts, styles and navigation.

html5ever (through nh3) reads the page as a browser would, in linear time; the standard parser, which takes quadratic
time on broken pages, only sees nh3's clean output.
"""

from __future__ import annotations

import re
from html.parser import HTMLParser

from apps.knowledge.parsing.schemas import ParsedDocument, ProblemCode, Unreadable
from apps.knowledge.parsing.text import decode, name_to_title, one_line
from kernel.stored_texts import stored_text

_HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}
_BLOCKS = {"p", "div", "section", "article", "main", "blockquote", "ul", "ol", "dl", "dt", "dd", "table", "figure"}
_KEPT = {"title", "pre", "br", "li", "tr", "td", "th", *_HEADINGS, *_BLOCKS}
_DROPPED = {"script", "style", "template", "noscript", "nav", "svg", "iframe", "object", "select", "button"}
_DECLARED = re.compile(rb"""<meta[^>]{0,200}?charset\s{0,9}=\s{0,9}["']?\s{0,9}([\w-]{2,40})""", re.IGNORECASE)
_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9-]{0,40})")
# Elements that browsers close by themselves; leaving them open is ordinary.
_SELF_CLOSING = {"p", "li", "dt", "dd", "tr", "td", "th", "option", "thead", "tbody"}
_VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
DEEPEST = 500


def parse_html(data: bytes, name: str) -> ParsedDocument:
    declared = _DECLARED.search(data[:2048])
    page = decode(data, declared=declared[1].decode() if declared else "")
    require_shallow(page)
    reader = _Reader()
    import nh3

    reader.feed(nh3.clean(page, tags=_KEPT, attributes={}, clean_content_tags=_DROPPED, link_rel=None))
    reader.close()
    title = one_line(reader.title) or name_to_title(name)
    return ParsedDocument(title=title, text=reader.text())


def require_shallow(page: str) -> None:
    """Refuse markup nested beyond any real page: a tree that deep takes quadratic time to build."""
    depth = 0
    for match in _TAG.finditer(page):
        tag = match[2].lower()
        if tag in _SELF_CLOSING or tag in _VOID:
            continue
        depth = max(0, depth - 1) if match[1] else depth + 1
        if depth > DEEPEST:
            raise Unreadable(
                ProblemCode.BROKEN_HTML,
                stored_text("The page is nested more than {count:d} levels deep.").format(count=DEEPEST),
            )


class _Reader(HTMLParser):
    """Writes Markdown while it reads; `_gap` is the whitespace to write before the next words."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.title = ""
        self._written: list[str] = []
        self._gap = ""
        self._in_title = False
        self._verbatim = 0

    def text(self) -> str:
        return "".join(self._written).strip()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "title":
            self._in_title = True
        elif tag in _HEADINGS:
            self._break("\n\n" + _HEADINGS[tag])
        elif tag == "li":
            self._break("\n- ")
        elif tag in ("br", "tr"):
            self._break("\n")
        elif tag in ("td", "th"):
            self._break(" | " if self._gap == "" else self._gap)
        elif tag in _BLOCKS or tag == "pre":
            self._verbatim += tag == "pre"
            self._break("\n\n")

    def handle_endtag(self, tag: str) -> None:
        if tag == "title":
            self._in_title = False
        elif tag in _HEADINGS or tag in _BLOCKS or tag == "pre":
            self._verbatim -= tag == "pre"
            self._break("\n\n")

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.title += data
            return
        words = data if self._verbatim else re.sub(r"[ \t\n\f\xa0]+", " ", data)
        if not words.strip():
            self._gap = self._gap or (" " if words else "")
            return
        gap = self._gap or (" " if words[0] == " " else "")
        self._written.append((gap + words.strip()) if not self._verbatim else gap + words)
        self._gap = " " if words[-1] == " " and not self._verbatim else ""

    def _break(self, gap: str) -> None:
        """Keep the strongest gap asked for: a list mark or heading over blank lines over a line end over a space."""
        self._gap = max(self._gap, gap, key=lambda candidate: (len(candidate.strip()), candidate.count("\n")))
