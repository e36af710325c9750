"""`manage.py upgrade --check`, what migrations lock, and the refusal of code that is older than the schema allows."""

from __future__ import annotations

import io
import os
import tomllib
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.conf import settings
from django.contrib.postgres.operations import AddIndexConcurrently
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command
from django.db import ProgrammingError, migrations, models, transaction
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations.base import Operation
from django.db.migrations.recorder import MigrationRecorder
from django.db.migrations.state import ProjectState
from django.test import Client

from silas_platform import __version__, installed_version
from silas_platform.checks import refuse_newer_schema, schema_is_not_newer
from silas_platform.installed_version import migrated_by
from silas_platform.management.commands.upgrade import notes_since
from silas_platform.migration_locks import Effect, locks_of
from silas_platform.models import InstalledVersion
from silas_platform.schema_version import fault_of, unknown_contracts

INDEX = models.Index(fields=["name"], name="by_name")
NEWER = ("audit", "9001_entries_lose_a_column_contract")


def table(name: str = "Thing") -> migrations.CreateModel:
    fields = [("id", models.AutoField(primary_key=True)), ("name", models.CharField(max_length=10))]
    return migrations.CreateModel(name, fields)


def effects(*operations: Operation, name: str = "0002_change", reason: str = "") -> list[tuple[str, Effect]]:
    state = ProjectState()
    table().state_forwards("work", state)
    migration = migrations.Migration(name, "work")
    migration.operations = list(operations)
    if reason:
        migration.lock_reason = reason
    return [(lock.table, lock.effect) for lock in locks_of([migration], state) if not lock.reason]


def longer(most: int, **fields: Any) -> migrations.AlterField:
    return migrations.AlterField("thing", "name", models.CharField(max_length=most, **fields))


@pytest.mark.parametrize(
    "operation",
    [
        migrations.AddIndex("thing", INDEX),
        migrations.AddConstraint("thing", models.UniqueConstraint(fields=["name"], name="once")),
        migrations.AddField("thing", "other", models.ForeignKey("work.thing", models.CASCADE, null=True)),
        migrations.AddField("thing", "code", models.CharField(max_length=5, unique=True, null=True)),
        migrations.AlterField("thing", "name", models.IntegerField()),
        longer(5),
        longer(10, null=True),
    ],
    ids=lambda operation: operation.describe(),
)
def test_reading_a_table_under_a_lock_is_reported(operation: Operation) -> None:
    assert effects(operation) == [("work_thing", Effect.LOCKS)]
    assert effects(operation, reason="The table has a row for each company.") == []


@pytest.mark.parametrize(
    "operation",
    [
        table("Other"),
        AddIndexConcurrently("thing", INDEX),
        migrations.AddField("thing", "note", models.TextField(blank=True, default="", db_default="")),
        migrations.AddField("thing", "seen_at", models.DateTimeField(null=True)),
        migrations.AddField("thing", "others", models.ManyToManyField("work.thing")),
        longer(20),
        longer(10, help_text="Other words"),
        migrations.RunSQL("CREATE OR REPLACE FUNCTION f() RETURNS int LANGUAGE sql AS $$ SELECT 1; SELECT 2 $$;"),
    ],
    ids=lambda operation: operation.describe(),
)
def test_what_only_adds_is_not(operation: Operation) -> None:
    assert effects(operation) == []


def test_column_that_the_version_before_does_not_fill_is_reported() -> None:
    """Django's default fills the rows that are there, and is dropped: the version before could insert no more."""
    note = migrations.AddField("thing", "note", models.TextField(blank=True, default=""))
    assert effects(note) == [("work_thing", Effect.REFUSES)]
    assert effects(note, reason="Only the migration writes this table.") == []


def test_tables_of_the_same_plan_are_empty() -> None:
    other = migrations.AddIndex("other", models.Index(fields=["name"], name="other_by_name"))
    assert effects(table("Other"), other) == []


def test_code_and_sql_are_for_a_person() -> None:
    run = migrations.RunPython(migrations.RunPython.noop)
    sql = migrations.RunSQL("UPDATE work_thing SET name = 'x'")
    assert effects(run, sql) == [("", Effect.UNKNOWN), ("", Effect.UNKNOWN)]


def test_taking_away_is_for_a_contracting_migration() -> None:
    removal = migrations.RemoveField("thing", "name")
    assert effects(removal) == [("work_thing", Effect.BREAKS)]
    assert effects(removal, name="0002_change_contract") == []


