"""Dump and restore the database with PostgreSQL's own programs, as the owner of the tables.

Row-level security binds the owner too, so the dump reads with the setting `silas.platform`, by which every policy shows
all rows; a table whose policies do not is refused before anything is written. Rows are counted in the dump's snapshot.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psycopg
from django.conf import settings
from psycopg import sql
from psycopg.conninfo import make_conninfo
from psycopg.rows import TupleRow

from silas_platform.backup.manifest import BackupRefused
from silas_platform.up.embedded import binary

_SEES_ALL = "-c silas.platform=on"
# Without partitions: their rows are those of their table.
_TABLES = """
    SELECT relname FROM pg_class
    WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition ORDER BY 1
"""
# Tables of which the owner would see no row, or only some: a dump of them would be a silent loss.
_HIDDEN = """
    SELECT relname FROM pg_class AS c
    WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND relrowsecurity
      AND NOT EXISTS (
        SELECT FROM pg_policy AS p
        WHERE p.polrelid = c.oid AND p.polcmd IN ('*', 'r') AND p.polpermissive
          AND pg_get_expr(p.polqual, p.polrelid) LIKE '%%silas.platform%%'
      )
    ORDER BY 1
"""
_FUNCTIONS = """
    SELECT format('DROP ROUTINE IF EXISTS %%s CASCADE', oid::regprocedure) FROM pg_proc
    WHERE pronamespace = 'public'::regnamespace AND pg_get_userbyid(proowner) = current_user
"""


@contextmanager
def connected() -> Iterator[psycopg.Connection[TupleRow]]:
    """A connection as the owner that sees the rows of all tenants."""
    with psycopg.connect(make_conninfo(**_parameters(), options=_SEES_ALL)) as connection:
        yield connection


def dump(path: Path) -> dict[str, int]:
    """Write the whole database to `path` in pg_dump's custom format; the number of rows of each table in it.

    Raises `BackupRefused`.
    """
    with connected() as connection:
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        if hidden := [name for (name,) in connection.execute(_HIDDEN)]:
            raise BackupRefused("E_BACKUP_HIDDEN_ROWS", f"The owner cannot read all rows of {', '.join(hidden)}.")
        (snapshot,) = connection.execute("SELECT pg_export_snapshot()").fetchone() or ("",)
        options = ["--format=custom", "--compress=gzip:1", "--enable-row-security", "--no-comments"]
        _run("pg_dump", [*options, f"--snapshot={snapshot}", f"--file={path}"], server=_major(connection))
        return count_rows(connection)


def restore(path: Path) -> None:
    """Load a dump into a database without tables of ours, in one transaction. Raises `BackupRefused`."""
    with connected() as connection:
        major = _major(connection)
    options = ["--single-transaction", "--exit-on-error", f"--dbname={_parameters()['dbname']}"]
    _run("pg_restore", [*options, str(path)], server=major)


def drop_all() -> None:
    """Drop the owner's tables and functions: those of an installation that was started and holds nothing yet."""
    with connected() as connection:
        for name in tables(connection):
            connection.execute(sql.SQL("DROP TABLE IF EXISTS {} CASCADE").format(sql.Identifier("public", name)))
        for (statement,) in connection.execute(_FUNCTIONS).fetchall():
            connection.execute(statement)


def tables(connection: psycopg.Connection[TupleRow]) -> list[str]:
    return [name for (name,) in connection.execute(_TABLES)]


def count_rows(connection: psycopg.Connection[TupleRow]) -> dict[str, int]:
    counts = {}
    for name in tables(connection):
        row = connection.execute(sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier("public", name))).fetchone()
        counts[name] = int(row[0]) if row else 0
    return counts


def other_sessions(connection: psycopg.Connection[TupleRow]) -> int:
    """How many connections of other roles the database has: programs of the platform that run."""
    asked = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND usename <> current_user"
    row = connection.execute(asked).fetchone()
    return int(row[0]) if row else 0


def is_empty(connection: psycopg.Connection[TupleRow]) -> bool:
    """Whether the database holds no company. One that was never migrated is empty too."""
    if "tenants_tenant" not in tables(connection):
        return True
    return connection.execute("SELECT 1 FROM tenants_tenant LIMIT 1").fetchone() is None


def server_version(connection: psycopg.Connection[TupleRow]) -> str:
    return str(connection.info.parameter_status("server_version"))


def _major(connection: psycopg.Connection[TupleRow]) -> int:
    return connection.info.server_version // 10_000


def _parameters() -> dict[str, str]:
    if "owner" not in settings.DATABASES:
        raise BackupRefused("E_BACKUP_OWNER", "Give DATABASE_OWNER_URL, the role that owns the tables.")
    row = settings.DATABASES["owner"]
    names = {"host": "HOST", "port": "PORT", "user": "USER", "password": "PASSWORD", "dbname": "NAME"}
    return {name: str(row[theirs]) for name, theirs in names.items() if row[theirs]}


def _run(program: str, arguments: Sequence[str], *, server: int) -> None:
    """Run a program of PostgreSQL; the password goes by its environment, which other accounts cannot read."""
    names = {"host": "PGHOST", "port": "PGPORT", "user": "PGUSER", "password": "PGPASSWORD", "dbname": "PGDATABASE"}
    env = {**os.environ, **{names[name]: value for name, value in _parameters().items()}, "PGOPTIONS": _SEES_ALL}
    done = subprocess.run(
        [str(_program(program, server)), "--no-password", *arguments], env=env, capture_output=True, text=True
    )
    if done.returncode != 0:
        said = (done.stderr.strip().splitlines() or ["no reason given"])[0]
        raise BackupRefused("E_BACKUP_POSTGRES", f"{program} failed: {said}")


def _program(name: str, server: int) -> Path:
    """The machine's own program where it is of the server's version, else the one that comes with the platform."""
    if found := shutil.which(name):
        said = subprocess.run([found, "--version"], capture_output=True, text=True).stdout
        version = re.search(r"\d+", said)
        if version and int(version[0]) == server:
            return Path(found)
    return binary(name)
