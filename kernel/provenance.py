"""Trace where a value comes from, over everything that the model was shown when it wrote the value.

A model's own claims about origins are never used. `Sources` hold what one run was shown; a value is traced to the least
trusted source that contains it verbatim, and a value in no source was written by the model. So an external or invented
value never passes for the customer's words or the company's records (ADR 103). Pure.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from functools import cached_property
from typing import Any

MAX_LABEL_LENGTH = 80
_SPACES = re.compile(r"[\s,;]+")
# A number with its separators, not part of a word, a date or another number; a currency may follow it directly.
_NUMBER = re.compile(
    r"(?<![\w.,:/-])\d(?:[\d.,'\u00a0\u202f]*\d)?(?=(?:eur|usd|gbp|chf|jpy)\b|[.,]?(?![\w/:-]|[.,]\d))", re.I
)
_GROUPED = re.compile(r"\d{1,3}(?:([.,'\u00a0\u202f])\d{3})+")
_CODE = re.compile(r"\+?[A-Za-z0-9][A-Za-z0-9 ().\-]{6,}")
_CODE_NOISE = re.compile(r"[ ().\-]+")
_MOST_TEXT, _MOST_CODE, _MOST_DIGITS = 400_000, 60, 40


class Origin(StrEnum):
    """Who a value comes from."""

    VISITOR = "visitor"
    STAFF = "staff"
    RECORDS = "records"
    AUTHOR = "author"
    DOCUMENT = "document"
    TOOL = "tool"
    MEMORY = "memory"
    MODEL = "model"


# Vouched for: the customer said it, or the company has it. Everything else is an outsider's or the model's.
VOUCHED = frozenset({Origin.VISITOR, Origin.STAFF, Origin.RECORDS, Origin.AUTHOR})
# Worst first. What the model remembers or makes up counts only where no source holds the value.
_BY_TRUST = (
    Origin.TOOL,
    Origin.DOCUMENT,
    Origin.MODEL,
    Origin.MEMORY,
    Origin.VISITOR,
    Origin.RECORDS,
    Origin.STAFF,
    Origin.AUTHOR,
)
_LOOKED_AT = (
    Origin.TOOL,
    Origin.DOCUMENT,
    Origin.VISITOR,
    Origin.RECORDS,
    Origin.STAFF,
    Origin.AUTHOR,
    Origin.MEMORY,
)


@dataclass(frozen=True)
class Traced:
    """The origin of one value: the message, call or document (`ref`), its name for people, and its time."""

    origin: Origin
    ref: str = ""
    label: str = ""
    at: str = ""

    @property
    def is_vouched(self) -> bool:
        return self.origin in VOUCHED


MADE_UP = Traced(Origin.MODEL)


@dataclass(frozen=True)
class Source:
    """Something that a model was shown.

    `given` is what a tool was called with: a value that was passed to a tool does not come from it. `is_private`: it
    was read in an account of the company's, by any author.
    """

    traced: Traced
    text: str
    given: str = ""
    is_private: bool = False

    def holds(self, value: object) -> bool:
        return contains_value(value, self.text) and not (self.given and contains_value(value, self.given))


@dataclass(frozen=True)
class Sources:
    """Everything a model was shown before it wrote a value.

    `carried` are values with an origin of their own, from an earlier plan that this one continues.
    """

    sources: tuple[Source, ...] = ()
    carried: tuple[tuple[object, Traced], ...] = ()

    def trace(self, value: object) -> Traced:
        """The origin of a value; of a list or an object, of its least trusted part."""
        if isinstance(value, Mapping | list | tuple):
            parts = value.values() if isinstance(value, Mapping) else value
            return least_trusted(self.trace(part) for part in parts)
        return self._trace_one(value)

    @cached_property
    def read(self) -> tuple[str, ...]:
        """Names of the outside answers that the model had read."""
        return tuple(
            dict.fromkeys(source.traced.label for source in self.sources if source.traced.origin is Origin.TOOL)
        )

    def joined(self, *sources: Source) -> Sources:
        return replace(self, sources=(*self.sources, *sources))

    def _trace_one(self, value: object) -> Traced:
        # "true" stands in many texts and says nothing about where a decision came from.
        if value is None or isinstance(value, bool):
            return MADE_UP
        holding = [source.traced for source in self.sources if source.holds(value)]
        holding += [traced for known, traced in self.carried if type(known) is type(value) and known == value]
        traced_to = [traced for traced in holding if traced.origin is not Origin.MODEL]
        return min(traced_to, key=lambda source: _LOOKED_AT.index(source.origin)) if traced_to else MADE_UP


NOTHING_READ = Sources()


def least_trusted(origins: Iterable[Traced]) -> Traced:
    """The least trusted origin; with none given, made up by the model."""
    return min(origins, key=lambda traced: _BY_TRUST.index(traced.origin), default=MADE_UP)


def clean_label(label: str) -> str:
    """Clean a name from outside: one line of visible characters that fits beside a value."""
    visible = "".join(character for character in unicodedata.normalize("NFC", label) if character.isprintable())
    return " ".join(visible.split())[:MAX_LABEL_LENGTH]


def contains_value(value: object, text: str) -> bool:
    """Whether the text contains exactly this value, not as part of a longer word or number.

    A number matches in any usual notation, text in any case and spacing, a code (an account, a telephone number) with
    or without its separators.
    """
    # A source that is too long to search counts as not holding the value, which is then the model's own.
    if not text or len(text) > _MOST_TEXT:
        return False
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        return _contains_number(Decimal(str(value)), text)
    plain = _plain(str(value))
    if not plain:
        return False
    pattern = rf"(?<!\w)(?<!\d[.,]){re.escape(plain)}(?!\w)(?![.,]\d)"
    if re.search(pattern, _plain(text)):
        return True
    return _is_code(str(value)) and _contains_code(str(value), text)


def _plain(text: str) -> str:
    return _SPACES.sub(" ", unicodedata.normalize("NFKC", text).casefold()).strip()


def _is_code(value: str) -> bool:
    return (
        len(value) <= _MOST_CODE
        and bool(_CODE.fullmatch(value))
        and sum(character.isdigit() for character in value) >= 6
    )


def _contains_code(value: str, text: str) -> bool:
    characters = [re.escape(character) for character in _CODE_NOISE.sub("", value).casefold()]
    pattern = r"(?<!\w)(?<!\d[ .\-])" + r"[ ().\-]*".join(characters) + r"(?!\w)(?![ .\-]\d)"
    return bool(re.search(pattern, unicodedata.normalize("NFKC", text).casefold()))


def _contains_number(value: Decimal, text: str) -> bool:
    return any(value in parse_number(number[0]) for number in _NUMBER.finditer(unicodedata.normalize("NFKC", text)))


def parse_number(written: str) -> Iterator[Decimal]:
    """Every reading of a written number: `1,200.50`, `1.200,50`, `1'200`."""
    # Cut first: a number of a thousand digits would cost more than it could ever match.
    bare = re.sub(r"['\u00a0\u202f ]", "", written[:_MOST_DIGITS])
    forms = {bare.replace(",", ""), bare.replace(".", "").replace(",", ".")}
    if not _GROUPED.fullmatch(written):
        forms.add(bare.replace(",", "."))
    for form in forms:
        try:
            yield Decimal(form)
        except InvalidOperation:
            continue


def leaves(value: object) -> Iterator[Any]:
    """Every scalar value inside."""
    if isinstance(value, Mapping):
        for part in value.values():
            yield from leaves(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from leaves(part)
    else:
        yield value


def as_text(value: object) -> str:
    """A tool's answer as searchable text: each scalar value on a line of its own."""
    return "\n".join(str(leaf) for leaf in leaves(value) if leaf is not None)
