"""How may this text be meant? The spellings behind which words hide: one shared reading for all detectors of phrases.

Folded (compatibility forms, accents, look-alikes, zero-width signs), with figures for letters, letter by letter, and
decoded. Every reading is at most as long as the text times a constant, and pieces are decoded at most twice.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

from apps.gates.detectors import decoding

TABLES = Path(__file__).with_name("tables")
MAX_DEPTH = 2
_WORD = re.compile(r"[^\W_]++(?:['\u2019][^\W_]++)*+")
_LEET_WORD = re.compile(r"[\w@$!|+()]++")
_LEET = str.maketrans("01345789@$!|+(", "oieastbgasiitc")
# A figure or sign that may stand for a letter, or a letter drawn out.
_STRANGE = re.compile(r"[01345789@$!|+(]|([^\W\d_])\1\1")
_RUN = re.compile(r"[\x00-\x7f]++|[^\x00-\x7f]")
_WITHIN = re.compile(r"['\u2019]")
_EDGES = "()!|+"
_LONGEST_WORD = 16
_ONE = (1,)
_APART = 3
_MOSTLY = 0.8


class Word(NamedTuple):
    """A word as it is compared, and where it stands in the text as given."""

    text: str
    start: int
    end: int


class Reading(NamedTuple):
    """One way to read the text: its words, and for each of them its numbers among them. `hidden` says that somebody
    took pains to have it read so."""

    words: list[Word]
    numbers: Mapping[str, Sequence[int]]
    hidden: bool


class Spelling(NamedTuple):
    """A text, or one decoded from it, as it stands before anybody asks for words. `strange` are the pieces with
    figures or signs that may stand for letters, `long` the words that several may be run together in; `apart`: letters
    stand by themselves, one behind the other."""

    plain: Reading
    strange: list[Word]
    long: list[str]
    apart: bool


class Spellings:
    """The texts of one run of gates, each folded and decoded once for all detectors that read it."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Spelling, ...]] = {}

    def of(self, text: str) -> tuple[Spelling, ...]:
        if text not in self._known:
            self._known[text] = tuple(_spellings(text, {text}, place=None, depth=0))
        return self._known[text]


def readings(text: str, vocabulary: Vocabulary, spellings: Spellings) -> Iterator[Reading]:
    """The plain reading first, then those that the text gives a reason for."""
    for plain, strange, long, apart in spellings.of(text):
        yield plain
        figures = list(_figures(strange, vocabulary))
        parted = {word: parts for word in long if (parts := _parts(word, vocabulary))}
        if not figures and not apart and not parted:
            continue
        meant = _rejoined(_with_figures(plain.words, figures), vocabulary, parted)
        if meant != plain.words:
            yield Reading(meant, _numbered(meant), True)