def test_newer_schema_is_refused_only_after_a_contraction() -> None:
    assert unknown_contracts([("audit", "0001_initial"), ("audit", "9000_entries_have_a_column")]) == []
    assert unknown_contracts([NEWER]) == [NEWER]
    assert fault_of([("audit", "0001_initial")]) == ""
    fault = fault_of([NEWER])
    assert fault.startswith("E_DB_NEWER")
    assert "9001_entries_lose_a_column_contract" in fault


def test_start_is_refused(monkeypatch: pytest.MonkeyPatch, database: None) -> None:
    assert schema_is_not_newer(databases=["default"]) == []
    assert schema_is_not_newer(databases=[]) == []
    monkeypatch.setattr(MigrationRecorder, "applied_migrations", lambda self: {NEWER: None})
    (found,) = schema_is_not_newer(databases=["default"])
    assert found.id == "silas.E008"
    with pytest.raises(CommandError, match="E_DB_NEWER"):
        call_command("upgrade", check=True)


def test_check_of_a_current_database(database: None) -> None:
    out = io.StringIO()
    with pytest.raises(SystemExit) as left:
        call_command("upgrade", check=True, stdout=out)
    assert left.value.code == 0
    assert out.getvalue().startswith("version of the database=0.1.0 of this code=0.1.0\nmigrations pending=0")
    assert out.getvalue().endswith("nothing to do\n")


def test_check_names_what_is_pending_and_changes_nothing(monkeypatch: pytest.MonkeyPatch, database: None) -> None:
    load, last = MigrationLoader.load_disk, MigrationLoader(None).graph.leaf_nodes("contacts")[0]
    another = migrations.Migration("9000_another", "contacts")
    another.dependencies, another.operations = [last], [table()]

    def with_another(self: MigrationLoader) -> None:
        load(self)
        self.disk_migrations["contacts", another.name] = another

    monkeypatch.setattr(MigrationLoader, "load_disk", with_another)
    out = io.StringIO()
    with pytest.raises(SystemExit) as left:
        call_command("upgrade", check=True, stdout=out)
    assert "migrations pending=1\n  contacts.9000_another\n" in out.getvalue()
    assert left.value.code == 0
    assert "can run beside the version before" in out.getvalue()


def test_version_is_that_of_the_package() -> None:
    with (settings.BASE_DIR / "pyproject.toml").open("rb") as file:
        assert tomllib.load(file)["project"]["version"] == __version__


def test_each_version_that_migrates_is_noted_once(monkeypatch: pytest.MonkeyPatch, database: None) -> None:
    assert migrated_by() == __version__
    with transaction.atomic("owner"):
        monkeypatch.setattr(installed_version, "__version__", "0.2.0")
        installed_version.record("owner")
        installed_version.record("owner")
        assert migrated_by("owner") == "0.2.0"
        assert InstalledVersion.objects.using("owner").count() == 2
        transaction.set_rollback(True, "owner")


def test_web_may_not_note_a_version(database: None) -> None:
    with pytest.raises(ProgrammingError, match="permission denied"), transaction.atomic():
        InstalledVersion.objects.create(version="9.9.9")


def test_worker_is_refused(monkeypatch: pytest.MonkeyPatch, database: None) -> None:
    refuse_newer_schema()
    with psycopg.connect(os.environ["DATABASE_OWNER_URL"], autocommit=True) as owner:
        owner.execute("INSERT INTO django_migrations (app, name, applied) VALUES (%s, %s, now())", NEWER)
        try:
            monkeypatch.setenv("DATABASE_URL", os.environ["DATABASE_WORK_URL"])
            with pytest.raises(ImproperlyConfigured, match="E_DB_NEWER"):
                refuse_newer_schema()
        finally:
            owner.execute("DELETE FROM django_migrations WHERE (app, name) = (%s, %s)", NEWER)


def test_web_is_not_ready_and_says_why(client: Client, monkeypatch: pytest.MonkeyPatch, database: None) -> None:
    assert "reason" not in client.get("/health/ready").json()
    monkeypatch.setattr(MigrationRecorder, "applied_migrations", lambda self: {NEWER: None})
    answer = client.get("/health/ready")
    assert answer.status_code == 503
    assert answer.json()["missing"] == ["database"]
    assert answer.json()["reason"].startswith("E_DB_NEWER")


def test_notes_of_the_versions_between(tmp_path: Path) -> None:
    file = tmp_path / "CHANGELOG.md"
    file.write_text("# Changelog\n\n## 0.3.0\n\n- c\n\n## 0.2.0\n\n- b\n\n## 0.1.0\n\n- a\n")
    assert list(notes_since(file, "0.1.0")) == ["## 0.3.0", "- c", "## 0.2.0", "- b"]
    assert list(notes_since(file, "")) == ["## 0.3.0", "- c"]
    assert list(notes_since(tmp_path / "none", "")) == []
