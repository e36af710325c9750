"""Replace personal data by placeholders before a provider's model reads it, and put it back into its answer. Pure.

Names, contact details, account and national numbers, secrets, and order numbers or other references are replaced,
unless the company sends texts as they are (spec 000). A value has one placeholder during a run, wherever it stands.
What others wrote in the form of a placeholder is replaced as well, so that only our own placeholders are put back.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from apps.gates.detectors.catalogue import detect
from llm.failures import ShapeBroken

T = TypeVar("T", bound=BaseModel)
_PLACEHOLDER = re.compile(r"\[[A-Z_]+_\d+\]")
# Letters and at least three digits, or four digits alone; no year, date or amount of money.
_REFERENCE = re.compile(
    r"(?<![\w.,$€£/-])(?!(?:19|20)\d\d(?:-\d\d){0,2}(?![\w/-]*\d)|\d{4}-\d\d-\d\d)"
    r"(?:\#\d{3,20}|[A-Za-z]{1,8}[-/]?(?=[\w/-]{0,20}\d{3})\d[\w/-]{2,30}|\d{4,20}(?:[-/]\d{1,20}){0,4})"
    r"(?!\w|[.,]\d|\s?(?:[€$£%]|EUR\b|USD\b|GBP\b))"
)
# Fields of a tool's answer whose value is about a person, in any form.
_FIELD = re.compile(
    r'"(?:[a-z_]{0,20}name|customer|contact|recipient|address|street|city)":\s?"([^"\\]{2,120})"', re.IGNORECASE
)
# A run of letters and digits, or any one other character.
_TOKEN = re.compile(r"[^\W_]+|[\W_]")


class Anonymiser:
    """The placeholders of one run."""

    def __init__(self) -> None:
        self._placeholders: dict[str, str] = {}
        self._values: dict[str, str] = {}
        self._read: set[str] = set()
        self._counts: Counter[str] = Counter()
        # By its first token, how long a value may be: the work grows with the text, not with the number of values.
        self._lengths: dict[str, set[int]] = {}

    @property
    def counts(self) -> dict[str, int]:
        """How many different values were replaced, by kind."""
        return dict(sorted(self._counts.items()))

    def read(self, *texts: str) -> None:
        """Look for personal data in these texts. A name found in one is replaced in all, the earlier ones included."""
        for text in texts:
            if text not in self._read:
                self._read.add(text)
                for value, kind in _find_values(text):
                    self._learn(value, kind)

    def hide(self, text: str) -> str:
        """The text without what was found so far: whole words only, and of two values the longer one."""
        parts, end = [], 0
        for token in _TOKEN.finditer(text):
            start = token.start()
            if start < end or not (lengths := self._lengths.get(token[0])):
                continue
            for length in sorted(lengths, reverse=True):
                value = text[start : start + length]
                if value in self._placeholders and _is_whole(text, start, start + len(value)):
                    parts += [text[end:start], self._placeholders[value]]
                    end = start + len(value)
                    break
        return "".join([*parts, text[end:]])

    def hide_in(self, value: object) -> Any:
        """Plain data, such as the arguments of a call, without personal data."""
        _map_texts(value, self.read)
        return _map_texts(value, self.hide)

    def restore(self, value: object) -> object:
        """Plain data with the values in the places of our placeholders; others stay as they are."""
        return _map_texts(
            value, lambda text: _PLACEHOLDER.sub(lambda match: self._values.get(match[0], match[0]), text)
        )

    def restore_answer(self, answer: T) -> T:
        """A model's answer with the values put back. Raises `ShapeBroken` if it no longer fits its shape."""
        try:
            return type(answer).model_validate(self.restore(answer.model_dump()))
        except ValidationError:
            raise ShapeBroken("restored") from None

    def _learn(self, value: str, kind: str) -> None:
        if not value or value in self._placeholders:
            return
        self._counts[kind] += 1
        placeholder = f"[{kind}_{self._counts[kind]}]"
        self._placeholders[value], self._values[placeholder] = placeholder, value
        self._lengths.setdefault(_TOKEN.findall(value)[0], set()).add(len(value))


def _find_values(text: str) -> Iterator[tuple[str, str]]:
    for span in (*detect("pii", text, {}).spans, *detect("secrets", text, {}).spans):
        yield text[span.start : span.end].strip(), span.kind
    for match in _PLACEHOLDER.finditer(text):
        yield match[0], "TEXT"
    for match in _FIELD.finditer(text):
        yield match[1].strip(), "PERSON"
    for match in _REFERENCE.finditer(text):
        yield match[0], "REFERENCE"


def _is_whole(text: str, start: int, end: int) -> bool:
    """Whether no word goes on over either end of what stands here."""
    before, after = text[start - 1 : start], text[end : end + 1]
    return not (text[start].isalnum() and _is_of_word(before)) and not (text[end - 1].isalnum() and _is_of_word(after))


def _is_of_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def _map_texts(value: object, change: Callable[[str], object]) -> object:
    match value:
        case str():
            return change(value)
        case dict():
            return {key: _map_texts(part, change) for key, part in value.items()}
        case list() | tuple():
            return [_map_texts(part, change) for part in value]
    return value
