"""Detect and redact personal data: contact details, card, account and national numbers, names. Pure.

A number counts by its check digits, or by the words before it; a name by the words around it. Kinds are named as
gates name them (`CREDIT_CARD`, `SSN`). Every pattern is possessive: none turns back.
"""

from __future__ import annotations

import ipaddress
import re
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

from apps.gates.detectors import names, numbers
from apps.gates.detectors.cues import CUES
from apps.gates.detectors.findings import Detection, Span, build_detection, without_overlap

NATIONAL_ID, PHONE = "NATIONAL_ID", "PHONE"
KINDS = ("EMAIL", PHONE, "CREDIT_CARD", "IBAN", "SSN", NATIONAL_ID, "IP_ADDRESS", "PERSON")
_SURE = 0.95
_NAME_SURE = 0.75
_BEFORE = 48
_LEAST_PHONE, _MOST_PHONE = 7, 15

_EMAIL_WIDE = re.compile(r"(?<![\w.%+-])[\w.%+-]{1,64}+@[\w-]{1,63}+(?:\.[\w-]{1,63}+){1,8}+")
_EMAIL_SPOKEN = re.compile(
    r"(?<![\w.+-])[\w.+-]{1,64}+\s?[\[(]\s?at\s?[\])]\s?[\w-]{1,63}+(?:(?:\.|\s?[\[(]\s?dot\s?[\])]\s?)[\w-]{2,63}+){1,4}+",
    re.IGNORECASE,
)
_AT_SPOKEN = re.compile(r"[\[(]\s?at\s?[\])]", re.IGNORECASE)
# Letters and figures with at most one sign between any two, however long.
_ACCOUNT = re.compile(r"[A-Za-z0-9](?:[ -]?+[A-Za-z0-9])*+")
_IP4 = re.compile(r"(?<![\d.])\d{1,3}+\.\d{1,3}+\.\d{1,3}+\.\d{1,3}+(?![\d]|\.\d)")
_IP6 = re.compile(r"(?<![\w:.])(?:[0-9A-Fa-f]{0,4}+:){2,7}+(?:[0-9A-Fa-f]{1,4}+)?+(?![\w:])")
_SPANISH = re.compile(r"(?<![A-Za-z0-9])[XYZxyz0-9]\d{7}-?+[A-Za-z](?![A-Za-z0-9])")
_UK_NINO = re.compile(
    r"(?<![A-Za-z0-9])[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?+\d\d ?+\d\d ?+\d\d ?+[A-D](?![A-Za-z0-9])"
)
# Digits as people group them. What it is, is decided from the digits and from the words before them.
_DIGITS = re.compile(
    r"(?<![\w+$€£#/-])(?<!\d[.,])(?:\+\s?+)?+[(]?+\d(?:[ \u00a0.()/\u2010-\u2013-]{0,3}+\d){6,22}+"
    r"(?:\s?+(?:x|ext\.?+|extension)\s?+\d{1,6}+)?+",
    re.IGNORECASE,
)
_GLUED = re.compile(r"(?<![\w.+-])[A-Za-z]{1,12}+[:#=]\s?+(?=[\d+(])")
_GROUPED_SSN = re.compile(r"\d{3}[- ]\d{2}[- ]\d{4}")
_QUAD = re.compile(r"\d{1,3}+(?:\.\d{1,3}+){3}")
_DATE = re.compile(r"(?:\d{1,2}+[./-]\d{1,2}+[./-]\d{2,4}+|\d{4}[./-]\d{1,2}+[./-]\d{1,2}+)\b")
_CALLED = re.compile(r"[ (]{1,3}+(is (?:my|our|his|her) )?+([A-Za-z]{3,9}+)")
# As telephones are grouped in North America, and nothing else is.
_GROUPED_PHONE = re.compile(r"(?:1[-. ])?+\(?[2-9]\d\d\)?[-. ]{1,2}+[2-9]\d\d[-. ]\d{4}")
_BARE_PHONE = re.compile(r"[2-9](?!11)\d\d[2-9]\d{6}")
_ZIP_BEFORE = re.compile(r"\d{5} (?=(?:1[-. ])?+\(?[2-9]\d\d\)?[-. ]{1,2}+[2-9]\d\d[-. ]\d{4}(?!\d))")
# How each begins: to look behind at every place of a text is dear, so they are tried only where these stand.
_IBAN_BEGINS = re.compile(r"[A-Za-z](?<![A-Za-z0-9].)[A-Za-z]\d{2}")
_FIGURE = re.compile(r"\d(?<![\d.].)")
_DOTTED = re.compile(r"\d\.\d")
_TWO_COLONS = re.compile(r":[0-9A-Fa-f]{0,4}+:")
_SPANISH_BEGINS = re.compile(r"[XYZxyz0-9](?<![A-Za-z0-9].)\d{7}")
_UK_NINO_BEGINS = re.compile(r"[A-CEGHJ-PR-TW-Z](?<![A-Za-z0-9].)[A-CEGHJ-NPR-TW-Z] ?+\d\d")
_GLUE = re.compile(r"[A-Za-z][:#=]\s?+[\d+(]")
_DIGITS_BEGIN = re.compile(r"[+(\d](?<![\w+$€£#/-].)(?<!\d[.,].)")
_NOT_WORDS = re.compile(r"[^a-z]++")

