"""SELECT statements that can be sent together.

A function that returns a `Read` names its statement and how the rows become a value. `read(…).value` runs it alone;
`read_together` runs several in one round trip, each with a snapshot of its own, like statements one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from django.db import connection
from django.db.models import QuerySet
from django.utils.functional import cached_property

from kernel.tenancy.scope import pipeline

T = TypeVar("T")
Rows = list[tuple[Any, ...]]


class Read(Generic[T]):
    """One SELECT, inside a scope. `parse` is called when `value` is first read.

    `value` is Django's cached property. That of functools holds a lock of the whole class in Python 3.11: a statement
    that waits for a row would stop those of all other threads.
    """

    def __init__(self, sql: str, values: Sequence[Any], parse: Callable[[Rows], T]) -> None:
        self.sql, self.values, self._parse = sql, values, parse
        self.rows: Rows | None = None

    @cached_property
    def value(self) -> T:
        if self.rows is None:
            read_together(self)
        return self._parse(self.rows or [])


def read_rows(queryset: QuerySet[Any]) -> Read[Rows]:
    """Read the rows of a `values_list` of plain columns."""
    return Read(*queryset.query.sql_with_params(), list)


def read_together(*reads: Read[Any]) -> None:
    """Run these statements in one round trip, in this order."""
    cursors = [connection.cursor() for _ in reads]
    with pipeline():
        for cursor, read in zip(cursors, reads, strict=True):
            cursor.execute(read.sql, read.values)
    for cursor, read in zip(cursors, reads, strict=True):
        read.rows = cursor.fetchall()
        cursor.close()
