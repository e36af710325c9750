"""Does a hint match a pattern? `*` is any run, `?` one character; everything else stands for itself.

The whole text has to match; case does not matter; `*` crosses lines. The pieces between the stars are looked for from
left to right, each once, so that no pattern makes the comparison explode. No regular expression is ever built.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass


@dataclass(frozen=True)
class Glob:
    """A pattern taken apart: the pieces between its stars, and the longest plain run that a match must hold."""

    pieces: tuple[str, ...]
    needed: str

    def matches(self, text: str) -> bool:
        """`text` is lower case already."""
        if self.needed not in text:
            return False
        if len(self.pieces) == 1:
            return len(text) == len(self.pieces[0]) and _fits(self.pieces[0], text, 0)
        first, *middle, last = self.pieces
        end = len(text) - len(last)
        if end < len(first) or not _fits(first, text, 0) or not _fits(last, text, end):
            return False
        at = len(first)
        for piece in middle:
            found = _find(piece, text, at, end)
            if found < 0:
                return False
            at = found + len(piece)
        return True


@functools.lru_cache(maxsize=8192)
def compiled(pattern: str) -> Glob:
    pieces = tuple(pattern.lower().split("*"))
    pieces = (pieces[0], *(piece for piece in pieces[1:-1] if piece), *pieces[-1:]) if len(pieces) > 1 else pieces
    runs = [run for piece in pieces for run in piece.split("?")]
    return Glob(pieces, max(runs, key=len))


@functools.lru_cache(maxsize=512)
def _prepared(patterns: tuple[str, ...]) -> tuple[tuple[str, str, Glob], ...]:
    return tuple((glob.needed, pattern, glob) for pattern in patterns for glob in (compiled(pattern),))


def first_match(patterns: tuple[str, ...], texts: tuple[str, ...]) -> str | None:
    """The first text's first pattern that matches it. Most patterns are done with once their longest plain run is not
    found."""
    prepared = _prepared(patterns)
    for text in texts:
        for needed, pattern, glob in prepared:
            if needed in text and glob.matches(text):
                return pattern
    return None


def _fits(piece: str, text: str, at: int) -> bool:
    if "?" not in piece:
        return text.startswith(piece, at)
    return all(want in ("?", got) for want, got in zip(piece, text[at : at + len(piece)], strict=True))


def _find(piece: str, text: str, start: int, end: int) -> int:
    if "?" not in piece:
        return text.find(piece, start, end)
    return next((at for at in range(start, end - len(piece) + 1) if _fits(piece, text, at)), -1)
