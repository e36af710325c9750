"""What do the passages say to this question? Whole sentences, byte for byte, or the plain word that nobody here
knows. Pure.

A sentence counts by the rare words of the question it holds; a question whose rarest words stand nowhere is not
answered.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from kernel.llm.briefing import Passage
from kernel.llm.citations import cite
from kernel.llm.grounded.words import content, holds, near, sentences, stems
from kernel.llm.schemas import Citation

_SURE, _MAYBE = 0.7, 0.45
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
    """`coverage` is the weight of the question's words that were found, 0 to 1."""

    citations: tuple[Citation, ...]
    coverage: float

    @property
    def is_sure(self) -> bool:
        return self.coverage >= _SURE

    @property
    def is_worth_showing(self) -> bool:
        return self.coverage >= _MAYBE


NOTHING = Finding((), 0.0)


def find(question: str, passages: Sequence[Passage], *, context: str = "") -> Finding:
    """The best quotes for `question`; `context` is an earlier question that a short follow-up leans on."""
    asked, around = content(question), content(context)
    if not passages or not (asked or around):
        return NOTHING
    weights = _weights(asked or around, passages)
    leaning = weights | {
        word: _CONTEXT_WORTH * weight for word, weight in _weights(around, passages).items() if word not in weights
    }
    ranked = sorted((_best_sentence(passage, leaning) for passage in passages), key=lambda best: -best.score)
    best = ranked[0]
    if best.score == 0:
        return NOTHING
    others = [other for other in ranked[1:] if other.score >= _SECOND_AT_LEAST * best.score and _differs(other, best)]
    quotes = tuple(cite(chosen.passage, _quote(chosen)) for chosen in (best, *others[:1]))
    return Finding(quotes, _passage_weight(best.passage, weights) / sum(weights.values()))


def _weights(wanted: Sequence[str], passages: Sequence[Passage]) -> dict[str, float]:
    """Rare words weigh more, and a word that stands in no passage weighs most: it is what the passages lack."""
    counts: Counter[str] = Counter()
    said = [{*stems(passage.quote), *stems(passage.title)} for passage in passages]
    for word in wanted:
        counts[word] = sum(holds(word, vocabulary) for vocabulary in said)
    return {word: math.log(2 + len(passages) / (1 + counts[word])) for word in wanted}


def _passage_weight(passage: Passage, weights: dict[str, float]) -> float:
    said = {*stems(passage.quote), *stems(passage.title)}
    return sum(weight for word, weight in weights.items() if holds(word, said))


def _best_sentence(passage: Passage, weights: dict[str, float]) -> Sentence:
    """The sentence with most of the question's weight; its heading, its passage and its rank in the search break
    ties.
    """
    background = _passage_weight(passage, weights)
    heading: set[str] = set()
    best = Sentence(passage, 0, len(passage.quote), 0.0)
    for start, end in sentences(passage.quote):
        said = set(stems(passage.quote[start:end]))
        if passage.quote[start] == "#":
            heading = said
            continue
        score = sum(_worth(word, weight, said, heading) for word, weight in weights.items())
        if score > 0 and (total := score + 0.25 * background) > best.score:
            best = Sentence(passage, start, end, total)
    return best


def _worth(word: str, weight: float, said: set[str], heading: set[str]) -> float:
    if any(near(word, other) for other in said):
        return weight
    return 0.5 * weight if any(near(word, other) for other in heading) else 0.0


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
