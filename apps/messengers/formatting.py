"""Write a message for a provider that knows no Markdown of ours: its own marks, or plain text, in pieces of its length.

What comes of the Markdown is read from the cleaned HTML that visitors see, so that a link leads to web and mail
addresses only. Marks of citations are left out: the sources are listed at the end.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from html.parser import HTMLParser

from apps.messengers.ports import Outbound, OutboundOption
from apps.sessions.markdown import render_for_visitors
from kernel.language import gettext, in_language

_MARKS = re.compile(r"([\\`*_\[\]<>#~|])")
# Where a text is cut, the best place first.
_CUTS = ("\n\n", "\n", ". ", " ")
_FENCE = "```"


@dataclass(frozen=True)
class Style:
    """How a provider marks text. `anchors`: links are HTML; otherwise the address follows the label."""

    marks: Mapping[str, tuple[str, str]]
    clean: Callable[[str], str] = str
    anchors: bool = False


PLAIN = Style({})


def whole_text(message: Outbound) -> str:
    """The Markdown of a message with its author before and its sources behind."""
    parts = [f"**{_escape(message.author)}:**"] if message.author else []
    parts.append(message.text)
    if message.sources:
        with in_language(message.language):
            listed = "\n".join(f"- [{_escape(title)}](<{url}>)" for title, url in message.sources)
            title = gettext("Sources")
            parts.append(f"{title}:\n{listed}")
    return "\n\n".join(parts)


def numbered(text: str, options: Sequence[OutboundOption], *, language: str) -> str:
    """A question with its options as lines, for a provider without buttons."""
    if not options:
        return text
    lines = "\n".join(f"{number}. {_escape(each.label)}" for number, each in enumerate(options, 1))
    with in_language(language):
        ask = gettext("Reply with the number.")
    return f"{text}\n\n{lines}\n\n{ask}"


def pieces(text: str, most: int) -> list[str]:
    """The text in pieces of at most `most` UTF-16 units, cut between paragraphs, lines, sentences or words if it can
    be. A block of code that is cut goes on as one."""
    found, rest = [], text.strip()
    while _units(rest) > most:
        # Counted as the providers count: a character beyond the basic plane is two units. Half of one is left out.
        head = rest.encode("utf-16-le")[: 2 * (most - len(_FENCE) - 1)].decode("utf-16-le", errors="ignore")
        cuts = (at + len(mark) for mark in _CUTS if (at := head.rfind(mark, len(head) // 3)) > 0)
        cut = next(cuts, len(head))
        piece, rest = rest[:cut].rstrip(), rest[cut:].lstrip()
        if sum(line.startswith(_FENCE) for line in piece.splitlines()) % 2:
            piece, rest = f"{piece}\n{_FENCE}", f"{_FENCE}\n{rest}"
        found.append(piece)
    return [*found, rest] if rest or not found else found


def render(text: str, style: Style) -> str:
    """Markdown as the provider marks it; a text too long to be rendered as it is."""
    writer = _Writer(style)
    if not (html := render_for_visitors(text)):
        return style.clean(text)
    writer.feed(html)
    writer.close()
    return writer.text.strip()


def _escape(text: str) -> str:
    return _MARKS.sub(r"\\\1", text)


def _units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


class _Writer(HTMLParser):
    """`fresh`: nothing was written since the block began."""

    def __init__(self, style: Style) -> None:
        super().__init__(convert_charrefs=True)
        self.style, self.text, self.fresh = style, "", True
        self.lists: list[int | None] = []
        self.links: list[tuple[str, int]] = []
        self.within = {"pre": False, "span": False}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag in ("p", "pre", "blockquote", "ul", "ol"):
            self._begin_block()
        match tag:
            case "ul":
                self.lists.append(None)
            case "ol":
                self.lists.append(int(given.get("start") or 1))
            case "li":
                self._begin_item()
            case "span":
                self.text = self.text.rstrip(" ")
            case "br":
                self.text += "\n"
            case "a":
                self.links.append((given.get("href", ""), len(self.text)))
                if self.style.anchors:
                    self.text += f'<a href="{escape(given.get("href", ""))}">'
        if tag in self.within:
            self.within[tag] = True
        if tag in self.style.marks and not (tag == "code" and self.within["pre"]):
            self.text += self.style.marks[tag][0]

    def handle_endtag(self, tag: str) -> None:
        match tag:
            case "ul" | "ol":
                self.lists.pop()
            case "a":
                self._end_link(*self.links.pop())
            case "pre":
                self.text = self.text.rstrip("\n")
        if tag in self.style.marks and not (tag == "code" and self.within["pre"]):
            self.text = self.text.rstrip("\n") if tag == "blockquote" else self.text
            self.text += self.style.marks[tag][1]
        if tag in self.within:
            self.within[tag] = False

    def handle_data(self, data: str) -> None:
        if self.within["span"]:
            return
        if not self.within["pre"]:
            data = data.strip("\n")
        if data:
            self.text += self.style.clean(data)
            self.fresh = False

    def _begin_block(self) -> None:
        if not self.fresh:
            self.text = self.text.rstrip() + ("\n" if self.lists else "\n\n")
            self.fresh = True

    def _begin_item(self) -> None:
        if not self.fresh:
            self.text = self.text.rstrip() + "\n"
        number = self.lists[-1] if self.lists else None
        self.text += "  " * (len(self.lists) - 1) + ("• " if number is None else f"{number}. ")
        if number is not None:
            self.lists[-1] = number + 1
        self.fresh = True

    def _end_link(self, href: str, begun: int) -> None:
        if self.style.anchors:
            self.text += "</a>"
            return
        address, label = href.removeprefix("mailto:"), self.text[begun:]
        if address.rstrip("/") != label.rstrip("/"):
            self.text += f" ({address})"
