"""Choose the PostgreSQL text search configuration of a document by its language. Pure."""

from __future__ import annotations

import re
from collections import Counter

from llm.language_detection import ENGLISH, detect_language

# Languages that are recognised and that PostgreSQL has a configuration for.
_CONFIGS = {
    "en": "english",
    "de": "german",
    "fr": "french",
    "es": "spanish",
    "nl": "dutch",
    "ar": "arabic",
}
SIMPLE = "simple"  # words as they are: for every other script
_PARAGRAPHS = 40
_LETTERS = re.compile(r"[^\W\d_]")
_LATIN = re.compile(r"[A-Za-z\u00c0-\u024f]")


def search_config(text: str) -> str:
    """Return the configuration for the language of most paragraphs; `simple` for scripts that none is made for."""
    paragraphs = [paragraph for paragraph in text.split("\n") if paragraph.strip()][:_PARAGRAPHS]
    counts = Counter(detect_language([paragraph]) for paragraph in paragraphs)
    foreign = {language: count for language, count in counts.items() if language != ENGLISH}
    # A paragraph without a word that tells counts as English, so another language needs a third of them.
    best = max(foreign, key=lambda language: foreign[language], default=ENGLISH)
    if foreign and foreign[best] * 3 >= len(paragraphs):
        return _CONFIGS[best]
    sample = "".join(paragraphs)[:4000]
    letters = len(_LETTERS.findall(sample))
    return SIMPLE if letters and len(_LATIN.findall(sample)) * 2 < letters else _CONFIGS[ENGLISH]
