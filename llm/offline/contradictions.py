"""Find sentences in a company's documents that give different figures for the same thing. Pure.

Deliberately narrow: what a sentence promises in figures (30 days, £12.50, 20 %) is compared with sentences about the
same thing; whether prose contradicts prose is for people and models.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from llm.offline.words import content, sentences, stem

_LONGEST = 400
_FIGURE = re.compile(
    r"(?P<money>[£€$])\s?(?P<sum>\d[\d,]*(?:\.\d+)?)"
    r"|(?<!\d)(?<!\d,)(?P<number>\d[\d,]*+(?:\.\d++)?+)\s?(?P<unit>%|per cent|[a-zA-Z]{3,})"
)
_NO_UNIT = frozenset({"and", "the", "for", "from", "per", "but", "with", "are", "was", "january", "february", "march"})
# The share of the shorter sentence's words, and their number, that both need in common to be about the same thing.
_SHARED, _SHARED_WORDS = 0.6, 3


@dataclass(frozen=True)
class Figure:
    """An amount with its unit. `unit` is normalized, so that days equals day."""

    amount: Decimal
    unit: str
    text: str


@dataclass(frozen=True)
class Contradiction:
    ours: Figure
    theirs: Figure
    start: int
    end: int
    sentence: str


def statements_with_figures(text: str, *, but: str = "") -> list[str]:
    """The sentences that contain figures, in order and each once, without those that `but` contains already."""
    known = {_plain(but[start:end]) for start, end in sentences(but)} if but else set()
    found = (_plain(text[start:end]) for start, end in sentences(text))
    new = (sentence for sentence in found if sentence and sentence not in known and not sentence.startswith("#"))
    return list(dict.fromkeys(sentence[:_LONGEST] for sentence in new if figures(sentence)))


def figures(text: str) -> tuple[Figure, ...]:
    return tuple(figure for match in _FIGURE.finditer(text) if (figure := _figure(match)))


def find_contradiction(statement: str, passage: str) -> Contradiction | None:
    """The first sentence of the passage about the same thing with another figure of the same unit, or None.

    A sentence that shares one of the statement's figures of that unit does not contradict it.
    """
    ours = figures(statement)
    for start, end in sentences(passage):
        theirs = figures(passage[start:end])
        if theirs and _is_same_topic(statement, passage[start:end]):
            pair = _differing_figures(ours, theirs)
            if pair is not None:
                return Contradiction(*pair, start, end, _plain(passage[start:end]))
    return None


def _differing_figures(ours: Sequence[Figure], theirs: Sequence[Figure]) -> tuple[Figure, Figure] | None:
    # A shared amount of a unit means agreement, also where the sentences hold other figures.
    for unit in dict.fromkeys(figure.unit for figure in ours):
        mine = {figure.amount: figure for figure in ours if figure.unit == unit}
        other = {figure.amount: figure for figure in theirs if figure.unit == unit}
        if other and not mine.keys() & other.keys():
            return next(iter(mine.values())), next(iter(other.values()))
    return None


def _is_same_topic(one: str, other: str) -> bool:
    first, second = _topic_words(one), _topic_words(other)
    shared = len(first & second)
    return shared >= _SHARED_WORDS and shared >= _SHARED * min(len(first), len(second))


def _topic_words(text: str) -> set[str]:
    """The content words that say what a text is about, without figures and their units."""
    units = {figure.unit for figure in figures(text)}
    return {word for word in content(text) if not any(character.isdigit() for character in word)} - units


def _figure(match: re.Match[str]) -> Figure | None:
    unit = match["money"] or (match["unit"] or "").lower()
    if unit in _NO_UNIT:
        return None
    try:
        amount = Decimal((match["sum"] or match["number"]).replace(",", ""))
    except InvalidOperation:
        return None
    form = unit if match["money"] else "%" if unit in ("%", "per cent") else stem(unit)
    return Figure(amount, form, match[0].strip())


def _plain(text: str) -> str:
    return " ".join(text.strip().lstrip("-*+|> ").split())
