"""Detect weighted phrases of a table in every reading of a text. Pure.

A table has classes of words (`= name: word word pre*`) and phrases (`0.6 kind: @class ~3 word|word @class !word`); `~3`
lets up to three words stand between, `!` asks that none of these words comes next. Each phrase is one pass over the
places of its words: no search ever turns back.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from apps.gates.detectors import languages
from apps.gates.detectors.findings import NOTHING, Detection, Span, any_of, without_overlap
from apps.gates.detectors.normalise import TABLES, Reading, Spellings, Vocabulary, Word, readings

# A phrase that was hidden on purpose is more suspicious for it.
_HIDDEN = 0.5
# No stem is shorter.
_HEAD = 3


class Step(NamedTuple):
    """One word of a phrase: the class it must be in, or must not, and how many words may stand before it."""

    key: str
    gap: int
    absent: bool = False


class Phrase(NamedTuple):
    """`needs` are the classes without which it is not said."""

    weight: float
    kind: str
    steps: tuple[Step, ...]
    needs: frozenset[str]


@dataclass(frozen=True)
class Table:
    """`keys` says for a word which classes it is in; `chains` which words behind it make them one of a class together
    (`from_now_on`); `stems` the same as `keys` for words that begin so, whose first letters are `heads`; `openings`
    which phrases begin with a word of a class."""

    phrases: tuple[Phrase, ...]
    openings: dict[str, tuple[int, ...]]
    keys: dict[str, tuple[str, ...]]
    chains: dict[str, tuple[tuple[tuple[str, ...], str], ...]]
    stems: dict[str, tuple[str, ...]]
    heads: frozenset[str]
    vocabulary: Vocabulary

    def classes(self, word: str) -> tuple[str, ...]:
        found = self.keys.get(word, ())
        if word[:_HEAD] in self.heads:
            for length in range(_HEAD, min(len(word), 12) + 1):
                found += self.stems.get(word[:length], ())
        return found


def detect_phrases(text: str, table: Table, spellings: Spellings | None = None) -> Detection:
    """Every phrase counts once, however often and in however many readings it is said. `spellings`: what is known of
    the texts of this run already."""
    weights: dict[int, float] = {}
    spans: list[Span] = []
    for reading in readings(text, table.vocabulary, spellings or Spellings()):
        for number, span in _said(reading, table):
            if number not in weights:
                weights[number] = table.phrases[number].weight
                spans.append(span)
                if reading.hidden:
                    weights[-1] = _HIDDEN
    return Detection(any_of(weights.values()), without_overlap(spans)) if weights else NOTHING


@cache
def read_table(*names: str) -> Table:
    """One table of all these, so that a text is gone through once. No two of them may use a name for two classes. Of a
    table of frames there are as many as languages have words for it (`tables/languages.txt`)."""
    return parse_table(line for name in names for line in _lines_of(name))


def _lines_of(name: str) -> list[str]:
    lines = (TABLES / f"{name}.txt").read_text("utf-8").splitlines()
    return languages.expand_frames(lines) if name.endswith("frames") else lines


def parse_table(lines: Iterable[str]) -> Table:
    """Raises ValueError for a line that is neither a class nor a phrase nor a remark."""
    named: dict[str, tuple[str, ...]] = {}
    phrases: list[Phrase] = []
    for line in lines:
        head, colon, body = line.partition(":")
        if not line.strip() or line.startswith("#"):
            continue
        if not colon:
            raise ValueError(f"not a line of a table: {line}")
        if head.startswith("="):
            name = head[1:].strip()
            named[name] = (*named.get(name, ()), *body.split())
        else:
            weight, kind = head.split()
            steps = _steps(body)
            needs = frozenset(step.key for step in steps if not step.absent)
            phrases.append(Phrase(float(weight), kind, steps, needs))
    return _table(named, phrases)


def _steps(body: str) -> tuple[Step, ...]:
    steps, gap = [], 0
    for part in body.split():
        if part.startswith("~"):
            gap = int(part[1:])
        else:
            steps.append(Step(part.removeprefix("!"), gap, absent=part.startswith("!")))
            gap = 0
    return tuple(steps)


def _table(named: dict[str, tuple[str, ...]], phrases: Sequence[Phrase]) -> Table:
    members = {step.key: _members(step.key, named) for phrase in phrases for step in phrase.steps}
    keys: dict[str, tuple[str, ...]] = {}
    chains: dict[str, tuple[tuple[tuple[str, ...], str], ...]] = {}
    stems: dict[str, tuple[str, ...]] = {}
    for key, words in members.items():
        for word in words:
            if "_" in word:
                first, *rest = word.split("_")
                chains[first] = (*chains.get(first, ()), (tuple(rest), key))
                continue
            place = stems if word.endswith("*") else keys
            place[word.rstrip("*")] = (*place.get(word.rstrip("*"), ()), key)
    openings: dict[str, tuple[int, ...]] = {}
    for number, phrase in enumerate(phrases):
        key = phrase.steps[0].key
        openings[key] = (*openings.get(key, ()), number)
    heads = frozenset(stem[:_HEAD] for stem in stems)
    parts = {part for first, ways in chains.items() for rest, _ in ways for part in (first, *rest)}
    vocabulary = Vocabulary([*keys, *parts.difference(keys), *(stem for stem in stems if len(stem) > 4)])
    return Table(tuple(phrases), openings, keys, chains, stems, heads, vocabulary)


def _members(key: str, named: dict[str, tuple[str, ...]]) -> frozenset[str]:
    parts = key.split("|")
    return frozenset(word for part in parts for word in (named[part[1:]] if part.startswith("@") else (part,)))


def _said(reading: Reading, table: Table) -> Iterable[tuple[int, Span]]:
    index = _index(reading, table)
    there = index.keys()
    for number in (number for key in index for number in table.openings.get(key, ())):
        phrase = table.phrases[number]
        found = _find(phrase.steps, index) if there >= phrase.needs else None
        if found:
            yield number, Span(*_extent(reading.words[found[0] : found[1] + 1]), phrase.kind)


def _extent(words: Sequence[Word]) -> tuple[int, int]:
    return min(word.start for word in words), max(word.end for word in words)


def _index(reading: Reading, table: Table) -> dict[str, list[int]]:
    """For each class, the numbers of the words that are in it, in order; of several words that are one, the last."""
    index: dict[str, list[int]] = {}
    for text, numbers in reading.numbers.items():
        for key in table.classes(text):
            index.setdefault(key, []).extend(numbers)
        for rest, key in table.chains.get(text, ()):
            if all(part in reading.numbers for part in rest):
                index.setdefault(key, []).extend(_chained(reading, (text, *rest)))
    index = {key: numbers for key, numbers in index.items() if numbers}
    return {key: sorted(numbers) for key, numbers in index.items()}


def _chained(reading: Reading, chain: tuple[str, ...]) -> list[int]:
    """Where these words stand behind each other: the number of the last. Looked for from the one that is rarest."""
    place = min(range(len(chain)), key=lambda at: len(reading.numbers[chain[at]]))
    starts = (number - place for number in reading.numbers[chain[place]])
    words, length = reading.words, len(chain)
    return [
        start + length - 1
        for start in starts
        if start >= 0 and tuple(word.text for word in words[start : start + length]) == chain
    ]


def _find(steps: Sequence[Step], index: dict[str, list[int]]) -> tuple[int, int] | None:
    starts = ends = index[steps[0].key]
    for step in steps[1:]:
        follow = _miss if step.absent else _follow
        starts, ends = follow(starts, ends, index.get(step.key, []), step.gap)
        if not ends:
            return None
    return starts[0], ends[0]


def _follow(starts: list[int], ends: list[int], places: list[int], gap: int) -> tuple[list[int], list[int]]:
    """Of `places`, those that a beginning leads to; the nearest beginning before each is the one that matters."""
    new_starts, new_ends, at = [], [], -1
    for place in places:
        while at + 1 < len(ends) and ends[at + 1] < place:
            at += 1
        if at >= 0 and place - ends[at] <= gap + 1:
            new_starts.append(starts[at])
            new_ends.append(place)
    return new_starts, new_ends


def _miss(starts: list[int], ends: list[int], places: list[int], gap: int) -> tuple[list[int], list[int]]:
    """Those that none of `places` comes next to."""
    near = {place - back for place in places for back in range(1, gap + 2)}
    kept = [(start, end) for start, end in zip(starts, ends, strict=True) if end not in near]
    return [start for start, _ in kept], [end for _, end in kept]
