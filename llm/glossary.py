"""Put a question of another language into English words, for documents in English. Pure.

Word by word from `glossary.yaml`: enough to search by, not a translation. Words that it lacks stay as they are, so that
they count as not found.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import yaml

_FILE = Path(__file__).with_name("glossary.yaml")
_NO_MEANING = "_"
_LONGEST = 400
_TOKEN = re.compile(r"[^\W_]+")
_ARTICLE = r"(?:[وف]?(?:ال|بال|لل|كال)|[وفبل])?"  # Arabic: "and", "by", "for" and the article are written on the word


class _Entry(NamedTuple):
    """`english` is empty for words without meaning."""

    english: tuple[str, ...]
    pattern: re.Pattern[str]


def in_english(text: str, language: str, is_used: Callable[[str], bool] = lambda phrase: True) -> str:
    """The English counterparts of the words of `text` in their order, and the words that are not in the glossary.

    Of several counterparts the first for which `is_used` holds is taken, else the first. Empty for English and for
    languages without a glossary.
    """
    found = _found(text[:_LONGEST], language)
    chosen = (next(filter(is_used, phrases), phrases[0]) for phrases in found)
    return " ".join(dict.fromkeys(word for phrase in chosen for word in phrase.split()))


def search_words(text: str, language: str) -> str:
    """All English counterparts of the words of `text`, to be added to a search for it."""
    phrases = (phrase for phrases in _found(text[:_LONGEST], language) for phrase in phrases)
    return " ".join(dict.fromkeys(word for phrase in phrases for word in phrase.split()))


@functools.lru_cache(maxsize=512)
def _found(text: str, language: str) -> tuple[tuple[str, ...], ...]:
    """The counterparts of each word of `text`, each once; a word that is not in the glossary is its own."""
    entries = _entries().get(language)
    if entries is None:
        return ()
    plain, taken = text.lower().replace("\u2019", "'"), [False] * len(text)
    places: list[tuple[int, tuple[str, ...]]] = []
    for entry in entries:
        for match in entry.pattern.finditer(plain):
            taken[match.start() : match.end()] = [True] * (match.end() - match.start())
            places.append((match.start(), entry.english))
    unknown = [match for match in _TOKEN.finditer(plain) if not any(taken[match.start() : match.end()])]
    places += [(match.start(), (match[0],)) for match in unknown]
    return tuple(dict.fromkeys(phrases for _, phrases in sorted(places) if phrases))


@functools.cache
def _entries() -> dict[str, list[_Entry]]:
    entries: dict[str, list[_Entry]] = {}
    for english, words in yaml.safe_load(_FILE.read_text(encoding="utf-8")).items():
        phrases = () if english == _NO_MEANING else tuple(english.split(", "))
        for language, listed in words.items():
            entries.setdefault(language, []).append(_Entry(phrases, _pattern(listed, language)))
    return entries


def _pattern(listed: str, language: str) -> re.Pattern[str]:
    before = rf"(?<!\w){_ARTICLE}" if language == "ar" else r"(?<!\w)"
    return re.compile("|".join(_word_pattern(word, before) for word in listed.split()))


def _word_pattern(word: str, before: str) -> str:
    plain = re.escape(word.strip("*")).replace(r"\-", r"[\s-]")
    start = r"(?<!\w)\w*" if word.startswith("*") else before
    end = r"\w*" if word.endswith("*") else r"(?!\w)"
    return f"{start}{plain}{end}"
