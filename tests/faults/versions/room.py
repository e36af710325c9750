"""What the versions share: their tables, and how a version adds a column to them."""

from __future__ import annotations

from typing import Any

from django.db import migrations, models, transaction

TABLES = ("silas_sessions_turn", "work_attempt")
_BATCH = 50


def keep(column: str, version: str) -> None:
    """Write `version` into this column of each new row."""
    from apps.sessions.models import Turn
    from apps.work.models import Attempt

    for model in (Turn, Attempt):
        model.add_to_class(column, models.TextField(null=True, default=version))


def alter(change: str) -> migrations.RunSQL:
    return migrations.RunSQL([f"ALTER TABLE {table} {change}" for table in TABLES], migrations.RunSQL.noop)


def backfill() -> migrations.RunPython:
    """Fill the new column from the old one, in transactions of a few rows each."""
    return migrations.RunPython(_backfill, migrations.RunPython.noop)


def _backfill(apps: Any, editor: Any) -> None:
    for table in TABLES:
        while _filled(editor.connection, table):
            pass


def _filled(connection: Any, table: str) -> int:
    with transaction.atomic(connection.alias), connection.cursor() as cursor:
        cursor.execute("SELECT set_config('silas.platform', 'on', true)")
        cursor.execute(
            f"UPDATE {table} SET written_by = writer WHERE id IN"
            f" (SELECT id FROM {table} WHERE written_by IS NULL AND writer IS NOT NULL LIMIT {_BATCH})"
        )
        return int(cursor.rowcount)
