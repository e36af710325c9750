"""Spell a text in every way in which words may hide in it: one shared reading for all detectors of phrases.

Folded (compatibility forms, accents, look-alikes, zero-width signs), with figures for letters, letter by letter, and
decoded. Every reading is at most as long as the text times a constant, and pieces are decoded at most twice.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from apps.gates.detectors import decoding

TABLES = Path(__file__).with_name("tables")
MAX_DEPTH = 2
# Characters that are read of a text and of all that is decoded from it: the longest text that a gate looks at and some
# pieces, or everything that the longest message of a visitor can mean. What does not fit is left out.
MOST_READ = 60_000
_WORD = re.compile(r"[^\W_]++(?:['\u2019][^\W_]++)*+")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]")
_LEET_WORD = re.compile(r"[\w@$!|+()]++")
_LEET = str.maketrans("01345789@$!|+(", "oieastbgasiitc")
# A figure or sign that may stand for a letter, or a letter drawn out.
_STRANGE = re.compile(r"[01345789@$!|+(]|([^\W\d_])\1\1")
_WITHIN = re.compile(r"['\u2019]")
_EDGES = "()!|+"
_LONGEST_WORD = 16
_MOST_FOLDS = 40_000
_APART = 3
_FAR_APART = 16
_MOSTLY = 0.8


class Word(NamedTuple):
    """A word as it is compared, and where it stands in the text as given."""

    text: str
    start: int
    end: int


class Reading(NamedTuple):
    """One way to read the text: its words, and for each of them its numbers among them. `hidden` says that it was
    disguised on purpose."""

    words: list[Word]
    numbers: Mapping[str, Sequence[int]]
    hidden: bool


class Spelling(NamedTuple):
    """A text, or one decoded from it, as it stands before anybody asks for words. `unspaced` are the words of scripts
    that put nothing between words; `strange` the tokens with figures or signs that may stand for letters, found in
    `folded` by `places`; `long` the words that several may be run together in; `apart`: letters stand by themselves,
    one behind the other."""

    plain: Reading
    unspaced: frozenset[str]
    folded: str
    places: Sequence[int]
    place: tuple[int, int] | None
    strange: frozenset[str]
    long: list[str]
    apart: bool


class Spellings:
    """The texts of one run of gates, each folded and decoded once for all detectors that read it."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Spelling, ...]] = {}

    def of(self, text: str) -> tuple[Spelling, ...]:
        if text not in self._known:
            self._known[text] = tuple(_spellings(text))
        return self._known[text]


def readings(text: str, vocabulary: Vocabulary, spellings: Spellings) -> Iterator[Reading]:
    """The plain reading first, then those that the text gives a reason for."""
    for spelling in spellings.of(text):
        plain, long, apart = spelling.plain, spelling.long, spelling.apart
        if spelling.unspaced:
            plain = _segmented(plain, spelling.unspaced, vocabulary)
        yield plain
        figures = _figures(spelling, vocabulary)
        parted = {word: parts for word in long if (parts := _parts(word, vocabulary))}
        if not figures and not apart and not parted:
            continue
        meant = _rejoined(_with_figures(plain.words, figures), vocabulary, parted)
        if meant != plain.words:
            yield Reading(meant, _numbered(meant), True)


def _segmented(plain: Reading, unspaced: frozenset[str], vocabulary: Vocabulary) -> Reading:
    """Chinese and Japanese as the words that are known and, for each two signs between them, one that is not."""
    known = {word: list(_segments(word, vocabulary)) for word in unspaced}
    words: list[Word] = []
    for word in plain.words:
        if word.text not in known:
            words.append(word)
            continue
        exact = word.end - word.start == len(word.text)
        for text, start, end in known[word.text]:
            place = (word.start + start, word.start + end) if exact else (word.start, word.end)
            words.append(Word(text, *place))
    return Reading(words, _numbered(words), plain.hidden)


def _segments(word: str, vocabulary: Vocabulary) -> Iterator[tuple[str, int, int]]:
    """No phrase reaches over more unknown words than `_FAR_APART`, so that no more of them are made."""
    last = 0
    for text, start, end in (*vocabulary.split(word), ("", len(word), len(word))):
        if len(text) == 1 and text.isascii():
            continue
        if start > last:
            reached = min(start, last + 2 * _FAR_APART)
            yield from (("", at, min(at + 2, start)) for at in range(last, reached, 2))
        if text:
            yield text, start, end
        last = end