_PHONE_WORDS = CUES["phone"]
_OTHER_WORDS = CUES["other"]
_NUMBER = frozenset({"number", "numbers"})
_SSN_WORDS = CUES["ssn"]
_ID_WORDS = CUES["id"]


class _National(NamedTuple):
    """`alone`: its check digits are enough; otherwise a word must say that a number of a person follows."""

    check: Callable[[str], bool]
    length: int
    alone: bool


_NATIONAL = (
    _National(numbers.is_french_nir, 15, alone=True),
    _National(numbers.is_indian_aadhaar, 12, alone=False),
    _National(numbers.is_german_tax_id, 11, alone=False),
    _National(numbers.is_polish_pesel, 11, alone=False),
    _National(numbers.is_brazilian_cpf, 11, alone=True),
    _National(numbers.is_uk_nhs, 10, alone=False),
    _National(numbers.is_dutch_bsn, 9, alone=False),
)


def detect_pii(text: str, *, kinds: Collection[str] = KINDS) -> Detection:
    """The score is how sure we are that any of `kinds` stands in the text; `redacted` is the text without them."""
    spans = without_overlap(span for span in _found(text, kinds) if span.kind in kinds)
    return build_detection(text, [(span, _NAME_SURE if span.kind == "PERSON" else _SURE) for span in spans])


def _found(text: str, kinds: Collection[str]) -> Iterator[Span]:
    """Of two that overlap the stronger one comes first: an IBAN's digits are no telephone number. The lists of names
    are loaded only when names are looked for."""
    taken: list[Span] = []
    for find in (_emails, _ibans, _addresses, _lettered_ids, _digits):
        fresh = [span for span in find(text) if not _overlaps(span, taken)]
        taken = sorted([*taken, *fresh])
    yield from taken
    if "PERSON" in kinds:
        yield from names.find_names(text)


