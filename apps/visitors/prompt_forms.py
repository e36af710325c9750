"""Validate forms that are put to a visitor, and the answers. Pure: shapes and checks, no rows and no clock.

What a visitor types is text and stays text. A failed check returns a short code per field; the widget has the texts.
Answers are claims and prove no identity.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Annotated

from pydantic import Field, TypeAdapter, model_validator

from apps.approvals.schemas import FrozenModel
from apps.tenants.addresses import is_email
from apps.visitors.enums import FieldKind
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.unicode_safety import has_hidden_characters

MOST_FIELDS, MOST_CHOICES, LONGEST = 8, 8, 400
_LONGEST_OF = {FieldKind.EMAIL: 254, FieldKind.NUMBER: 24, FieldKind.DATE: 10}
_NUMBER = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,6})?")
_YEARS = range(1900, 2201)
DAY = 86_400
Seconds = Annotated[int, Field(ge=30, le=7 * DAY)]
Choice = Annotated[str, Field(min_length=1, max_length=80)]


class FormField(FrozenModel):
    """One field; `name` is what its answer is sent under."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9_]{1,40}$")]
    label: Annotated[str, Field(min_length=1, max_length=120)]
    kind: FieldKind = FieldKind.TEXT
    required: bool = False
    choices: Annotated[tuple[Choice, ...], Field(max_length=MOST_CHOICES)] = ()

    @model_validator(mode="after")
    def _has_something_to_choose(self) -> FormField:
        if (self.kind == FieldKind.CHOICE) != (len(set(self.choices)) == len(self.choices) >= 2):
            raise ValueError("a choice has two different answers at least, and nothing else has any")
        return self


class FormWanted(FrozenModel):
    """A few things at once that the visitor is to fill in."""

    question: Annotated[str, Field(min_length=1, max_length=500)]
    rationale: Annotated[str, Field(max_length=500)] = ""
    fields: Annotated[tuple[FormField, ...], Field(min_length=1, max_length=MOST_FIELDS)]
    seconds: Seconds = DAY

    @model_validator(mode="after")
    def _readable(self) -> FormWanted:
        labels = [field.label for field in self.fields]
        if len({field.name for field in self.fields}) != len(labels) or len(set(labels)) != len(labels):
            raise ValueError("two fields are called the same")
        choices = [choice for field in self.fields for choice in field.choices]
        if has_hidden_characters([self.question, self.rationale, *labels, *choices]):
            raise ValueError("a text looks different from what it is")
        return self


_FIELDS = TypeAdapter(tuple[FormField, ...])


def fields_of(payload: Mapping[str, object]) -> tuple[FormField, ...]:
    """Of a form as its card keeps it."""
    return _FIELDS.validate_python(payload.get("fields", ()))


def checked(fields: Sequence[FormField], given: Mapping[str, str]) -> dict[str, str]:
    """What was answered, by name; fields that stay empty are left out. Raises `SilasError` 400 `invalid_answers` with
    the problem of each field, also where nothing at all is answered."""
    values = {field.name: " ".join(given.get(field.name, "").split()) for field in fields}
    problems = {field.name: said for field in fields if (said := _problem(field, values[field.name]))}
    if not any(values.values()):
        problems.setdefault(fields[0].name, "required")
    if problems or not set(given) <= set(values):
        raise SilasError(ErrorCode.INVALID_ANSWERS, extra={"fields": problems})
    return {name: value for name, value in values.items() if value}


def told(fields: Sequence[FormField], values: Mapping[str, str]) -> list[tuple[str, str]]:
    """Label and answer of each field that was filled in, in the order of the form."""
    return [(field.label, values[field.name]) for field in fields if values.get(field.name)]


def as_words(fields: Sequence[FormField], values: Mapping[str, str]) -> str:
    """The answers as the visitor could have written them."""
    return "\n".join(f"{label}: {value}" for label, value in told(fields, values))


def _problem(field: FormField, value: str) -> str:
    if not value:
        return "required" if field.required else ""
    if len(value) > _LONGEST_OF.get(field.kind, LONGEST):
        return "too_long"
    if has_hidden_characters(value) or "\0" in value:
        return "not_shown"
    return "" if _fits(field, value) else str(field.kind)


def _fits(field: FormField, value: str) -> bool:
    match field.kind:
        case FieldKind.TEXT:
            return True
        case FieldKind.EMAIL:
            return is_email(value)
        case FieldKind.NUMBER:
            return _NUMBER.fullmatch(value) is not None
        case FieldKind.CHOICE:
            return value in field.choices
        case FieldKind.DATE:
            return _is_day(value)


def _is_day(value: str) -> bool:
    try:
        return len(value) == 10 and date.fromisoformat(value).year in _YEARS
    except ValueError:
        return False
