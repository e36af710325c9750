"""Find whole sentences, byte for byte, that answer a question from the passages, or find that there are none.

A question in another language than English is also looked up by its English words (`llm.glossary`).

A sentence scores by the rare words of the question that it contains; a question whose rarest words are in no passage is
not answered. Pure; the passages come best first.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import PurePath
from typing import TYPE_CHECKING

from llm.attachments import Attachment
from llm.briefing import Passage
from llm.citations import cite
from llm.embedding import embed_rows
from llm.glossary import in_english
from llm.language_detection import ENGLISH, detect_language
from llm.offline.intents import Quantity, quantities
from llm.offline.reading import Reading, Sentence, Words, quote_from, read
from llm.offline.related import related
from llm.offline.vocabulary import SOFT
from llm.offline.words import content, near, stem, stems, words
from llm.schemas import Citation

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_SOFT = frozenset(map(stem, SOFT))
_SURE, _MAYBE = 0.7, 0.45
_FILE_CHARACTERS, _FILE_HEAD = 8_000, 2
_NEAR = 0.34  # cosine similarity; what has nothing to do with the documents stays below 0.3
_SHARED_AT_LEAST = 3
_SAME = 0.8  # a word as like another as this is another form of it
_NOWHERE = 0.08
_SECOND_AT_LEAST = 0.9
_CONTEXT_WORTH = 0.3
_PHRASES = (
    (re.compile(r"\b(?:sen[dt](?:ing)?|bring(?:ing)?|giv(?:e|ing)|brought)\b(?: \w+){0,2}? back\b", re.I), "return"),
    (re.compile(r"\bmoney back\b", re.I), "refund"),
    (
        re.compile(r"\bpay(?:ing)? (?:it )?(?:off )?(?:monthly|in parts)\b|\bsplit the (?:price|cost|bill)\b", re.I),
        "pay instalments",
    ),
)
_ABOVE, _AGAIN, _AROUND, _LIKENESS, _PAIR, _QUANTITY, _RANK = 0.4, 0.25, 0.25, 0.8, 0.1, 0.3, 0.1


@dataclass(frozen=True)
class Finding:
    """Quotes that answer a question.

    `coverage`: the weight of the question's words that were found, 0 to 1; `shared`: how many are in the quoted
    sentence; `titled`: one of them is in its title or heading; `similarity`: how alike in meaning the search found the
    passage. `word_by_word`: by the English words of a question in another language, and `guessed`: by a word that means
    nearly the same as one of the question's; both make it unsure.
    """

    citations: tuple[Citation, ...]
    coverage: float
    shared: int = 0
    titled: bool = False
    similarity: float = 0.0
    word_by_word: bool = False
    guessed: bool = False

    @property
    def is_sure(self) -> bool:
        if self.word_by_word or self.guessed:
            return False
        return self.coverage >= _SURE and (self.shared >= 2 or (self.titled and len(self.citations) == 1))

    @property
    def is_near(self) -> bool:
        return self.similarity >= _NEAR

    @property
    def is_worth_showing(self) -> bool:
        enough = self.coverage + self.similarity / 2 >= _MAYBE
        return enough or self.is_near or self.shared >= _SHARED_AT_LEAST


NOTHING = Finding((), 0.0)


@dataclass(frozen=True)
class _QuestionWord:
    """A word of the question: the forms in which the passages contain it, its weight, and how much of that a match is
    worth, 0 to 1: all of it for the word itself, less for one that means nearly the same.
    """

    forms: Words
    weight: float
    likeness: float = 1.0


@dataclass(frozen=True)
class _Question:
    words: Collection[_QuestionWord]
    pairs: frozenset[tuple[str, str]]
    asks: frozenset[Quantity]
    vector: npt.NDArray[np.float32]

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
    found = _find(question, passages, context)
    language = detect_language((question, context))
    if language == ENGLISH:
        return found
    known = _known_words(passages)
    words = in_english(question, language, lambda phrase: known.issuperset(stems(phrase)))
    by_words = replace(_find(words, passages, ""), word_by_word=True)
    return max(found, by_words, key=lambda each: (each.is_sure, each.is_worth_showing, each.coverage))


def find_in_files(question: str, files: Sequence[Attachment]) -> Finding:
    """The lines of a visitor's files that surely answer, the newest file first; `NOTHING` where none does. A line
    stands below the file's name and first lines, as a passage does below its title."""
    for file in reversed(files):
        found = find(question, tuple(_lines(file)))
        if found.is_sure:
            named = tuple(cited.model_copy(update={"title": file.name}) for cited in found.citations)
            return replace(found, citations=named)
    return NOTHING


