"""Split a document into pieces, so that one piece answers one question.

Pure. A piece is a slice of the text that starts and ends with a visible character, within one section, a few paragraphs
long; `text.encode()[piece.start:piece.end].decode()` is its text, and every visible character is in a piece. A form
feed begins a page. Services and benchmarks call `split`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

# In characters: a piece is closed when the next paragraph would pass WANTED, and is never longer than LONGEST.
WANTED = 700
LONGEST = 1200
CONTEXT = 300
_JOINT = " / "

_LINE = re.compile(r"[^\n\f]*(?:\n|\f|\Z)")
_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(?=\S)")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_ENDS = (re.compile(r"\n"), re.compile(r"(?<=[.!?…。！？])\s"), re.compile(r"\s"))  # noqa: RUF001 (full-width punctuation is meant)


@dataclass(frozen=True)
class Piece:
    """`start` and `end` are byte offsets into the text's UTF-8; `context` names the document and its headings."""

    ordinal: int
    start: int
    end: int
    text: str
    context: str


@dataclass(frozen=True)
class _Block:
    """A paragraph, fenced block or heading at characters `start` to `end`; `level` 0 is no heading."""

    start: int
    end: int
    level: int = 0
    title: str = ""
    page: int = 0


@dataclass
class _Path:
    """The headings above the current position."""

    title: str
    headings: list[tuple[int, str]] = field(default_factory=list)
    page: int = 0

    def enter(self, block: _Block) -> None:
        self.headings = [heading for heading in self.headings if heading[0] < block.level]
        self.headings.append((block.level, block.title))

    def __str__(self) -> str:
        words = [self.title, *(title for _, title in self.headings)]
        if self.page:
            words.append(f"page {self.page}")
        return _JOINT.join(dict.fromkeys(word for word in words if word))[:CONTEXT]


def split(text: str, *, title: str = "") -> list[Piece]:
    """Cut `text` (Markdown or plain) into pieces, in order, without overlap."""
    pieces: list[Piece] = []
    counted, at = 0, 0
    for start, end, context in _spans(text, title):
        start_byte = at + len(text[counted:start].encode())
        at = start_byte + len(text[start:end].encode())
        counted = end
        pieces.append(Piece(len(pieces), start_byte, at, text[start:end], context))
    return pieces


def _spans(text: str, title: str) -> Iterator[tuple[int, int, str]]:
    for section, context in _sections(text, title):
        for start, end in _pack(text, section):
            yield start, end, context


def _sections(text: str, title: str) -> Iterator[tuple[list[_Block], str]]:
    """Group blocks: headings with the text below them, up to the next heading or page."""
    path, section = _Path(title), list[_Block]()
    for block in _blocks(text):
        if section and (block.page != path.page or (block.level and not section[-1].level)):
            yield section, str(path)
            section = []
        path.page = block.page
        if block.level:
            path.enter(block)
        section.append(block)
    if section:
        yield section, str(path)


def _pack(text: str, section: Iterable[_Block]) -> Iterator[tuple[int, int]]:
    """Join a section's blocks up to the target length, a heading always with what follows; cut longer ones."""
    begun, reached, bare = -1, 0, False
    for block in section:
        if begun >= 0 and not bare and block.end - begun > WANTED:
            yield from _cut(text, begun, reached)
            begun = -1
        if begun < 0:
            begun = block.start
        reached, bare = block.end, bool(block.level)
    if begun >= 0:
        yield from _cut(text, begun, reached)


def _cut(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    while end - start > LONGEST:
        middle = _place_to_cut(text, start + LONGEST // 2, start + LONGEST)
        yield from _trim(text, start, middle)
        start = middle
    yield from _trim(text, start, end)


def _place_to_cut(text: str, low: int, high: int) -> int:
    """The last end of a line between `low` and `high`, else of a sentence, else of a word, else `high`."""
    for ends in _ENDS:
        places = [match.end() for match in ends.finditer(text, low, high)]
        if places:
            return places[-1]
    return high


def _trim(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    piece = text[start:end]
    visible = piece.strip()
    if visible:
        start += len(piece) - len(piece.lstrip())
        yield start, start + len(visible)


def _blocks(text: str) -> Iterator[_Block]:
    begun, end, fence, page, paged = -1, 0, "", 0, "\f" in text
    for match in _LINE.finditer(text):
        line = match.group()
        if not line:
            continue
        bare = line.rstrip("\n\f")
        level, heading = (0, "") if fence else _heading(bare)
        if begun >= 0 and not fence and (level or not bare.strip()):
            yield _Block(begun, end, page=page + paged)
            begun = -1
        if level:
            yield _Block(match.start(), match.start() + len(bare), level, heading, page + paged)
        elif bare.strip():
            begun = match.start() if begun < 0 else begun
            end = match.start() + len(bare)
            fence = _fence_after(fence, bare)
        if line.endswith("\f"):
            if begun >= 0:
                yield _Block(begun, end, page=page + paged)
            begun, fence, page = -1, "", page + 1
    if begun >= 0:
        yield _Block(begun, end, page=page + paged)


def _heading(line: str) -> tuple[int, str]:
    """Level and words of an ATX heading (CommonMark 4.2); level 0 for any other line."""
    match = _HEADING.match(line)
    if match is None:
        return 0, ""
    words = line[match.end() : match.end() + CONTEXT].strip()
    return len(match[1]), words.rstrip("#").rstrip() or words


def _fence_after(fence: str, line: str) -> str:
    """The fence that is open after `line`, if any: only its own kind, at least as long, closes it (CommonMark 4.5)."""
    match = _FENCE.match(line)
    if match is None:
        return fence
    if not fence:
        return match[1]
    closes = match[1].startswith(fence) and not line[match.end() :].strip()
    return "" if closes else fence
