"""Word lists as bit masks: given names, family names, English words, places. Read once. Pure.

The lists are `tables/words.txt`, made by tools/make_words.py; a word in none of them is a stranger, which in a text of
English says something too. Called by `name_scores`.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from functools import cache, lru_cache

from apps.gates.detectors.normalise import TABLES

LISTS = ("given_common", "given", "given_rare", "family_common", "family", "word", "word_or_name", "proper", "place")
# Letters that are no letter with an accent, as the lists write them.
_LETTERS = str.maketrans({"ß": "ss", "ø": "o", "æ": "ae", "œ": "oe", "ł": "l", "đ": "d", "ð": "d", "þ": "th"})


def plain(word: str) -> str:
    """Lower case without accents: how the lists write words."""
    low = word.lower()
    return low if low.isascii() else _plain(low)


def lists_of(word: str) -> int:
    """One bit for each of `LISTS` that a plain word is in; 0 for a stranger."""
    return lexicon().get(word, 0)


@lru_cache(maxsize=4096)
def _plain(low: str) -> str:
    parts = unicodedata.normalize("NFKD", low.translate(_LETTERS))
    return "".join(part for part in parts if unicodedata.category(part) != "Mn")


@cache
def lexicon() -> Mapping[str, int]:
    found: dict[str, int] = {}
    for line in (TABLES / "words.txt").read_text("utf-8").splitlines():
        name, colon, words = line.partition(":")
        if colon and not line.startswith("#"):
            bit = 1 << LISTS.index(name)
            for word in words.split():
                found[word] = found.get(word, 0) | bit
    return found