def _lines(file: Attachment) -> Iterator[Passage]:
    lines = file.text[:_FILE_CHARACTERS].splitlines(keepends=True)
    first = [line.strip() for line in lines if line.strip()][:_FILE_HEAD]
    title, at = " ".join((PurePath(file.name).stem, *first))[:200], 0
    for line in lines:
        size = len(line.encode())
        if line.strip():
            yield Passage(file.file_id, "", title, "", at, at + size, line, is_file=True)
        at += size


def _find(question: str, passages: Sequence[Passage], context: str) -> Finding:
    question = _plainly(question)
    own, around = content(question), content(context)
    telling = [word for word in own if word not in _SOFT and not word.isdecimal()] or own or around
    if not passages or not telling:
        return NOTHING
    said = {stem(word): word for word in (*words(context), *words(question))}
    weighed = _weigh(telling, said, passages)
    leaning = _weigh([word for word in (*own, *around) if word not in weighed], said, passages)
    asked = [*weighed.values(), *(replace(word, weight=_CONTEXT_WORTH * word.weight) for word in leaning.values())]
    asked_for = _Question(asked, _pairs(question), quantities(question), embed_rows([f"{question} {context}"])[0])
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
        similarity=best.passage.score,
        guessed=any(word.likeness < _SAME and not reading.words.isdisjoint(word.forms) for word in question_words),
    )


def _plainly(question: str) -> str:
    """The question with one word for what is often said in several: "send it back" is a return."""
    for said, word in _PHRASES:
        question = said.sub(word, question)
    return question


def _known_words(passages: Sequence[Passage]) -> Words:
    return frozenset().union(*(read(passage).words for passage in passages))


def _weigh(stemmed: Sequence[str], said: Mapping[str, str], passages: Sequence[Passage]) -> dict[str, _QuestionWord]:
    """Rare words weigh more, and a word that is in no passage weighs most: it is what the passages lack."""
    readings, known = [read(passage) for passage in passages], _known_words(passages)
    written = frozenset[str]().union(*(reading.said for reading in readings))
    weighed = {}
    for word in stemmed:
        forms = frozenset([word]) if word in known else frozenset(form for form in known if near(word, form))
        likeness = 1.0
        if not forms and (alike := related(said.get(word, word), written)):
            forms, likeness = frozenset(alike), max(alike.values())
        holding = sum(not reading.words.isdisjoint(forms) for reading in readings)
        weighed[word] = _QuestionWord(forms, math.log(1 + 1 / (_NOWHERE + holding / len(passages))), likeness)
    return weighed


def _matched_weight(question: Iterable[_QuestionWord], words: Words) -> float:
    return sum(word.weight * word.likeness for word in question if not words.isdisjoint(word.forms))


def _best(rank: int, passage: Passage, question: _Question) -> _Best | None:
    reading = read(passage)
    likeness = (reading.vectors @ question.vector).tolist()
    scores = [
        (score + _LIKENESS * question.total * alike, sentence)
        for sentence, alike in zip(reading.sentences, likeness, strict=True)
        if (score := _score(sentence, reading, question)) > 0
    ]
    if not scores:
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
