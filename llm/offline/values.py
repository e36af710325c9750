"""Read dates, numbers, ids, addresses and choices from a text, strictly: an ambiguous value is no value.

Every function takes the text and returns the value, or None when there is none or more than one. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Any

from llm.offline.words import stems

_MONTH_NAMES = "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"
_MONTHS = {name: number for number, name in enumerate(_MONTH_NAMES, start=1)}
_MONTH = rf"(?P<month>{'|'.join(_MONTH_NAMES)})[a-z]*\.?"
_DATES = tuple(
    re.compile(pattern, re.I)
    for pattern in (
        r"(?<![\w-])(?P<year>\d{4})-(?P<m>\d{1,2})-(?P<day>\d{1,2})(?![\w-])",
        r"(?<![\w.])(?P<day>\d{1,2})\.\s?(?P<m>\d{1,2})\.\s?(?P<year>\d{4})(?!\w)",
        rf"(?<!\w)(?P<day>\d{{1,2}})(?:st|nd|rd|th|\.)?(?: of)?[ -]{_MONTH},?[ -](?P<year>\d{{4}})(?!\w)",
        rf"(?<!\w){_MONTH} (?P<day>\d{{1,2}})(?:st|nd|rd|th)?,? (?P<year>\d{{4}})(?!\w)",
    )
)
_SLASHED = re.compile(r"(?<![\w/])(\d{1,2})/(\d{1,2})/(\d{4})(?![\w/])")
_RELATIVE = re.compile(r"\b(today|yesterday|tomorrow)\b", re.I)
_DAYS_FROM_TODAY = {"yesterday": -1, "today": 0, "tomorrow": 1}

_CURRENCY = r"(?:[€$£]|(?:eur|usd|gbp|chf|euros?|dollars?|pounds?|bucks)\b)"
_NUMBER = re.compile(
    rf"(?<![\w.,/-])(?P<before>{_CURRENCY})?\s?(?P<sign>(?<!\w)-)?(?P<digits>\d{{1,3}}(?:,\d{{3}})+(?:\.\d{{1,2}})?|\d+(?:[.,]\d{{1,2}})?)"
    rf"(?!\d|[.,]\d)\s?(?P<after>{_CURRENCY}|%)?(?![\w/-])",
    re.I,
)
_EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+(?!\w)")
_PHONE = re.compile(r"(?<![\w-])\+?\d(?:[\d ()/.-]{5,18})\d(?![\w-])")
_TRUE = re.compile(r"\b(?:yes|yeah|yep|sure|true|correct|of course|please do|absolutely)\b", re.I)
_FALSE = re.compile(r"\b(?:no|nope|not|don't|do not|never|false)\b", re.I)
_POSTCODE = re.compile(r"(?<!\w)(?:\d{5}(?:-\d{4})?|\d{4}|[A-Z]{1,2}\d[A-Z\d]? ?\d[A-Z]{2})(?!\w)", re.I)
_HOUSE = r"(?:\d|(?:flat|apartment|apt|unit|suite|floor)\b)"
_ADDRESS_AFTER = re.compile(
    rf"(?:\baddress(?: is| to|:| =)|\bmov(?:ed|e|ing) (?:to|into)|\b(?:is|to|at|into)(?= {_HOUSE})|:)\s+"
    r"(?P<rest>[^\n]+)",
    re.I,
)
_ADDRESS_ENDS = re.compile(
    r"[.!?](?:\s|$)|(?<![,\s])[,\s]++(?:please|thanks|thank you|(?:for|on) (?:my )?(?:policy|order|account|claim))\b",
    re.I,
)
_LEAD_IN = re.compile(
    r"^\s*(?:(?:hi|hello|hey|yes|yeah|sure|ok(?:ay)?|so|well|please|use|that would be|that's|that is|it's|it is|this is"
    r"|change it to|set it to|make it|(?:the|my)(?: new)? \w+(?: \w+)? is(?: now)?)[\s,:]+)+",
    re.I,
)
_TAIL = re.compile(
    r"(?<![\s,.!])(?:[\s,.!]++(?:please|thanks|thank you|cheers)){1,6}+[\s.!]*+$|(?<![\s,;])[\s,;]++$", re.I
)
_OF_LETTERS_AND_DIGITS = re.compile(r"(?<=[A-Za-z])[\s#:]+(?=\d)")
_PROBES = ("zzz qqq", "some words", "x")


def only_value(values: Iterable[object]) -> Any | None:
    different = list(dict.fromkeys(values))
    return different[0] if len(different) == 1 else None


def find_date(text: str, today: str = "") -> str | None:
    """ISO date. "3/4/2025" has two readings and gives None; "yesterday" needs `today`."""
    dates = [value for _, _, value in date_spans(text)]
    for word in _RELATIVE.findall(text):
        if today:
            dates.append((date.fromisoformat(today) + timedelta(days=_DAYS_FROM_TODAY[word.lower()])).isoformat())
    return only_value(dates)


def mentions_date(text: str) -> bool:
    """Whether the text contains a date at all, even an ambiguous one ("12/03/1984")."""
    return bool(date_spans(text)) or _SLASHED.search(text) is not None


def date_spans(text: str) -> list[tuple[int, int, str]]:
    spans = []
    for pattern in _DATES:
        for match in pattern.finditer(text):
            parts = match.groupdict()
            month = int(parts["m"]) if parts.get("m") else _MONTHS[parts["month"][:3].lower()]
            spans.append((match, _iso(int(parts["year"]), month, int(parts["day"]))))
    for match in _SLASHED.finditer(text):
        first, second, year = (int(part) for part in match.groups())
        readings = {_iso(year, first, second), _iso(year, second, first)} - {None}
        spans.append((match, only_value(readings)))
    return [(match.start(), match.end(), value) for match, value in spans if value is not None]


def _iso(year: int, month: int, day: int) -> str | None:
    try:
        return date(year, month, day).isoformat()
    except ValueError:
        return None


def find_number(text: str, *, money_only: bool = False) -> int | float | None:
    """The one number of the text; with `money_only` the one that carries a currency."""
    rest = _blank(text, [(start, end) for start, end, _ in date_spans(text)])
    matches = [match for match in _NUMBER.finditer(rest) if match["after"] != "%"]
    if money_only:
        matches = [match for match in matches if match["before"] or match["after"]]
    value = only_value(_decimal(match) for match in matches)
    if value is None:
        return None
    return int(value) if value == value.to_integral_value() else float(value)


def _decimal(match: re.Match[str]) -> Decimal:
    digits = match["digits"]
    thousands = "," in digits and len(digits.rsplit(",", 1)[1].split(".")[0]) == 3
    plain = digits.replace(",", "" if thousands else ".")
    return Decimal(("-" if match["sign"] else "") + plain)


def find_email(text: str) -> str | None:
    return only_value(match.group() for match in _EMAIL.finditer(text))


def find_phone(text: str) -> str | None:
    rest = _blank(text, [(start, end) for start, end, _ in date_spans(text)])
    numbers = (match.group().strip() for match in _PHONE.finditer(rest))
    return only_value(number for number in numbers if sum(c.isdigit() for c in number) >= 7)


def find_bool(text: str) -> bool | None:
    yes, no = bool(_TRUE.search(text)), bool(_FALSE.search(text))
    return None if yes == no else yes


def find_choice(text: str, choices: Sequence[object]) -> Any | None:
    """The one of `choices` whose words are all in the text; a longer choice wins over one that is part of it."""
    text_stems = set(stems(text))
    matching = [choice for choice in choices if (needed := set(stems(str(choice)))) and needed <= text_stems]
    longest = [
        choice for choice in matching if not any(set(stems(str(choice))) < set(stems(str(other))) for other in matching)
    ]
    return only_value(longest)


@lru_cache(maxsize=512)
def _searcher(pattern: str) -> re.Pattern[str] | None:
    """To look for an id inside a text; None for a pattern that any text fits."""
    inner = pattern.removeprefix("^").removesuffix("$")
    try:
        if any(re.fullmatch(inner, probe) for probe in _PROBES):
            return None
        return re.compile(rf"(?<![\w-])(?:{inner})(?![\w-])", re.IGNORECASE)
    except re.error:
        return None


def is_specific(pattern: str) -> bool:
    return _searcher(pattern) is not None


def find_pattern(text: str, pattern: str) -> str | None:
    """The one text that fits an id pattern; case and a space for a hyphen ("clm 2001") are forgiven."""
    searcher = _searcher(pattern)
    if searcher is None:
        return None
    hyphened = _OF_LETTERS_AND_DIGITS.sub("-", text)
    hits = [match.group() for written in (text, hyphened) for match in searcher.finditer(written)]
    fitting = (form for hit in hits for form in (hit, hit.upper(), hit.lower()) if re.search(pattern, form))
    return only_value({form.upper(): form for form in reversed(list(fitting))}.values())


def find_address(text: str) -> str | None:
    """A postal address offered in passing: what follows "to", "is" or a colon and holds a house number."""
    for match in _ADDRESS_AFTER.finditer(text):
        rest = _ADDRESS_ENDS.split(match["rest"], maxsplit=1)[0]
        candidate = clean_answer(rest)
        if (
            re.search(r"\d", candidate)
            and len(re.findall(r"[^\W\d_]{3,}", candidate)) >= 1
            and not date_spans(candidate)
        ):
            return candidate
    return None


def address_parts(address: str) -> Mapping[str, str]:
    """`street`, `postcode`, `city` of "12 Elm Street, 90210 Springfield"; only the parts that are there."""
    pieces = [piece.strip() for piece in address.split(",") if piece.strip()]
    if len(pieces) < 2:
        return {}
    rest = ", ".join(pieces[1:])
    codes = list(_POSTCODE.finditer(rest))
    parts = {"street": pieces[0]}
    if len(codes) == 1:
        parts["postcode"] = codes[0].group()
        rest = rest[: codes[0].start()] + rest[codes[0].end() :]
    city = next((piece.strip() for piece in rest.split(",") if len(piece.strip()) > 2), "")
    return parts | ({"city": city} if city else {})


def clean_answer(text: str) -> str:
    """An answer without "it is", "please" and the like around it, on one line."""
    return _TAIL.sub("", _LEAD_IN.sub("", " ".join(text.split()))).strip().rstrip(".").strip()


def _blank(text: str, spans: Iterable[tuple[int, int]]) -> str:
    for start, end in spans:
        text = text[:start] + "\x00" * (end - start) + text[end:]
    return text
