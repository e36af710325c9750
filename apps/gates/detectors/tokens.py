"""Split a text into words with their context, as input for `name_scores`. Pure.

Words with the lists they are in; runs of capitals; lists of such runs; what of an address is in reach; which lines
hold figures. Each is one pass over the words. Called by `name_scores` and `names`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from apps.gates.detectors.cues import CUES
from apps.gates.detectors.lexicon import lists_of, plain

_WORD = re.compile(r"[^\W\d_]++(?:['\u2019-][^\W\d_]{1,40}+)*+|\d++")
OWNED = ("'s", "\u2019s")
_SHORT = ("n't", "'ll", "'re", "'ve", "'d", "'m")
# What may stand between two parts of one name.
JOINTS = frozenset({" ", "\u00a0", ". ", "  "})
# What may stand between two things of one list.
_COMMAS = frozenset({", ", "; ", " and ", ", and ", " or ", ", or ", " nor ", " & ", "/", " / "})
GIVEN, FAMILY, WORDS, PLACES = 0b111, 0b11000, 0b100000, 0b100000000
_STREET_WORDS, PARTICLES = CUES["streets"], CUES["particles"]
_STREETS = tuple(CUES["street_ends"])
# Small words that have a capital only where a sentence begins.
_OPENERS = frozenset().union(
    *(CUES[name] for name in ("at", "to", "by", "and", "am", "of", "the", "mine", "does", "his", "asks"))
)
_OPENERS |= CUES["no_names"]
# How many words an address reaches.
_REACH = 5
_SENTENCE_ENDS = frozenset('.!?\n"\u201c\u201d*')


class Token(NamedTuple):
    """A word as written, where it stands, and the lists that it is in. `begins`: a sentence or a line begins here, so
    that any word would have a capital."""

    text: str
    start: int
    end: int
    low: str
    lists: int
    kind: str
    begins: bool

    @property
    def is_capital(self) -> bool:
        return bool(self.kind)

    @property
    def is_street(self) -> bool:
        """`Rue`, `Street`, `Goethestrasse`; not the `Dijk` of `van Dijk`."""
        return _is_street(self.low, bool(self.kind))

    @property
    def may_be_name(self) -> bool:
        """Not `IBAN`, which many a text shouts, nor `Don't`, nor a word that is no name."""
        return (
            self.kind not in {"", "word"}
            and (len(self.text) == 1 or not self.text.isupper())
            and not self.low.endswith(_SHORT)
        )

    @property
    def opens(self) -> bool:
        """One of the small words, with a capital for the sentence's sake: `From Paris` is no run."""
        return self.begins and self.low in _OPENERS and len(self.text) > 1


@lru_cache(maxsize=8192)
def _is_street(low: str, is_capital: bool) -> bool:
    return low in _STREET_WORDS or (is_capital and low.endswith(_STREETS) and low not in _STREETS)


class Run(NamedTuple):
    """Numbers of words with capitals that nothing but blanks and small words of names stand between."""

    first: int
    last: int
    members: tuple[int, ...]


class TokenizedText(NamedTuple):
    """A text and its words. For each word what of an address leads to it and what it leads to (`behind`, `ahead`), and
    its line; for each line whether it holds figures. `chains` are lists of runs: `Anna, Bert and Carla`."""

    text: str
    words: Sequence[Token]
    behind: Sequence[str]
    ahead: Sequence[str]
    lines: Sequence[int]
    figured: Sequence[bool]
    chains: Sequence[Sequence[Run]]


def tokenize(text: str) -> TokenizedText:
    words = [_seen(text, match[0], *match.span()) for match in _WORD.finditer(text)]
    if not any(word.kind for word in words):
        return TokenizedText(text, words, (), (), (), (), ())
    parts = _parts_of_addresses(text, words)
    behind = _addresses(text, words, parts, 1, " \u00a0.,")
    ahead = _addresses(text, words, parts, -1, " \u00a0.")
    lines, figured = _lines(text, words, parts)
    return TokenizedText(text, words, behind, ahead, lines, figured, list(_chains(text, words)))


def are_joined(text: str, words: Sequence[Token], last: int, number: int) -> bool:
    """Do only blanks, and at most two small words of names, stand between the two?"""
    if number == last + 1:
        return text[words[last].end : words[number].start] in JOINTS
    between = words[last : min(number, last + 4) + 1]
    return (
        number - last <= 3
        and all(word.low in PARTICLES for word in between[1:-1])
        and all(text[left.end : right.start] in JOINTS for left, right in pairwise(between))
    )