def _matches(pattern: re.Pattern[str], begins: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """All of `pattern`, which can only begin where `begins` stands."""
    begin = begins.search(text)
    while begin:
        match = pattern.match(text, begin.start())
        if match:
            yield match
        begin = begins.search(text, match.end() if match else begin.start() + 1)


def _overlaps(span: Span, taken: list[Span]) -> bool:
    """`taken` is in order, so that the neighbours on both sides are the only candidates."""
    low, high = 0, len(taken)
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if taken[middle].end <= span.start else (low, middle)
    return low < len(taken) and taken[low].start < span.end


def _emails(text: str) -> Iterator[Span]:
    if "@" in text:
        yield from (Span(*match.span(), "EMAIL") for match in _EMAIL_WIDE.finditer(text))
    if _AT_SPOKEN.search(text):
        yield from (Span(*match.span(), "EMAIL") for match in _EMAIL_SPOKEN.finditer(text))


def _ibans(text: str) -> Iterator[Span]:
    """Tried wherever one may begin: what only looks like the beginning of one must not hide the one in it. Each stretch
    of letters and figures is prepared once for all that may begin in it."""
    begin = _IBAN_BEGINS.search(text)
    while begin:
        stretch = _ACCOUNT.match(text, begin.start())
        assert stretch is not None
        yield from _ibans_in(stretch)
        begin = _IBAN_BEGINS.search(text, stretch.end())


def _ibans_in(stretch: re.Match[str]) -> Iterator[Span]:
    """As long as its country says; a letter or figure right behind it says that it is none."""
    text, (first, last) = stretch.string, stretch.span()
    places = [place for place, char in enumerate(stretch[0], first) if char not in " -"]
    characters = stretch[0].replace(" ", "").replace("-", "")
    number = 0
    for begin in _IBAN_BEGINS.finditer(text, first, last):
        start = begin.start()
        length = numbers.IBAN_LENGTHS.get(text[start : start + 2].upper(), 0)
        number = bisect_left(places, start, number)
        if not length or number + length > len(places):
            continue
        end = places[number + length - 1] + 1
        if end < last and text[end] not in " -":
            continue
        if numbers.is_iban(characters[number : number + length]):
            yield Span(start, end, "IBAN")


def _addresses(text: str) -> Iterator[Span]:
    found = list(_matches(_IP4, _FIGURE, text)) if _DOTTED.search(text) else []
    if _TWO_COLONS.search(text):
        found += _IP6.finditer(text)
    for match in found:
        if _is_address(match[0]) and not _says(text, match.start(), frozenset({"version", "v"})):
            yield Span(*match.span(), "IP_ADDRESS")


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return len(text) > 4


def _lettered_ids(text: str) -> Iterator[Span]:
    for match in _matches(_SPANISH, _SPANISH_BEGINS, text):
        if numbers.is_spanish_id(match[0].replace("-", "").upper()):
            yield Span(*match.span(), NATIONAL_ID)
    yield from (Span(*match.span(), NATIONAL_ID) for match in _matches(_UK_NINO, _UK_NINO_BEGINS, text))


def _digits(text: str) -> Iterator[Span]:
    glued = [match.end() for match in _GLUED.finditer(text)] if _GLUE.search(text) else []
    labelled = ((end, _DIGITS.match(" " + text[end : end + 48], 1)) for end in glued)
    found = [(match.start(), match[0]) for match in _matches(_DIGITS, _DIGITS_BEGIN, text)]
    found += [(start, match[0]) for start, match in labelled if match]
    for start, run in sorted(set(found)):
        kind = _kind(text, start, run)
        if not kind and (code := _ZIP_BEFORE.match(run)):
            start, run = start + code.end(), run[code.end() :]
            kind = _kind(text, start, run)
        if kind:
            yield Span(start, start + len(run), kind)


def _kind(text: str, start: int, run: str) -> str | None:
    number = re.split(r"[xXeE]", run, maxsplit=1)[0]
    digits = "".join(char for char in number if char.isdigit())
    if not digits.isascii() or _DATE.match(number):
        return None
    if numbers.is_card(digits) and not number.startswith("+"):
        return "CREDIT_CARD"
    if (
        len(digits) == 9
        and numbers.is_us_ssn(digits)
        and (_GROUPED_SSN.fullmatch(number) or _says(text, start, _SSN_WORDS))
    ):
        return "SSN"
    said = _says(text, start, _ID_WORDS)
    if not number.startswith("+") and any(
        len(digits) == form.length and (form.alone or said) and form.check(digits) for form in _NATIONAL
    ):
        return NATIONAL_ID
    return PHONE if _is_phone(text, start, number, digits) else None


def _is_phone(text: str, start: int, number: str, digits: str) -> bool:
    if not _LEAST_PHONE <= len(digits) <= _MOST_PHONE or _GROUPED_SSN.fullmatch(number) or _QUAD.fullmatch(number):
        return False
    if number.startswith(("+", "00")):
        return numbers.is_international_phone(digits.removeprefix("00") if number.startswith("00") else digits)
    if number.startswith("(") and ")" in number[:6]:
        return len(digits) >= 8
    groups = [group for group in re.split(r"\D++", number) if group]
    if _GROUPED_PHONE.fullmatch(number) or _says(text, start, _PHONE_WORDS) or _is_called(text, start + len(number)):
        return True
    if _says(text, start, _OTHER_WORDS):
        return False
    if _says(text, start, _NUMBER):
        return True
    if _BARE_PHONE.fullmatch(number):
        after = _CALLED.match(text, start + len(number))
        return after is None or after[2].lower() not in _OTHER_WORDS
    return 9 <= len(digits) <= 12 and 3 <= len(groups) <= 5 and max(map(len, groups)) <= 4 and number[:1] != "."


def _is_called(text: str, end: int) -> bool:
    """`… office`, `… (mobile)`, `… is my number`: what sort of telephone stands behind it, in the same line."""
    after = _CALLED.match(text, end)
    return after is not None and (after[2].lower() in CUES["phone_after"] or bool(after[1] and after[2] == "number"))


def _says(text: str, start: int, words: Collection[str]) -> bool:
    """Does one of the last six words before this place belong to `words`?"""
    before = _NOT_WORDS.split(text[max(0, start - _BEFORE) : start].lower())
    return any(word in words for word in [word for word in before if word][-6:])
