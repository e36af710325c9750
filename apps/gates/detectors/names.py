"""Detect names of persons: after a cue (`my name is …`, `Mr …`, `Dear …`), and words that look like names. Pure.

After a cue any word with a capital is a name. Elsewhere `name_scores` weighs the word, its neighbours and its place; a
name in small letters is seen by neither.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from apps.gates.detectors.cues import CUES
from apps.gates.detectors.findings import Span
from apps.gates.detectors.name_scores import score_names
from apps.gates.detectors.tokens import OWNED, PARTICLES, Token, are_joined, tokenize

# One part of a name: `O'Neil`, `Jean-Luc`, `J.`; small words that stand inside names.
_PART = re.compile(r"[^\W\d_]{1,40}+(?:['\u2019.-][^\W\d_]{1,40}+){0,3}+\.?+")
_CAPITAL = r"[A-Z\u00c0-\u00d6\u00d8-\u00de][^\W\d_]*+"
_CAPITAL_WORD = re.compile(_CAPITAL)
_CAPITALS = re.compile(rf"{_CAPITAL}(?:[ \u00a0]{_CAPITAL})*+")
_GAP = re.compile(r"[ \u00a0]{1,2}+")
_MOST_PARTS = 5
# As many words with a capital as 50,000 characters hold in German, which writes all its nouns so.
_MOST_JUDGED = 2_500
# The score from which on a word is taken for a name: a chance of 0.45; measured in docs/detection-figures.md.
_LIKELY = -0.2

# What leads to a name, in small letters: that is five times as quick as ignoring the case.
_TITLES = "mr|mrs|ms|miss|mx|dr|prof|professor|sir|madam|herr|frau|monsieur|madame|mme|señor|señora|sr|sra|rev|capt|hon"
_TITLE = re.compile(rf"\b(?:{_TITLES})\b\.?+[ \u00a0]")
_INTRODUCED = re.compile(
    r"\b(?:"
    r"(?:my|his|her|their|the|whose|full|last|first|maiden|birth|customer|cardholder)\s"
    r"(?:full\s|real\s|last\s|first\s)?+"
    r"(?:name|surname)(?:\sis|'s|\u2019s)?+:?+|name(?:\sis)?+\s?+[:=-]|(?:account|card)\sholder(?:\sis|:)?+|named"
    r"|is\scalled|call\sme|they\scall\sme|people\scall\sme|known\sas|in\sthe\sname\sof|on\sbehalf\sof|this\sis|i\sam|i'm|i\u2019m"
    r"|ich\shei\u00dfe|mein\sname\sist|je\sm'appelle|me\sllamo|mi\snombre\ses)\s++"
)
_GREETING = re.compile(r"\b(?:dear|hi|hello|hey|attn:?+|attention:?+|cc:?+|to:|from:|contact:?+)[ \u00a0]")
_CLOSING = re.compile(
    r"(?<!\w)(?:(?:kind|best|warm|with)?+ ?+(?:regards|wishes)|sincerely(?: yours)?+"
    r"|yours (?:sincerely|truly|faithfully)|cheers|thank you|thanks|signed|respectfully)[,.!]?+\s{1,4}+-{0,2}+"
)
_NOT_NAMES = CUES["no_names"]


def find_names(text: str) -> Iterator[Span]:
    low = _lowered(text)
    if low != text:
        yield from _introduced(text, low)
        yield from _likely(text)


def _introduced(text: str, low: str) -> Iterator[Span]:
    """Each cue leads to at most one name directly after it. `low`: the text in small letters."""
    for cue, least, careful in ((_TITLE, 1, False), (_INTRODUCED, 1, True), (_GREETING, 1, True), (_CLOSING, 1, True)):
        for match in cue.finditer(low):
            start = match.end()
            if careful and (title := _TITLE.match(low, start)):
                start = title.end()
            end = _name_end(text, start, least)
            if end:
                yield Span(start, end, "PERSON")


def _lowered(text: str) -> str:
    """In small letters, each in its place: a few letters have small forms of two."""
    low = text.lower()
    return low if len(low) == len(text) else "".join(char if len(char.lower()) > 1 else char.lower() for char in text)


def _likely(text: str) -> Iterator[Span]:
    """Runs of words that look like names, with the small words inside them (`Ludwig van Beethoven`). Behind the words
    that are judged every further one counts as a name: reading is bounded, and errs towards names."""
    last_judged = next(islice(_CAPITAL_WORD.finditer(text), _MOST_JUDGED, None), None)
    if last_judged is not None:
        yield from (Span(*match.span(), "PERSON") for match in _CAPITALS.finditer(text, last_judged.start()))
        text = text[: last_judged.start()]
    parsed = tokenize(text)
    odds = score_names(parsed)
    first: Token | None = None
    last = 0
    for number in odds:
        word = parsed.words[number]
        if not word.may_be_name:
            continue
        follows = first is not None and are_joined(text, parsed.words, last, number)
        if not (follows and number - last > 1) and odds[number] < _LIKELY:
            continue
        if first is not None and not follows:
            yield _span(first, parsed.words[last])
        first, last = first if follows and first else word, number
    if first is not None:
        yield _span(first, parsed.words[last])


def _span(first: Token, last: Token) -> Span:
    return Span(first.start, last.end - 2 if last.text.endswith(OWNED) else last.end, "PERSON")


def _name_end(text: str, start: int, least: int) -> int:
    """Where the name that begins at `start` ends; 0 when none does."""
    at, end, parts = start, 0, 0
    for _ in range(_MOST_PARTS):
        part = _PART.match(text, at)
        if not part:
            break
        if _is_name(part[0]):
            parts, end = parts + 1, part.end()
        elif part[0].lower() not in PARTICLES:
            break
        gap = _GAP.match(text, part.end())
        if not gap or _ends_sentence(part[0]):
            break
        at = gap.end()
    return _without_stop(text, start, end) if parts >= least else 0


def _is_name(part: str) -> bool:
    bare = re.split(r"['\u2019]s\b", part, maxsplit=1)[0].strip(".").lower()
    return (
        part[0].isupper()
        and bare not in _NOT_NAMES
        and (part[1:].islower() or not part.isupper() or len(part) > 3 or "." in part or len(part) == 1)
    )


def _ends_sentence(part: str) -> bool:
    return part.endswith(".") and len(part) > 3


def _without_stop(text: str, start: int, end: int) -> int:
    """A full stop ends the sentence and no name, except after an initial; an owner's `'s` is not part of it."""
    if end - start > 2 and text[end - 1] == "." and not text[end - 3 : end - 2].isspace():
        end -= 1
    return end - 2 if text[end - 2 : end] in {"'s", "\u2019s"} and end - start > 3 else end
