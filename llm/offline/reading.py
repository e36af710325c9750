"""Split a passage into sentences with their words and headings, once for each text. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

from llm.briefing import Passage
from llm.embedding import embed_rows
from llm.offline.intents import Quantity
from llm.offline.vocabulary import NUMBERS, TIMES
from llm.offline.words import is_stop_word, sentences, stems, words

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Words = frozenset[str]
_QUOTE_LENGTH = 420
_TELLS = {
    Quantity.TIME: re.compile(rf"\b(?:\d+|{NUMBERS})(?:[ -]\w+)? ?(?:{TIMES})\b|\b\d{{1,2}}:\d\d\b", re.I),
    Quantity.SUM: re.compile(r"[£€$]\s?\d|\d\s?(?:[€%]|pounds|euros|dollars)|\bfree\b|\bno fee\b", re.I),
    Quantity.NUMBER: re.compile(rf"\d|\b(?:{NUMBERS})\b", re.I),
}


@dataclass(frozen=True)
class Sentence:
    """Characters `start` to `end` of the passage's quote; `pairs` are words that stand side by side."""

    start: int
    end: int
    words: Words
    pairs: frozenset[tuple[str, str]]
    heading: Words
    tells: frozenset[Quantity]


@dataclass(frozen=True)
class Reading:
    """`words` are all words of the passage, its title's too; `said` are the same as they are written, without stop
    words; `vectors` has a row for each sentence, embedded behind the title.
    """

    sentences: tuple[Sentence, ...]
    title: Words
    words: Words
    said: Words
    vectors: npt.NDArray[np.float32]


def read(passage: Passage) -> Reading:
    return _read(passage.title, passage.quote)


@lru_cache(maxsize=1024)
def _read(title: str, quote: str) -> Reading:
    heading: Words = frozenset()
    parts = []
    for start, end in sentences(quote):
        text = quote[start:end]
        stemmed = stems(text)
        if text[0] == "#":
            heading = frozenset(stemmed)
        else:
            parts.append(Sentence(start, end, frozenset(stemmed), frozenset(pairwise(stemmed)), heading, _tells(text)))
    titled = frozenset(stems(title))
    said = frozenset(word for word in words(f"{title} {quote}") if not is_stop_word(word))
    vectors = embed_rows([f"{title} {quote[part.start : part.end]}" for part in parts])
    return Reading(tuple(parts), titled, frozenset(stems(quote)) | titled, said, vectors)


def _tells(text: str) -> frozenset[Quantity]:
    """The quantities in a sentence: a time ("within 10 days"), a sum ("£50"), any number."""
    return frozenset(quantity for quantity, pattern in _TELLS.items() if pattern.search(text))


def quote_from(text: str, start: int, end: int) -> str:
    """The sentence with the rest of its paragraph, which may hold the exception; after a question, its answer."""
    for following, stop in sentences(text):
        if following < end:
            continue
        asks = text[start:end].rstrip("*_ ").endswith("?")
        leaves = "\n\n" in text[end:following].replace(" ", "") or text[following] in "|-*+"
        if stop - start > _QUOTE_LENGTH or text[following] == "#" or (leaves and not asks):
            break
        end = stop
    return text[start:end]
