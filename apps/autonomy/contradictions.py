"""Do two sentences of a company's documents contradict each other? Figures about the same thing that differ. Pure.

Deliberately narrow: what a sentence promises in figures (30 days, £12.50, 20 %) is compared with sentences that speak
of the same; whether prose contradicts prose is for people and models.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from kernel.llm.grounded.words import content, sentences, stem

_LONGEST = 400
_FIGURE = re.compile(
    r"(?P<money>[£€$])\s?(?P<sum>\d[\d,]*(?:\.\d+)?)"
    r"|(?<!\d)(?<!\d,)(?P<number>\d[\d,]*+(?:\.\d++)?+)\s?(?P<unit>%|per cent|[a-zA-Z]{3,})"
)
_NO_UNIT = frozenset({"and", "the", "for", "from", "per", "but", "with", "are", "was", "january", "february", "march"})
# How much of the rarer sentence's words the other has to share before both are about the same.
_SHARED, _SHARED_WORDS = 0.6, 3


@dataclass(frozen=True)
class Figure:
    """`unit` is a common form: days and day meet."""

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
    """The sentences that hold figures, in order, each once; not those that stand in `but` already."""
    known = {_plain(but[start:end]) for start, end in sentences(but)} if but else set()
    found = (_plain(text[start:end]) for start, end in sentences(text))
    fresh = (each for each in found if each and each not in known and not each.startswith("#"))
    return list(dict.fromkeys(each[:_LONGEST] for each in fresh if figures(each)))


def figures(text: str) -> tuple[Figure, ...]:
    return tuple(figure for match in _FIGURE.finditer(text) if (figure := _figure(match)))


def find_contradiction(statement: str, passage: str) -> Contradiction | None:
    """The first sentence of the passage that speaks of the same with another figure of the same unit, and shares none
    of the statement's figures of that unit; None when there is none."""
    ours = figures(statement)
    for start, end in sentences(passage):
        theirs = figures(passage[start:end])
        if theirs and _same_thing(statement, passage[start:end]):
            pair = _differs(ours, theirs)
            if pair is not None:
                return Contradiction(*pair, start, end, _plain(passage[start:end]))
    return None


def _differs(ours: Sequence[Figure], theirs: Sequence[Figure]) -> tuple[Figure, Figure] | None:
    for unit in dict.fromkeys(figure.unit for figure in ours):
        mine = {figure.amount: figure for figure in ours if figure.unit == unit}
        other = {figure.amount: figure for figure in theirs if figure.unit == unit}
        if other and not mine.keys() & other.keys():
            return next(iter(mine.values())), next(iter(other.values()))
    return None


def _same_thing(one: str, other: str) -> bool:
    first, second = _told(one), _told(other)
    shared = len(first & second)
    return shared >= _SHARED_WORDS and shared >= _SHARED * min(len(first), len(second))


def _told(text: str) -> set[str]:
    """The words that say what it is about: figures and their units say how much."""
    units = {figure.unit for figure in figures(text)}
    return {word for word in content(text) if not any(letter.isdigit() for letter in word)} - units


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
