"""Bring the database to this version, or say with `--check` what that will do: migrations, locks and notes.

Exit status of `--check`: 0 when the upgrade can run beside the version before, 1 when a migration locks a table for
more than a second or has to be read by a person, 2 when this code must not run on the database or cannot reach it.
"""

from __future__ import annotations

import re
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import OperationalError, connections
from django.db.migrations.executor import MigrationExecutor

from silas_platform import __version__
from silas_platform.installed_version import migrated_by
from silas_platform.migration_locks import ROWS_A_SECOND, Effect, Lock, locks_of
from silas_platform.schema_version import fault_of

_VERSION = re.compile(r"## (\S+)")
_LONGEST_LOCK_SECONDS = 1.0


class Command(BaseCommand):
    help = "Migrates the database and checks it; with --check only says what would happen."
    # `--check` also serves where the checks would fail until the upgrade has run.
    requires_system_checks = []  # noqa: RUF012  (Django's own shape)

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--check", action="store_true", help="change nothing; exit 1 if something needs care")
        parser.add_argument(
            "--from",
            dest="since",
            default="",
            help="show the notes since this version, not since the one that migrated the database last",
        )

    def handle(self, *, check: bool, since: str, **_: object) -> None:
        if check:
            sys.exit(self._check(since))
        call_command("check", databases=["owner"], tags=["database"])
        call_command("migrate", database="owner", interactive=False, skip_checks=True)
        call_command("check", databases=["default"])

    def _check(self, since: str) -> int:
        try:
            executor = MigrationExecutor(connections["owner"])
        except OperationalError:
            raise CommandError("The database cannot be reached, so nothing was checked.", returncode=2) from None
        applied = executor.loader.applied_migrations
        if fault := fault_of(applied):
            raise CommandError(fault, returncode=2)
        plan = [migration for migration, _ in executor.migration_plan(executor.loader.graph.leaf_nodes())]
        before = migrated_by("owner")
        self.stdout.write(f"version of the database={before or 'unknown'} of this code={__version__}")
        self.stdout.write(f"migrations pending={len(plan)}")
        for migration in plan:
            self.stdout.write(f"  {migration.app_label}.{migration.name}")
        state = executor.loader.project_state(list(applied.keys() & executor.loader.graph.nodes.keys()))
        care = 0
        for lock in locks_of(plan, state):
            line, needs_care = self._line(lock)
            care += needs_care
            self.stdout.write(line)
        for note in notes_since(settings.BASE_DIR / "CHANGELOG.md", since or before):
            self.stdout.write(note)
        self.stdout.write(
            "nothing to do" if not plan else "needs care" if care else "can run beside the version before"
        )
        return 1 if care else 0

    def _line(self, lock: Lock) -> tuple[str, bool]:
        rows = _rows(lock.table) if lock.table else 0
        seconds = rows / ROWS_A_SECOND
        about = f" table={lock.table} rows={rows} seconds={seconds:.1f}" if lock.table else ""
        reason = f" ({lock.reason})" if lock.reason else ""
        line = f"{lock.effect.name.lower()} {lock.migration}{about}: {lock.operation}, {lock.effect.value}{reason}"
        return line, seconds > _LONGEST_LOCK_SECONDS if lock.effect is Effect.LOCKS else not lock.reason


def notes_since(changelog: Path, since: str) -> Iterator[str]:
    """The lines of the changelog above the section of the version `since`; without it, the newest section's."""
    if not changelog.is_file():
        return
    sections = 0
    for line in changelog.read_text(encoding="utf-8").splitlines():
        if found := _VERSION.match(line):
            sections += 1
            if found[1] == since or (not since and sections > 1):
                return
        if sections and line:
            yield line


def _rows(table: str) -> int:
    """About how many rows the table has, by PostgreSQL's statistics."""
    with connections["owner"].cursor() as cursor:
        cursor.execute("SELECT greatest(reltuples, 0)::bigint FROM pg_class WHERE oid = to_regclass(%s)", [table])
        found = cursor.fetchone()
    return int(found[0]) if found else 0
