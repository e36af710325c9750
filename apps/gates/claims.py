"""Find an identity claim, a full name and a date of birth, in a visitor's messages. Pure.

A script gate decides whether the claim is true. The claim is passed on as two plain values, never as part of a command.
Called by the script provider for identity gates.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TypeVar

T = TypeVar("T")

OLDEST_BIRTH_YEAR = 1900
MAX_MESSAGE = 4000
# A text with more dates is no claim, and checking each would take too long.
MAX_DATES = 8
_BLANK = re.compile(r"\s+")
_MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october") + (
    "november",
    "december",
)
_MONTH = r"(?P<month>jan|feb|mar|apr|may|jun|jul|aug|sept?|oct|nov|dec|" + "|".join(_MONTHS) + r")\b\.?"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>\d{4})"
_DATES = tuple(
    re.compile(rf"(?<![\d/.-]){pattern}(?![\d/-]|\.\d)", re.IGNORECASE)
    for pattern in (
        rf"{_YEAR}(?P<mark>[-/.])(?P<number>\d{{1,2}})(?P=mark)(?P<day>\d{{1,2}})",
        rf"(?P<day>\d{{1,2}})\s?(?P<mark>[-/.])\s?(?P<number>\d{{1,2}})\s?(?P=mark)\s?{_YEAR}",
        rf"{_DAY}\s*(?:of\s+)?[-/]?\s*{_MONTH},?\s*[-/]?\s*{_YEAR}",
        rf"{_MONTH}\s*{_DAY},?\s+{_YEAR}",
    )
)
_BIRTH = re.compile(r"\b(born|birth|birthday|birthdate|dob|d\.o\.b)\b", re.IGNORECASE)

_CURLY_APOSTROPHE = "\u2019"
_BEFORE_DATE = " ,;:(-\u2013\u2014\t"
_LETTER = r"[^\W\d_]"
_WORD = rf"(?:\b{_LETTER}{{1,40}}(?:['-]{_LETTER}{{1,40}}){{0,3}}\.?)"
_NAME = rf"(?P<name>{_WORD}(?:[ \t]+{_WORD}){{1,3}})"
_SAYS_NAME = re.compile(rf"\b(?:my (?:full )?name is|my name's|(?:full )?name\s*[:=-])[ \t]*{_NAME}", re.IGNORECASE)
_SAYS_I_AM = re.compile(rf"\b(?:i am|i'm|this is|it is|it's)[ \t]+{_NAME}", re.IGNORECASE)
_BARE = re.compile(rf"{_NAME}")
# Words that end a name, or show that it is none.
_OTHER_WORDS = """
a about account address am an and are as at be been birth birthday birthdate born bought but by called calling can can't
change claim could customer damage date details did didn't do dob does don't for from give has have he's hello help here
hi home how i i'd i'll i'm i've im in insurance is it it's just know let's like looking me my name need new no not of on
or order our out please policy question refund return she's so status sure thank thanks that that's the their there
there's they they're this to today trying want was we we're were what what's when where which who why will with won't
would yes you your
"""
_NOT_A_NAME = frozenset(_OTHER_WORDS.split())
_SMALL_PARTS = "al ap ben bin da dal de del della den der di dos du el la le los mac o san st ten ter van von y"
_PARTICLES = frozenset(_SMALL_PARTS.split(" "))


@dataclass(frozen=True)
class Claim:
    """The identity that a visitor claims."""

    name: str
    born: date

    def as_values(self) -> dict[str, str]:
        return {"customer_name": self.name, "customer_dob": self.born.isoformat()}

    @property
    def match_key(self) -> str:
        """The name's letters without case, accents and order, which all spellings that a check may accept have in
        common. For counting attempts only, never for finding a customer."""
        # Twice, because `casefold` can bring out accents that were part of a letter.
        letters = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", self.name).casefold())
        return "".join(sorted(letter for letter in letters if letter.isalpha()))


def find_claim(message: str, earlier: Sequence[str] = (), *, known: bool = False) -> Claim | None:
    """The claim that `message` makes or completes with the visitor's `earlier` messages (oldest first), or None.

    `known`: the visitor is already verified, so a bare name or date means something else (such as the date of a loss),
    and only a complete, explicit claim counts as a new one.
    """
    text = _plain_blanks(message)
    name, born = find_name(text), find_birth_date(text)
    if known:
        # A verified visitor speaks of other people and dates: none of these must change who they are taken for.
        spelled_out = name is not None and born is not None and _BIRTH.search(text) is not None
        return Claim(name, born) if spelled_out and name and born else None
    if name is None and born is None:
        return None
    before = [_plain_blanks(piece) for piece in reversed(earlier)]
    name = name or _first(find_name(piece) for piece in before)
    born = born or _first(find_birth_date(piece) for piece in before)
    return Claim(name, born) if name and born else None


def _plain_blanks(text: str) -> str:
    """Collapse whitespace, so that patterns do not backtrack over thousands of blanks."""
    return _BLANK.sub(lambda blank: "\n" if "\n" in blank[0] else " ", text[:MAX_MESSAGE])


def find_birth_date(text: str) -> date | None:
    """A date called a date of birth, or one that is (nearly) alone or next to a name."""
    dates = _dates_in(text)
    if not dates:
        return None
    cue = _BIRTH.search(text)
    if cue:
        return min(dates, key=lambda item: abs(item[0] - cue.start()))[1]
    position, end, when = dates[0][0], dates[0][2], dates[0][1]
    rest = _plain_words(text[:position] + " " + text[end:])
    return when if len(dates) == 1 and (len(rest) <= 1 or find_name(text)) else None


def find_name(text: str) -> str | None:
    """A full name given as the visitor's own: introduced, alone, or next to a date."""
    text = text.replace(_CURLY_APOSTROPHE, "'")
    for pattern in (_SAYS_NAME, _SAYS_I_AM):
        for match in pattern.finditer(text):
            name = _trimmed(match["name"])
            if name and (pattern is _SAYS_NAME or _capitalised(name) or _BIRTH.search(text)):
                return _tidy(name)
    return _bare_name(text)


