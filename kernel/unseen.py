"""Does a text look different from what it is? Characters that cannot be seen, or that turn the reading direction.

A person who approves must see what is bound. Line breaks, tabs and the joiners inside words of some scripts are plain.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import Any

# Line breaks and tabs; the zero-width joiners that Persian or Hindi is written with.
_PLAIN_LAYOUT = frozenset("\n\r\t\u200c\u200d")
# Control, format, surrogate and private characters, line and paragraph separators; letters without a shape.
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
_BLANK_LETTERS = frozenset("\u115f\u1160\u3164\uffa0\u2800")
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def hides_something(value: Any) -> bool:
    """Is there such a character in a text, or in any key or value inside?"""
    if isinstance(value, str):
        return any(_is_hidden(character) for character in value)
    if isinstance(value, Mapping):
        return any(hides_something(each) for pair in value.items() for each in pair)
    return isinstance(value, list | tuple) and any(hides_something(each) for each in value)


def show_hidden(text: str) -> str:
    """The text with each such character written out as its code point."""
    return "".join(f"\u27e8U+{ord(each):04X}\u27e9" if _is_hidden(each) else each for each in text)


def storable(text: str) -> str:
    """The text with a mark in the place of what PostgreSQL keeps in none: NUL, and halves of characters."""
    return _UNSTORABLE.sub("\ufffd", text)


def _is_hidden(character: str) -> bool:
    if character in _PLAIN_LAYOUT:
        return False
    return character in _BLANK_LETTERS or unicodedata.category(character) in _UNSEEN