class Vocabulary:
    """The words that some table knows: only towards them is a strange spelling resolved."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words = frozenset(words)
        self._alone = frozenset(word for word in words if len(word) == 1)
        self._by_head: dict[str, list[str]] = {}
        for word in sorted({word for word in words if len(word) > 1}, key=len, reverse=True):
            self._by_head.setdefault(word[:2], []).append(word)
        self._patterns: dict[str, re.Pattern[str]] = {}
        self._skeletons = {_skeleton(word): word for word in sorted(words, key=len, reverse=True) if len(word) > 2}

    def resolve(self, word: str) -> str | None:
        return word if word in self.words else self._skeletons.get(_skeleton(word))

    def split(self, letters: str) -> Iterator[tuple[str, int, int]]:
        """The known words in letters that were run together, longest first; unknown letters are stepped over."""
        by_head, alone, patterns = self._by_head, self._alone, self._patterns
        at, length = 0, len(letters)
        while at < length:
            head = letters[at : at + 2]
            if head in by_head:
                match = (patterns.get(head) or self._pattern(head)).match(letters, at)
                if match:
                    yield match[0], at, match.end()
                    at = match.end()
                    continue
            if head[0] in alone:
                yield head[0], at, at + 1
            at += 1

    def _pattern(self, head: str) -> re.Pattern[str]:
        """The words that begin with these two letters as one pattern, made when a text first has them."""
        made = self._patterns[head] = re.compile("|".join(map(re.escape, self._by_head[head])))
        return made


def fold(text: str) -> tuple[str, Sequence[int]]:
    """Lower-case letters without disguise, and for each the place in `text` it came from."""
    if text.isascii():
        return text.lower(), range(len(text))
    pieces = [_FOLDED[char] for char in text]
    folded = "".join(pieces)
    if set(map(len, pieces)) == {1}:
        return folded, range(len(folded))
    return folded, [place for place, piece in enumerate(pieces) for _ in piece]


def _spellings(text: str) -> Iterator[Spelling]:
    """The text, then what is decoded from it, then what is decoded from that. A text that is encoded twice says nothing
    new; `MOST_READ` bounds the time, however many ways to read it a text offers."""
    folded, places = fold(text)
    yield _spelling(folded, places, None, hidden=False)
    seen, left = {text, folded}, MOST_READ - len(text)
    layer: list[tuple[str, str, tuple[int, int] | None]] = [(text, folded, None)]
    for _ in range(MAX_DEPTH):
        following: list[tuple[str, str, tuple[int, int] | None]] = []
        for outer, outer_folded, place in layer:
            for piece in decoding.pieces(outer, outer_folded):
                # Each text once, and all of them within one bound: nested encodings could otherwise multiply without
                # end.
                if piece.text in seen or len(piece.text) > left:
                    continue
                seen.add(piece.text)
                left -= len(piece.text)
                folded, places = fold(piece.text)
                where = place or (piece.start, piece.end)
                yield _spelling(folded, places, where, hidden=True)
                following.append((piece.text, folded, where))
        layer = following


def _spelling(folded: str, places: Sequence[int], place: tuple[int, int] | None, *, hidden: bool) -> Spelling:
    words = _words(folded, places, place)
    numbers = _numbered(words)
    alone = sorted(number for word, places in numbers.items() if len(word) == 1 for number in places)
    apart = any(last - first == _APART for first, last in zip(alone, alone[_APART:], strict=False))
    unspaced = frozenset(word for word in numbers if _UNSPACED.search(word))
    long = [word for word in numbers if len(word) > _LONGEST_WORD - 4 and word not in unspaced]
    return Spelling(Reading(words, numbers, hidden), unspaced, folded, places, place, _strange(folded), long, apart)


def _numbered(words: Sequence[Word]) -> Mapping[str, Sequence[int]]:
    numbers: dict[str, list[int]] = {}
    for number, (text, _, _) in enumerate(words):
        if text in numbers:
            numbers[text].append(number)
        else:
            numbers[text] = [number]
    return numbers


def _words(folded: str, places: Sequence[int], place: tuple[int, int] | None) -> list[Word]:
    """The places of plain letters are their numbers, which spares looking them up."""
    found = _WORD.finditer(folded)
    if place:
        return [Word(_bare(match[0]), *place) for match in found]
    if isinstance(places, range):
        new = tuple.__new__
        return [
            new(Word, (word if (word := match[0]).isalnum() else _WITHIN.sub("", word), *match.span()))
            for match in found
        ]
    return [Word(_bare(match[0]), places[match.start()], places[match.end() - 1] + 1) for match in found]


def _bare(word: str) -> str:
    return word if word.isalnum() else _WITHIN.sub("", word)


def _strange(folded: str) -> frozenset[str]:
    """Each token is looked at once, however often it stands there."""
    tokens = set(_LEET_WORD.findall(folded))
    return frozenset(token for token in tokens if not token.isdigit() and _STRANGE.search(token))


def _figures(spelling: Spelling, vocabulary: Vocabulary) -> list[Word]:
    """Words with figures or signs for letters (`1gn0re`, `@ll`), or with a letter drawn out, that mean a known word."""
    found = ((token, _resolved(token[: 2 * _LONGEST_WORD], vocabulary)) for token in spelling.strange)
    known = {token: word for token, word in found if word}
    if not known:
        return []
    places = spelling.places
    return [
        Word(known[match[0]], *(spelling.place or (places[match.start()], places[match.end() - 1] + 1)))
        for match in _LEET_WORD.finditer(spelling.folded)
        if match[0] in known
    ]


def _resolved(token: str, vocabulary: Vocabulary) -> str | None:
    for form in (token, token.strip(_EDGES)):
        word = vocabulary.resolve(form.translate(_LEET).replace("_", ""))
        if word and word != form:
            return word
    return None


def _skeleton(word: str) -> str:
    """What stays of a word when `l` and `i` are one letter and no letter is doubled."""
    kept: list[str] = []
    for letter in word.replace("l", "i"):
        if not kept or kept[-1] != letter:
            kept.append(letter)
    return "".join(kept)


def _with_figures(words: list[Word], strange: list[Word]) -> list[Word]:
    """`strange` in the place of the words, or parts of words, that they are read from."""
    if not strange:
        return words
    kept, at = [], 0
    for word in words:
        while at < len(strange) and strange[at].end <= word.start:
            at += 1
        if at == len(strange) or word.end <= strange[at].start:
            kept.append(word)
    return sorted([*kept, *strange], key=lambda word: word.start)


def _rejoined(words: list[Word], vocabulary: Vocabulary, parted: Mapping[str, Sequence[str]]) -> list[Word]:
    """`i g n o r e` and `ignoreallprevious`: letters put together, or taken apart, into words that are known."""
    found: list[Word] = []
    run: list[Word] = []
    ends = 0
    for word in words:
        text, start, end = word
        if len(text) == 1:
            if run and start - ends > _APART:
                found += _spelled(run, vocabulary)
                run = []
            run.append(word)
            ends = end
            continue
        if run:
            found += _spelled(run, vocabulary)
            run = []
        if text in parted:
            found += [Word(part, start, end) for part in parted[text]]
        else:
            found.append(word)
    return found + _spelled(run, vocabulary)


def _parts(word: str, vocabulary: Vocabulary) -> list[str]:
    """The known words that a long one was run together from, when they make up nearly all of it."""
    if word in vocabulary.words:
        return []
    parts = [text for text, _, _ in vocabulary.split(word)]
    known = sum(len(text) for text in parts if len(text) > 2)
    return parts if known > _MOSTLY * len(word) else []


def _spelled(run: list[Word], vocabulary: Vocabulary) -> list[Word]:
    letters = "".join(word.text for word in run)
    if len(run) <= _APART or letters.isdigit():
        return run
    known, new = vocabulary.split(letters.translate(_LEET)), tuple.__new__
    starts, ends = [word.start for word in run], [word.end for word in run]
    return [new(Word, (text, starts[start], ends[end - 1])) for text, start, end in known]


class _Folds(dict[str, str]):
    """What each character is folded to, remembered for as many as a few languages have."""

    def __missing__(self, char: str) -> str:
        folded = _fold_char(char)
        if len(self) < _MOST_FOLDS:
            self[char] = folded
        return folded


_FOLDED = _Folds()


def _fold_char(char: str) -> str:
    """Letters without accents, look-alikes as what they look like, and nothing for what cannot be seen."""
    if "\U000e0020" <= char <= "\U000e007e":
        return chr(ord(char) - 0xE0000).lower()
    known = _lookalikes()
    kept = []
    for part in unicodedata.normalize("NFKD", char):
        if unicodedata.category(part) not in {"Mn", "Me", "Cf", "Cs"}:
            low = part.lower()
            kept.append(known.get(part) or known.get(low) or low)
    return "".join(kept)


@cache
def _lookalikes() -> dict[str, str]:
    lines = (TABLES / "homoglyphs.txt").read_text("utf-8").splitlines()
    pairs = (line.split() for line in lines if not line.startswith("#"))
    return {lookalike: letter for letter, lookalikes in pairs for lookalike in lookalikes}
