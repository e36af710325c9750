"""What do the passages say to this question? Whole sentences, byte for byte, or the plain word that nobody here
knows. Pure.

A sentence counts by the rare words of the question it holds; a question whose rarest words stand nowhere is not
answered.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from kernel.llm.briefing import Passage
from kernel.llm.citations import cite
from kernel.llm.grounded.words import content, near, sentences, stems
from kernel.llm.schemas import Citation

_SURE, _MAYBE = 0.7, 0.45
_SHARED_AT_LEAST = 3
_QUOTE_LENGTH = 420
_SECOND_AT_LEAST = 0.85
_CONTEXT_WORTH = 0.3


@dataclass(frozen=True)
class Sentence:
    passage: Passage
    start: int
    end: int
    score: float

    @property
    def text(self) -> str:
        return self.passage.quote[self.start : self.end]


@dataclass(frozen=True)
class Finding:
    """`coverage` is the weight of the question's words that were found, 0 to 1; `shared` how many stand in one
    sentence.
    """

    citations: tuple[Citation, ...]
    coverage: float
    shared: int = 0

    @property
    def is_sure(self) -> bool:
        return self.coverage >= _SURE

    @property
    def is_worth_showing(self) -> bool:
        return self.coverage >= _MAYBE or self.shared >= _SHARED_AT_LEAST


NOTHING = Finding((), 0.0)


def find(question: str, passages: Sequence[Passage], *, context: str = "") -> Finding:
    """The best quotes for `question`; `context` is an earlier question that a short follow-up leans on."""
    asked, around = content(question), content(context)
    if not passages or not (asked or around):
        return NOTHING
    weights = _weights(asked or around, passages)
    leaning = _weights([word for word in around if word not in weights], passages)
    wanted = weights | {word: _Wanted(found.forms, _CONTEXT_WORTH * found.weight) for word, found in leaning.items()}
    ranked = sorted((_best_sentence(passage, wanted.values()) for passage in passages), key=lambda best: -best.score)
    best = ranked[0]
    if best.score == 0:
        return NOTHING
    others = [other for other in ranked[1:] if other.score >= _SECOND_AT_LEAST * best.score and _differs(other, best)]
    quotes = tuple(cite(chosen.passage, _quote(chosen)) for chosen in (best, *others[:1]))
    coverage = _found(weights.values(), _read(best.passage).words) / sum(found.weight for found in weights.values())
    said = frozenset(stems(best.text))
    return Finding(quotes, coverage, sum(not said.isdisjoint(found.forms) for found in weights.values()))


@dataclass(frozen=True)
class _Wanted:
    """A word of the question: the forms in which the passages hold it, and how much it tells."""

    forms: frozenset[str]
    weight: float


@dataclass(frozen=True)
class _Reading:
    """The sentences of a passage with their words and those of the heading above them; `words` are all of them."""

    sentences: tuple[tuple[int, int, frozenset[str], frozenset[str]], ...]
    words: frozenset[str]


def _read(passage: Passage) -> _Reading:
    return _reading(passage.title, passage.quote)


@lru_cache(maxsize=1024)
def _reading(title: str, quote: str) -> _Reading:
    heading: frozenset[str] = frozenset()
    found = []
    for start, end in sentences(quote):
        said = frozenset(stems(quote[start:end]))
        if quote[start] == "#":
            heading = said
        else:
            found.append((start, end, said, heading))
    return _Reading(tuple(found), frozenset((*stems(quote), *stems(title))))


def _weights(words: Sequence[str], passages: Sequence[Passage]) -> dict[str, _Wanted]:
    """Rare words weigh more, and a word that stands in no passage weighs most: it is what the passages lack."""
    readings = [_read(passage) for passage in passages]
    known = frozenset().union(*(reading.words for reading in readings))
    found = {}
    for word in words:
        forms = frozenset([word]) if word in known else frozenset(form for form in known if near(word, form))
        holding = sum(not reading.words.isdisjoint(forms) for reading in readings)
        found[word] = _Wanted(forms, math.log(1 + len(passages) / (0.5 + holding)))
    return found


def _found(wanted: Iterable[_Wanted], said: frozenset[str]) -> float:
    return sum(word.weight for word in wanted if not said.isdisjoint(word.forms))


def _best_sentence(passage: Passage, wanted: Collection[_Wanted]) -> Sentence:
    """The sentence with most of the question's weight; its heading and its passage count for less."""
    reading = _read(passage)
    background = 0.25 * _found(wanted, reading.words)
    best = Sentence(passage, 0, len(passage.quote), 0.0)
    for start, end, said, heading in reading.sentences:
        score = _found(wanted, said) + 0.5 * _found(wanted, heading - said)
        if score > 0 and score + background > best.score:
            best = Sentence(passage, start, end, score + background)
    return best


def _differs(other: Sentence, best: Sentence) -> bool:
    return other.text not in best.passage.quote and best.text not in other.passage.quote


def _quote(best: Sentence) -> str:
    """The sentence with the next one of its paragraph, which may hold the exception; all that follows a sentence
    that asks.
    """
    text, end = best.passage.quote, best.end
    for start, stop in sentences(text):
        if start < end:
            continue
        gap = text[end:start]
        asks = text[best.start : end].rstrip("*_ ").endswith("?")
        new_part = "\n\n" in gap.replace(" ", "") or text[start] in "#|-*+"
        if stop - best.start > _QUOTE_LENGTH or text[start] == "#" or (new_part and not asks):
            break
        end = stop
        if not asks:
            break
    return text[best.start : end]
