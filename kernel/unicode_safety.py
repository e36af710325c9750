"""Find and escape characters that make a text look different from what it is: invisible or direction-changing ones.

A person who approves something must see exactly what the approval covers. Line breaks and tabs are allowed, and so are
joiners between letters of scripts that need them, but not next to ASCII. `escape_confusables` also marks letters of
one script inside a word of another.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping

# Line breaks and tabs; the zero-width joiners that Persian or Hindi is written with.
_PLAIN_LAYOUT = frozenset("\n\r\t\u200c\u200d")
# Control, format, surrogate and private characters, line and paragraph separators; letters without a shape.
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
_BLANK_LETTERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0\u2800")
_JOINER = re.compile("(?<=[\x21-\x7e])[\u200c\u200d]|[\u200c\u200d](?=[\x21-\x7e])|^[\u200c\u200d]|[\u200c\u200d]$")
# Scripts with letters that look like Latin ones.
_LOOK_ALIKE = frozenset({"CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC", "FULLWIDTH", "MATHEMATICAL"})
_WORD = re.compile(r"\S+")
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def has_hidden_characters(value: object) -> bool:
    """Whether a text, or any key or value inside, has such a character."""
    if isinstance(value, str):
        return any(_is_hidden(character) for character in value) or _JOINER.search(value) is not None
    if isinstance(value, Mapping):
        return any(has_hidden_characters(part) for pair in value.items() for part in pair)
    return isinstance(value, list | tuple) and any(has_hidden_characters(part) for part in value)


def escape_hidden(text: str) -> str:
    """The text with each such character written out as its code point."""
    text_ = _JOINER.sub(lambda joiner: _code(joiner[0]), text)
    return "".join(_code(character) if _is_hidden(character) else character for character in text_)


def escape_confusables(text: str) -> str:
    """`escape_hidden`, and after each letter of a look-alike script in a word with Latin letters its code point."""
    return _WORD.sub(lambda word: _mark_confusables(word[0]), escape_hidden(text))


def _mark_confusables(word: str) -> str:
    if word.isascii():
        return word
    scripts = [_script(character) for character in word]
    if "LATIN" not in scripts or not _LOOK_ALIKE & set(scripts):
        return word
    return "".join(
        f"{character}{_code(character)}" if script in _LOOK_ALIKE else character
        for character, script in zip(word, scripts, strict=True)
    )


def _script(character: str) -> str:
    return unicodedata.name(character, "").partition(" ")[0] if character.isalpha() else ""


def _code(character: str) -> str:
    return f"\u27e8U+{ord(character):04X}\u27e9"


def truncate(text: str, most: int) -> str:
    """The text in at most `most` characters; a truncated text ends with an ellipsis."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def replace_unstorable(text: str) -> str:
    """The text with U+FFFD in place of what PostgreSQL cannot store: NUL, and lone surrogates."""
    return _UNSTORABLE.sub("\ufffd", text)


def _is_hidden(character: str) -> bool:
    if character in _PLAIN_LAYOUT:
        return False
    return character in _BLANK_LETTERS or unicodedata.category(character) in _UNSEEN