class Vocabulary:
    """The words that some table knows: only towards them is a strange spelling resolved."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words = frozenset(words)
        self._lengths: dict[str, list[int]] = {}
        for head, length in sorted({(word[:2], len(word)) for word in words} | {(word[:2], 1) for word in words}):
            self._lengths.setdefault(head, []).insert(0, length)
        self._skeletons = {_skeleton(word): word for word in sorted(words, key=len, reverse=True) if len(word) > 2}

    def resolve(self, word: str) -> str | None:
        return word if word in self.words else self._skeletons.get(_skeleton(word))

    def split(self, letters: str) -> Iterator[tuple[str, int, int]]:
        """The known words in letters that were run together, longest first; unknown letters are stepped over."""
        at = 0
        while at < len(letters):
            for length in self._lengths.get(letters[at : at + 2], _ONE):
                word = letters[at : at + length]
                if len(word) == length and word in self.words:
                    yield word, at, at + length
                    at += length
                    break
            else:
                at += 1


def fold(text: str) -> tuple[str, Sequence[int]]:
    """Lower-case letters without disguise, and for each the place in `text` it came from."""
    if text.isascii():
        return text.lower(), range(len(text))
    pieces: list[str] = []
    places: list[int] = []
    for match in _RUN.finditer(text):
        start, end = match.span()
        if match[0].isascii():
            pieces.append(match[0].lower())
            places += range(start, end)
        else:
            folded = _folded(match[0])
            pieces.append(folded)
            places += [start] * len(folded)
    return "".join(pieces), places


def _spellings(text: str, seen: set[str], *, place: tuple[int, int] | None, depth: int) -> Iterator[Spelling]:
    """`seen` are the texts that were read already: one that is encoded twice says nothing new."""
    folded, places = fold(text)
    yield _spelling(_words(folded, places, place), _strange(folded, places, place), hidden=depth > 0)
    if depth < MAX_DEPTH:
        for piece in decoding.pieces(text, folded):
            if piece.text in seen:
                continue
            seen.add(piece.text)
            yield from _spellings(piece.text, seen, place=place or (piece.start, piece.end), depth=depth + 1)


def _spelling(words: list[Word], strange: list[Word], *, hidden: bool) -> Spelling:
    numbers = _numbered(words)
    alone = sorted(number for word, places in numbers.items() if len(word) == 1 for number in places)
    apart = any(last - first == _APART for first, last in zip(alone, alone[_APART:], strict=False))
    long = [word for word in numbers if len(word) > _LONGEST_WORD - 4]
    return Spelling(Reading(words, numbers, hidden), strange, long, apart)


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
        return [Word(_bare(match[0]), *match.span()) for match in found]
    return [Word(_bare(match[0]), places[match.start()], places[match.end() - 1] + 1) for match in found]


def _bare(word: str) -> str:
    return word if word.isalnum() else _WITHIN.sub("", word)


def _strange(folded: str, places: Sequence[int], place: tuple[int, int] | None) -> list[Word]:
    """Each token is looked at once, however often it stands there."""
    tokens = {token for token in set(_LEET_WORD.findall(folded)) if not token.isdigit() and _STRANGE.search(token)}
    return [
        Word(match[0], *(place or (places[match.start()], places[match.end() - 1] + 1)))
        for match in (_LEET_WORD.finditer(folded) if tokens else ())
        if match[0] in tokens
    ]


def _figures(strange: Sequence[Word], vocabulary: Vocabulary) -> Iterator[Word]:
    """Words with figures or signs for letters (`1gn0re`, `@ll`), or with a letter drawn out, that mean a known word."""
    known: dict[str, str | None] = {}
    for token, start, end in strange:
        form = token[: 2 * _LONGEST_WORD]
        if form not in known:
            known[form] = _resolved(form, vocabulary)
        if word := known[form]:
            yield Word(word, start, end)


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
    for word in words:
        if run and (len(word.text) > 1 or word.start - run[-1].end > _APART):
            found += _spelled(run, vocabulary)
            run = []
        if len(word.text) == 1:
            run.append(word)
        elif word.text in parted:
            found += [Word(text, word.start, word.end) for text in parted[word.text]]
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
    known = vocabulary.split(letters.translate(_LEET))
    return [Word(text, run[start].start, run[end - 1].end) for text, start, end in known]


@lru_cache(maxsize=8192)
def _folded(char: str) -> str:
    """Letters without accents, look-alikes as what they look like, and nothing for what cannot be seen."""
    if "\U000e0020" <= char <= "\U000e007e":
        return chr(ord(char) - 0xE0000).lower()
    kept = []
    for part in unicodedata.normalize("NFKD", char):
        if unicodedata.category(part) not in {"Mn", "Me", "Cf", "Cs"}:
            kept.append(_lookalikes().get(part) or _lookalikes().get(part.lower()) or part.lower())
    return "".join(kept)


@cache
def _lookalikes() -> dict[str, str]:
    lines = (TABLES / "homoglyphs.txt").read_text("utf-8").splitlines()
    pairs = (line.split() for line in lines if not line.startswith("#"))
    return {lookalike: letter for letter, lookalikes in pairs for lookalike in lookalikes}
