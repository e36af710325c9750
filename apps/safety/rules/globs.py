"""Does a hint match a pattern? `*` is any run, `?` one character; everything else stands for itself.

The whole text has to match; case does not matter; `*` crosses lines. The pieces between the stars are looked for from
left to right, each once; a piece with question marks is looked for with one bit for each of its places, so that no
pattern makes the comparison explode. No regular expression is ever built.
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
    """Where the piece begins, or -1. Bit n of `alive` says that its first n + 1 places fit what was read last."""
    if "?" not in piece:
        return text.find(piece, start, end)
    places, anything = _places(piece)
    alive, whole = 0, 1 << (len(piece) - 1)
    for at in range(start, end):
        alive = ((alive << 1) | 1) & places.get(text[at], anything)
        if alive & whole:
            return at - len(piece) + 1
    return -1


@functools.lru_cache(maxsize=2048)
def _places(piece: str) -> tuple[dict[str, int], int]:
    """For each of its characters the places where it fits, and the places where anything does."""
    anything = sum(1 << at for at, want in enumerate(piece) if want == "?")
    wanted = set(piece) - {"?"}
    return {each: anything | sum(1 << at for at, want in enumerate(piece) if want == each) for each in wanted}, anything
