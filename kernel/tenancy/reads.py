"""SELECT statements that can be sent together.

A function that returns a `Read` names its statement and how the rows become a value. `read(…).value` runs it alone;
`read_together` runs several in one round trip, each with a snapshot of its own, like statements one after the other.
`built_once` turns a function that builds a queryset into such a read.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from datetime import date
from typing import Any, Generic, TypeVar
from uuid import UUID

from django.core.exceptions import EmptyResultSet
from django.db import DEFAULT_DB_ALIAS, connection
from django.db.models import Expression, Field, Model, QuerySet
from django.db.models.query import get_related_populators
from django.utils.functional import cached_property

from kernel.tenancy.scope import building_scope, current_scope, pipeline

T = TypeVar("T")
U = TypeVar("U")
M = TypeVar("M", bound=Model)
Rows = list[tuple[Any, ...]]
_TENANT = "tenant of the scope"


class Read(Generic[T]):
    """One statement and the value of its rows, inside a scope. `parse` is called when `value` is first read.

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

    def parsed(self, parse: Callable[[T], U]) -> Read[U]:
        """The same statement, with a value that is made of this one's."""
        return Read(self.sql, self.values, lambda rows: parse(self._parse(rows)))


class _Given(Expression):
    """Stands for a parameter while a queryset is built; its value is put in each time the statement runs."""

    def __init__(self, name: str) -> None:
        super().__init__(output_field=Field())
        self.name = name

    def as_sql(self, *_: Any, **__: Any) -> tuple[str, Any]:
        return "%s", [self]

    def __str__(self) -> str:
        raise TypeError(f"the statement is built once, so its text cannot hold {self.name}")


class BuiltOnce(Generic[M]):
    """A queryset whose statement Django builds once for the process (`built_once`)."""

    def __init__(self, build: Callable[..., QuerySet[M, Any]]) -> None:
        self._build = build
        self._names = tuple(inspect.signature(build).parameters)
        self._built: dict[object, _Statement] = {}

    def columns(self, *values: object) -> Read[Rows]:
        """Read the rows of a `values_list` of plain columns."""
        statement, given = self._statement(values)
        return Read(statement.sql, statement.values(given), list)

    def rows(self, *values: object) -> Read[list[M]]:
        """Read rows of the model, with those that are selected with them."""
        statement, given = self._statement(values)
        return Read(statement.sql, statement.values(given), statement.models)

    def _statement(self, values: Sequence[object]) -> tuple[_Statement, dict[str, object]]:
        tenant_id = current_scope().tenant_id
        given: dict[str, object] = {_TENANT: tenant_id}
        names: list[str | tuple[str, ...]] = []
        for name, value in zip(self._names, values, strict=True):
            items = {f"{name} {place}": item for place, item in enumerate(value)} if isinstance(value, list) else None
            given |= {name: value} if items is None else items
            names.append(name if items is None else tuple(items))
        key = (tenant_id is None, *names)
        if key not in self._built:
            parameters = [_Given(name) if isinstance(name, str) else [_Given(item) for item in name] for name in names]
            with building_scope(None if tenant_id is None else _Given(_TENANT)):
                queryset = self._build(*parameters)
            self._built[key] = _Statement(queryset)
        return self._built[key], given


class _Statement:
    """A built queryset: its text, its parameters, and how rows become models, as in Django's `ModelIterable`."""

    def __init__(self, queryset: QuerySet[Any, Any]) -> None:
        self._compiler = queryset.query.get_compiler(connection=connection)
        try:
            self.sql, self._parameters = self._compiler.as_sql()
        except EmptyResultSet:  # one of several values, of which there are none
            self.sql, self._parameters = "SELECT WHERE false", ()
        if frozen := [value for value in self._parameters if isinstance(value, UUID | date)]:
            raise TypeError(f"the statement is built once, so these have to be parameters: {frozen}")

    def values(self, given: dict[str, object]) -> list[Any]:
        return [given[value.name] if isinstance(value, _Given) else value for value in self._parameters]

    @cached_property
    def _parts(self) -> tuple[dict[str, Any], slice, list[str], Any, Any]:
        klass: dict[str, Any] = self._compiler.klass_info
        columns = slice(klass["select_fields"][0], klass["select_fields"][-1] + 1)
        select = self._compiler.select
        names = [column.target.attname for column, *_ in select[columns]]
        # Not `connection.alias`: on a replica that is another one, and such a row would be saved there.
        populators = get_related_populators(klass, select, DEFAULT_DB_ALIAS)  # type: ignore[call-arg]  # of Django 6
        converters = self._compiler.get_converters([column for column, *_ in select[: self._compiler.col_count]])
        return klass, columns, names, populators, converters

    def models(self, found: Rows) -> list[Any]:
        if not found:
            return []
        klass, columns, names, populators, converters = self._parts
        rows = []
        for values in self._compiler.apply_converters(found, converters):
            row = klass["model"].from_db(DEFAULT_DB_ALIAS, names, values[columns])
            for populator in populators:
                populator.populate(values, row)
            rows.append(row)
        return rows


def built_once(build: Callable[..., QuerySet[M, Any]]) -> BuiltOnce[M]:
    """Have Django build the statement of this function's queryset once, at its first use, and only run it from then on.

    Building costs several times what running it costs, so this is for what every turn reads. The function is called
    once inside a scope, once more for each length of a list, with placeholders: its parameters may only be compared
    with columns, and what else it names must be the same for every call (a time or an id that is not is refused).
    """
    return BuiltOnce(build)


class ModelRows(Generic[M]):
    """How rows of a statement of our own become models. It selects `columns` first, in this order; what it selects
    after them is left out."""

    def __init__(self, model: type[M], table: str) -> None:
        self._model = model
        self.columns = ", ".join(f"{table}.{field.column}" for field in model._meta.concrete_fields)

    @cached_property
    def _statement(self) -> _Statement:
        return _Statement(QuerySet(self._model))

    def models(self, found: Rows) -> list[M]:
        return self._statement.models(found)


def read_together(*reads: Read[Any]) -> None:
    """Run these statements in one round trip, in this order."""
    cursors = [connection.cursor() for _ in reads]
    with pipeline(several=len(reads) > 1):
        for cursor, read in zip(cursors, reads, strict=True):
            cursor.execute(read.sql, read.values)
    for cursor, read in zip(cursors, reads, strict=True):
        read.rows = cursor.fetchall()
        cursor.close()
