"""Say which operations of migrations lock a table that is in use, for `manage.py upgrade --check` and a test.

Every ALTER TABLE locks for a moment; what is reported holds the lock for a time that grows with the table, or takes
away what the version before still uses. Tables that the same plan creates are empty and are never reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

import sqlparse
from django.contrib.postgres import operations as postgres
from django.db import migrations
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState
from django.db.models import Field

from kernel.tenancy import migrations as tenancy
from silas_platform.schema_version import CONTRACT

# A rough rate, on a slow disk: reading a table, or building an index on it.
ROWS_A_SECOND = 500_000
# Statements that only replace what is stored beside tables.
_HARMLESS = ("CREATE OR REPLACE", "CREATE FUNCTION", "DROP FUNCTION", "GRANT", "REVOKE", "COMMENT", "SELECT SET_CONFIG")


class Effect(Enum):
    LOCKS = "locks the table while it is read"
    BREAKS = "takes away what the version before uses"
    REFUSES = "refuses the rows of the version before, which does not fill the column"
    UNKNOWN = "must be read by a person"


@dataclass(frozen=True)
class Lock:
    """One operation. `table` is "" where it is not known."""

    migration: str
    operation: str
    table: str
    effect: Effect
    reason: str = ""


def locks_of(plan: Iterable[migrations.Migration], state: ProjectState) -> list[Lock]:
    """What the migrations of this plan lock, in their order. `state` is the one before the plan; it is moved on."""
    created: set[str] = set()
    found: list[Lock] = []
    for migration in plan:
        name, reason = f"{migration.app_label}.{migration.name}", str(getattr(migration, "lock_reason", ""))
        for operation in migration.operations:
            for each, table, effect in _effects(operation, migration.app_label, state, created):
                if effect is Effect.BREAKS and migration.name.endswith(CONTRACT):
                    continue
                found.append(Lock(name, each.describe(), table, effect, reason))
            operation.state_forwards(migration.app_label, state)
    return found


def _effects(
    operation: Operation, label: str, state: ProjectState, created: set[str]
) -> Iterator[tuple[Operation, str, Effect]]:
    if isinstance(operation, migrations.SeparateDatabaseAndState):
        for inner in operation.database_operations:
            yield from _effects(inner, label, state, created)
        return
    if isinstance(operation, tenancy.Tables | migrations.CreateModel):
        models = operation.models if isinstance(operation, tenancy.Tables) else (operation,)
        created |= {str(model.options.get("db_table") or f"{label}_{model.name_lower}") for model in models}
        return
    effect = _effect(operation, label, state)
    table = _table(operation, label, state)
    if effect is not None and (not table or table not in created):
        yield operation, table, effect


def _effect(operation: object, label: str, state: ProjectState) -> Effect | None:
    match operation:
        case postgres.AddIndexConcurrently() | postgres.RemoveIndexConcurrently():
            return None
        case postgres.AddConstraintNotValid() | postgres.ValidateConstraint():
            return None
        case migrations.AddIndex() | migrations.AddConstraint():
            return Effect.LOCKS
        case migrations.AlterUniqueTogether() | migrations.AlterIndexTogether():
            return Effect.LOCKS
        case migrations.AddField():
            # An index or a foreign key is made by reading the table; a column with a constant default is not.
            field = operation.field
            if field.unique or getattr(field, "db_index", False) or _generated(field):
                return Effect.LOCKS
            return None if _may_be_left_out(field) else Effect.REFUSES
        case migrations.AlterField():
            before = state.models[label, operation.model_name_lower].fields[operation.name]
            return None if _fits(before, operation.field) else Effect.LOCKS
        case migrations.RemoveField() | migrations.DeleteModel():
            return Effect.BREAKS
        case migrations.RenameField() | migrations.RenameModel() | migrations.AlterModelTable():
            return Effect.BREAKS
        case tenancy.RowSecurity() | tenancy.PlatformOnly() | tenancy.AppendOnly() | tenancy.PartitionByMonth():
            return None
        case migrations.RunSQL():
            return None if _is_harmless(operation.sql) else Effect.UNKNOWN
        case migrations.RunPython():
            return Effect.UNKNOWN
    return None


def _generated(field: Field[Any, Any]) -> bool:
    """A column that PostgreSQL fills row by row."""
    return bool(getattr(field, "generated", False)) or (field.has_default() and callable(field.default))


def _may_be_left_out(field: Field[Any, Any]) -> bool:
    """True if a row can be inserted without it. Django's own default is not in the database."""
    return bool(field.null or field.many_to_many or field.has_db_default())


def _fits(before: Any, after: Any) -> bool:
    """True if PostgreSQL need not read the rows: the same column, or one that may hold more."""
    longer = (after.max_length or 0) >= (before.max_length or 0) if before.max_length else not after.max_length
    return longer and _shape(before) == _shape(after)


def _shape(field: Field[Any, Any]) -> tuple[object, ...]:
    """What of a field is in the database, without the longest text: type, index, target, and whether it is filled."""
    _, _, _, given = field.deconstruct()
    names = ("null", "unique", "db_index", "primary_key", "to", "db_column", "db_constraint", "max_digits")
    return (field.get_internal_type(), given.get("decimal_places"), *(str(given.get(name)) for name in names))


def _is_harmless(sql: Any) -> bool:
    texts = [sql] if isinstance(sql, str) else [each[0] if isinstance(each, tuple) else each for each in sql]
    statements = [part for text in texts for part in sqlparse.split(sqlparse.format(str(text), strip_comments=True))]
    return all(" ".join(part.split()).upper().startswith(_HARMLESS) for part in statements if part.strip(" ;\n"))


def _table(operation: object, label: str, state: ProjectState) -> str:
    name = getattr(operation, "model_name", "") or getattr(operation, "name", "")
    model = state.models.get((label, str(name).lower()))
    if model is None or isinstance(operation, migrations.RunSQL | migrations.RunPython):
        return ""
    return str(model.options.get("db_table") or f"{label}_{str(name).lower()}")