def _bare_name(text: str) -> str | None:
    """A name that is all that remains without the date and the words about it; in a longer text, a capitalised name
    directly before the date."""
    dates = _dates_in(text)
    alone = text
    for position, _, end in reversed(dates):
        alone = alone[:position] + "\n" + alone[end:]
    left = [_trimmed(match["name"]) for match in _BARE.finditer(_without_birth_words(alone))]
    names = [name for name in left if name]
    if len(names) == 1 and len(_plain_words(_without_birth_words(alone))) <= len(names[0].split()) + 2:
        return _tidy(names[0]) if dates or _capitalised(names[0]) else None
    return _name_at_date(text, dates)


def _name_at_date(text: str, dates: list[tuple[int, date, int]]) -> str | None:
    for position, _, _ in dates:
        before = _without_birth_words(text[:position]).rstrip(_BEFORE_DATE)
        match = re.search(rf"{_NAME}\Z", before)
        name = _longest_capitalised_end(match["name"]) if match else ""
        if name:
            return _tidy(name)
    return None


def _longest_capitalised_end(name: str) -> str:
    words: list[str] = []
    for word in reversed(name.split()):
        if not (_capitalised(word) or (words and word.lower() in _PARTICLES)) or word.lower() in _NOT_A_NAME:
            break
        words.insert(0, word)
    while words and words[0].lower() in _PARTICLES:
        words.pop(0)
    return " ".join(words) if len(words) >= 2 else ""


def _trimmed(name: str) -> str:
    """The words before the first that cannot be part of a name; empty if fewer than two remain."""
    words: list[str] = []
    for word in name.split():
        if word.lower().strip(".") in _NOT_A_NAME:
            break
        words.append(word)
        if word.endswith(".") and len(word) > 3:
            break
    while words and words[-1].lower() in _PARTICLES:
        words.pop()
    return " ".join(words) if len(words) >= 2 else ""


def _capitalised(name: str) -> bool:
    return all(word[0].isupper() or word.lower() in _PARTICLES for word in name.split())


def _tidy(name: str) -> str:
    """Normalise spelling: single spaces, no final full stop, capitalised words."""
    words = name.rstrip(".").split()
    return " ".join(word if any(letter.isupper() for letter in word) else _cased(word) for word in words)


def _cased(word: str) -> str:
    return word if word in _PARTICLES else word[0].upper() + word[1:]


def _without_birth_words(text: str) -> str:
    return re.sub(
        r"(?i)[,(]?\s{0,4}+\b(?:(?:was |am )?born(?: on)?|(?:my )?(?:date of birth|dob|birthday|birthdate)(?: is|:)?)",
        "\n",
        text,
    )


def _plain_words(text: str) -> list[str]:
    return re.findall(rf"{_LETTER}+", text)


def _dates_in(text: str) -> list[tuple[int, date, int]]:
    """(start, date, end) of every possible date of birth, in order, each piece of text once; none of too many."""
    found: list[tuple[int, date, int]] = []
    for pattern in _DATES:
        for match in pattern.finditer(text):
            when = _as_date(match)
            # A text full of dates would have each checked against each, in time that grows with their square.
            if len(found) > MAX_DATES:
                return []
            if when and not any(start < match.end() and match.start() < end for start, _, end in found):
                found.append((match.start(), when, match.end()))
    return sorted(found)


def _as_date(match: re.Match[str]) -> date | None:
    parts = match.groupdict()
    day, year = int(parts["day"]), int(parts["year"])
    month = int(parts["number"]) if parts.get("number") else _month_number(parts["month"])
    if month > 12 and day <= 12 and parts.get("number"):
        day, month = month, day  # written month first; read day first, it is no date at all
    try:
        return date(year, month, day) if year >= OLDEST_BIRTH_YEAR else None
    except ValueError:
        return None


def _month_number(name: str) -> int:
    short = name[:3].lower()
    return next(number for number, month in enumerate(_MONTHS, start=1) if month.startswith(short))


def _first(values: Iterable[T | None]) -> T | None:
    return next((value for value in values if value is not None), None)