def _chains(text: str, words: Sequence[Token]) -> Iterator[list[Run]]:
    chain: list[Run] = []
    for run in _runs(text, words):
        if chain and (
            words[chain[-1].last].opens or text[words[chain[-1].last].end : words[run.first].start] not in _COMMAS
        ):
            yield chain
            chain = []
        chain.append(run)
    if chain:
        yield chain


def _runs(text: str, words: Sequence[Token]) -> Iterator[Run]:
    members: list[int] = []
    for number, word in enumerate(words):
        if not word.kind:
            continue
        if members and (words[members[-1]].opens or not are_joined(text, words, members[-1], number)):
            yield Run(members[0], members[-1], tuple(members))
            members = []
        members.append(number)
    if members:
        yield Run(members[0], members[-1], tuple(members))


def _begins(text: str, start: int) -> bool:
    """Does a sentence or a line begin here, so that any word would have a capital?"""
    at = start - 1
    while at >= max(0, start - 4) and text[at] in " \t\u00a0('":
        at -= 1
    return at < 0 or text[at] in _SENTENCE_ENDS


def _lines(text: str, words: Sequence[Token], parts: Mapping[int, str]) -> tuple[list[int], list[bool]]:
    """The line of each word, empty ones left out, and whether figures stand in it."""
    if "\n" not in text:
        return [0] * len(words), [False]
    lines: list[int] = []
    line, line_ends = -1, 0
    for word in words:
        if 0 <= line_ends <= word.start:
            line, line_ends = line + 1, text.find("\n", word.start)
        lines.append(line)
    with_figures = {lines[number] for number, part in parts.items() if part == "figures"}
    return lines, [number in with_figures for number in range(line + 1)]


def _parts_of_addresses(text: str, words: Sequence[Token]) -> Mapping[int, str]:
    """The numbers of the words that are `figures`, or `street`."""
    found = {}
    for number, word in enumerate(words):
        if word.kind or word.low in _STREET_WORDS:
            if word.is_street:
                found[number] = "street"
        elif word.text[0].isdigit() and not _counts(text, word):
            found[number] = "figures"
    return found


def _addresses(text: str, words: Sequence[Token], parts: Mapping[int, str], step: int, stops: str) -> list[str]:
    """For each word what an address within reach of it holds: `figures`, `street` or nothing. From each part in one
    direction; a word in small letters, or other signs than blanks and those that stop nothing, end the reach."""
    found = [""] * len(words)
    size = len(words)
    for number, part in parts.items():
        last = words[number]
        at = number
        for _ in range(_REACH):
            at += step
            if not 0 <= at < size:
                break
            word = words[at]
            gap = text[last.end : word.start] if step > 0 else text[word.end : last.start]
            if gap != " " and gap.strip(stops):
                break
            found[at] = part
            if at in parts or not (word.kind or word.low in PARTICLES):
                break
            last = word
    return found


def _counts(text: str, word: Token) -> bool:
    """`1. Anna`, `2) Bert`: the number of a line, nothing of an address."""
    return len(word.text) < 3 and word.begins and text[word.end : word.end + 2] in {". ", ") "}


def _seen(text: str, word: str, start: int, end: int) -> Token:
    if word.islower() and word.isascii():
        return Token(word, start, end, word, 0, "", False)
    if word[0].isupper():
        return Token(word, start, end, *_known(word), _begins(text, start))
    if word[0].isdigit():
        return Token(word, start, end, word, 0, "", len(word) < 3 and _begins(text, start))
    return Token(word, start, end, plain(word), 0, "", False)


@lru_cache(maxsize=8192)
def _known(word: str) -> tuple[str, int, str]:
    low = plain(word[:-2] if word.endswith(OWNED) and len(word) > 3 else word)
    lists = lists_of(low.replace("'", "").replace("\u2019", ""))
    if not lists and "-" in low:
        for part in low.split("-", 4)[:4]:
            lists |= lists_of(part)
    return low, lists, _kind(lists)


def _kind(lists: int) -> str:
    """One word for the lists: the first that fits."""
    if lists & GIVEN:
        known = "common given" if lists & 1 else "given"
        return f"{known} word" if lists & WORDS else f"{known} place" if lists & PLACES else known
    if lists & FAMILY:
        return "family word" if lists & WORDS else "family place" if lists & PLACES else "family"
    return "word" if lists & WORDS else "place" if lists & PLACES else "stranger"
