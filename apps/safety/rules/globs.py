"""Match globs: a star is any run of characters, a question mark is one; everything else is literal.

The whole text must match; case does not matter; `*` crosses lines. The pieces between the stars are searched from left
to right, each once; a piece with question marks is searched with a bitset of its positions, so that matching takes
linear time for every pattern. No regular expression is built.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass


@dataclass(frozen=True)
class Glob:
    """A parsed pattern: the pieces between its stars, and the longest literal run that a match must contain."""

    pieces: tuple[str, ...]
    needed: str

    def matches(self, text: str) -> bool:
        """`text` must be in lower case."""
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
            start = _find(piece, text, at, end)
            if start < 0:
                return False
            at = start + len(piece)
        return True


@functools.lru_cache(maxsize=8192)
def compile_glob(pattern: str) -> Glob:
    pieces = tuple(pattern.lower().split("*"))
    pieces = (pieces[0], *(piece for piece in pieces[1:-1] if piece), *pieces[-1:]) if len(pieces) > 1 else pieces
    runs = [run for piece in pieces for run in piece.split("?")]
    return Glob(pieces, max(runs, key=len))


@functools.lru_cache(maxsize=512)
def _prepared(patterns: tuple[str, ...]) -> tuple[tuple[str, str, Glob], ...]:
    return tuple((glob.needed, pattern, glob) for pattern in patterns for glob in (compile_glob(pattern),))


def first_match(patterns: tuple[str, ...], texts: tuple[str, ...]) -> str | None:
    """Return the first pattern that matches, text by text. Most are ruled out by their longest literal run alone."""
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
    """Index of the piece, or -1. Bit n of `alive` is set while its first n + 1 characters match what was read last."""
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
    """Bitsets of the positions that each character matches, and of the positions that any character matches."""
    anything = sum(1 << at for at, want in enumerate(piece) if want == "?")
    masks = {
        character: anything | sum(1 << at for at, want in enumerate(piece) if want == character)
        for character in set(piece) - {"?"}
    }
    return masks, anything
