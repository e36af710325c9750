"""A database of its own for migrations: empty, on the tests' server, with the roles of an installation."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
from django.db import connections, transaction
from django.db.migrations.executor import MigrationExecutor
from psycopg import sql

from silas_platform.settings.databases import database as as_settings
from silas_platform.up.embedded import ROLES_SQL


@contextmanager
def empty_database(name: str, *, superuser_dsn: str, unblock: Any) -> Iterator[str]:
    """Its alias, which is its name; `unblock` is pytest-django's, for fixtures of a whole module."""
    with psycopg.connect(superuser_dsn, autocommit=True) as server:
        server.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    with psycopg.connect(_named(superuser_dsn, name)) as scratch:
        scratch.execute(ROLES_SQL.read_bytes())
    settings = as_settings(_named(os.environ["DATABASE_OWNER_URL"], name), CONN_MAX_AGE=0)
    connections.settings[name] = {**connections.settings["owner"], **settings}
    with unblock():
        yield name
        connections[name].close()
    del connections.settings[name]
    with psycopg.connect(superuser_dsn, autocommit=True) as server:
        server.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def migrate(alias: str, target: tuple[str, str]) -> Any:
    """The apps as they are at `target`."""
    return MigrationExecutor(connections[alias]).migrate([target]).apps


@contextmanager
def looking(alias: str) -> Iterator[Any]:
    """A transaction of the tables' owner that sees every tenant."""
    with transaction.atomic(using=alias), connections[alias].cursor() as cursor:
        cursor.execute("SELECT set_config('silas.platform', 'on', true)")
        yield cursor


def _named(dsn: str, name: str) -> str:
    """The same server and role, another database."""
    return urlunsplit(urlsplit(dsn)._replace(path=f"/{name}"))
