"""How does a hand-written statement give back model rows? For the few statements on every message's way.

Django's ORM spends more time on wording a query than PostgreSQL on answering it; a chat turn makes a dozen. Where that
was measured to matter, a room writes its statement by hand and reads rows with this; everywhere else the ORM is right.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, overload

from django.db import connection, models

M = TypeVar("M", bound=models.Model)
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")


class Rows(Generic[M]):
    """`Rows(ChatSession)`: its columns for a SELECT, and rows made of the values that came back for them."""

    def __init__(self, model: type[M], alias: str = "") -> None:
        fields = model._meta.concrete_fields
        self._model = model
        self._names = [field.attname for field in fields]
        self._json = [i for i, field in enumerate(fields) if isinstance(field, models.JSONField)]
        prefix = f"{alias or model._meta.db_table}."
        self.columns = ", ".join(f'{prefix}"{field.column}"' for field in fields)
        self.width = len(fields)

    def make(self, values: Sequence[Any]) -> M:
        """One row; `values` in the order of `columns`. JSON comes as text from the driver and is read here."""
        read = list(values)
        for i in self._json:
            read[i] = None if read[i] is None else json.loads(read[i])
        return self._model.from_db("default", self._names, read)


@dataclass(frozen=True)
class Question(Generic[A]):
    """A statement that reads, and what is made of the rows that come back."""

    statement: str
    values: Sequence[Any] | Mapping[str, Any]
    read: Callable[[list[tuple[Any, ...]]], A]


@overload
def ask(one: Question[A], /) -> tuple[A]: ...
@overload
def ask(one: Question[A], two: Question[B], /) -> tuple[A, B]: ...
@overload
def ask(one: Question[A], two: Question[B], three: Question[C], /) -> tuple[A, B, C]: ...
@overload
def ask(one: Question[A], two: Question[B], three: Question[C], four: Question[D], /) -> tuple[A, B, C, D]: ...
@overload
def ask(*questions: Question[Any]) -> tuple[Any, ...]: ...
def ask(*questions: Question[Any]) -> tuple[Any, ...]:
    """Every question's answer; each sees what those before it changed or waited for."""
    return tuple(_answer(question) for question in questions)


def _answer(question: Question[Any]) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(question.statement, question.values)
        return question.read(cursor.fetchall())


def first(rows: list[tuple[Any, ...]]) -> Any:
    """The only column of the first row, or None."""
    return rows[0][0] if rows else None
