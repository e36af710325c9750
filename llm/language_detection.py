"""Recognise the language of a visitor's message by frequent words. Pure."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

ENGLISH = "en"
_WORDS_FILE = Path(__file__).with_name("language_words.yaml")
_TOKEN = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)?")
_FIRST_CHARS = 200


def detect_language(texts: Iterable[str]) -> str:
    """Return the language of the first of `texts` (newest first) that can be told; English if none can."""
    return next((language for text in texts if (language := told_language(text))), ENGLISH)


@functools.lru_cache(maxsize=1024)
def told_language(text: str) -> str:
    """Return the language of a text; "" if it cannot be told."""
    if "\u00bf" in text[:_FIRST_CHARS]:
        return "es"  # no other language opens a question with a mark
    words = [word.lower().replace("\u2019", "'") for word in _TOKEN.findall(text[:_FIRST_CHARS])]
    tell, greet = _words("tell"), _words("greet")
    counts = {
        language: sum(word in known for word in words) + 2 * sum(word in greet.get(language, ()) for word in words)
        for language, known in tell.items()
    }
    best = max(counts, key=lambda language: (counts[language], language == ENGLISH))
    return best if counts[best] >= 2 else ""


@functools.cache
def _words(kind: str) -> Mapping[str, frozenset[str]]:
    """The words of each language: those that `tell` it, and those that `greet` in it."""
    import yaml

    listed: Mapping[str, Mapping[str, str]] = yaml.safe_load(_WORDS_FILE.read_text(encoding="utf-8"))
    return {language: frozenset(words.split()) for language, words in listed[kind].items()}
