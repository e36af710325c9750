"""Find whole sentences, byte for byte, that answer a question from the passages, or find that there are none.

A sentence scores by the rare words of the question that it contains; a question whose rarest words are in no passage is
not answered. Pure; the passages come best first.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from llm.briefing import Passage
from llm.citations import cite
from llm.offline.intents import Quantity, quantities
from llm.offline.reading import Reading, Sentence, Words, quote_from, read
from llm.offline.vocabulary import SOFT
from llm.offline.words import content, near, stems
from llm.schemas import Citation

_SURE, _MAYBE = 0.7, 0.4
_SHARED_AT_LEAST = 3
_NOWHERE = 0.08
_NEAR = 0.34  # cosine similarity; what has nothing to do with the documents stays below 0.3
_SECOND_AT_LEAST = 0.9
_CONTEXT_WORTH = 0.3
_ABOVE, _AGAIN, _AROUND, _PAIR, _QUANTITY, _RANK = 0.4, 0.25, 0.25, 0.1, 0.3, 0.1


@dataclass(frozen=True)
class Finding:
    """Quotes that answer a question.

    `coverage`: the weight of the question's words that were found, 0 to 1; `shared`: how many are in the quoted
    sentence; `titled`: one of them is in its title or heading; `near`: the search found the passage alike in meaning.
    """

    citations: tuple[Citation, ...]
    coverage: float
    shared: int = 0
    titled: bool = False
    near: bool = False

    @property
    def is_sure(self) -> bool:
        return self.coverage >= _SURE and (self.shared >= 2 or self.titled)

    @property
    def is_worth_showing(self) -> bool:
        return self.coverage >= _MAYBE or self.shared >= _SHARED_AT_LEAST or self.near


NOTHING = Finding((), 0.0)


@dataclass(frozen=True)
class _QuestionWord:
    """A word of the question: the forms in which the passages contain it, and its weight."""

    forms: Words
    weight: float


@dataclass(frozen=True)
class _Question:
    words: Collection[_QuestionWord]
    pairs: frozenset[tuple[str, str]]
    asks: frozenset[Quantity]

    @property
    def total(self) -> float:
        return sum(word.weight for word in self.words)


@dataclass(frozen=True)
class _Best:
    passage: Passage
    sentence: Sentence
    score: float


def find(question: str, passages: Sequence[Passage], *, context: str = "") -> Finding:
    """The best quotes for `question`; `context` is an earlier question that a short follow-up leans on."""
    own, around = content(question), content(context)
    telling = [word for word in own if word not in SOFT] or own or around
    if not passages or not telling:
        return NOTHING
    weighed = _weigh(telling, passages)
    leaning = _weigh([word for word in (*own, *around) if word not in weighed], passages)
    words = [*weighed.values(), *(_QuestionWord(word.forms, _CONTEXT_WORTH * word.weight) for word in leaning.values())]
    asked_for = _Question(words, _pairs(question), quantities(question))
    bests = [_best(rank, passage, asked_for) for rank, passage in enumerate(passages)]
    ranked = sorted(filter(None, bests), key=lambda best: -best.score)
    return _finding(ranked, weighed.values()) if ranked else NOTHING


def _finding(ranked: Sequence[_Best], question_words: Collection[_QuestionWord]) -> Finding:
    best = ranked[0]
    others = [other for other in ranked[1:] if other.score >= _SECOND_AT_LEAST * best.score and _differs(other, best)]
    reading, sentence = read(best.passage), best.sentence
    return Finding(
        tuple(cite(chosen.passage, _quote(chosen)) for chosen in (best, *others[:1])),
        coverage=_matched_weight(question_words, reading.words) / sum(word.weight for word in question_words),
        shared=sum(not sentence.words.isdisjoint(word.forms) for word in question_words),
        titled=_matched_weight(question_words, reading.title | sentence.heading) > 0,
        near=best.passage.score >= _NEAR,
    )


def _weigh(words: Sequence[str], passages: Sequence[Passage]) -> dict[str, _QuestionWord]:
    """Rare words weigh more, and a word that is in no passage weighs most: it is what the passages lack."""
    readings = [read(passage) for passage in passages]
    known: Words = frozenset().union(*(reading.words for reading in readings))
    weighed = {}
    for word in words:
        forms = frozenset([word]) if word in known else frozenset(form for form in known if near(word, form))
        holding = sum(not reading.words.isdisjoint(forms) for reading in readings)
        weighed[word] = _QuestionWord(forms, math.log(1 + 1 / (_NOWHERE + holding / len(passages))))
    return weighed


def _matched_weight(question: Iterable[_QuestionWord], words: Words) -> float:
    return sum(word.weight for word in question if not words.isdisjoint(word.forms))


def _best(rank: int, passage: Passage, question: _Question) -> _Best | None:
    reading = read(passage)
    scores = [(_score(sentence, reading, question), sentence) for sentence in reading.sentences]
    if not any(score > 0 for score, _ in scores):
        return None
    score, sentence = max(scores, key=lambda scored: scored[0])
    around = _AROUND * _matched_weight(question.words, reading.words) + _RANK * question.total / (1 + rank)
    return _Best(passage, sentence, score + around)


def _score(sentence: Sentence, reading: Reading, question: _Question) -> float:
    """The words it says count most; those of its heading and of the document's title less. Nothing counts by itself."""
    above = reading.title | sentence.heading
    score = (
        _matched_weight(question.words, sentence.words)
        + _AGAIN * _matched_weight(question.words, sentence.words & above)
        + _ABOVE * _matched_weight(question.words, above - sentence.words)
    )
    if score == 0:
        return 0.0
    fits = _PAIR * len(question.pairs & sentence.pairs) + _QUANTITY * bool(question.asks & sentence.tells)
    return score + question.total * fits


def _pairs(question: str) -> frozenset[tuple[str, str]]:
    """Neighbouring words of which at least one carries meaning."""
    meaning = set(content(question))
    return frozenset(pair for pair in pairwise(stems(question)) if not meaning.isdisjoint(pair))


def _quote(best: _Best) -> str:
    return quote_from(best.passage.quote, best.sentence.start, best.sentence.end)


def _differs(other: _Best, best: _Best) -> bool:
    return _quote(other) not in best.passage.quote and _quote(best) not in other.passage.quote
