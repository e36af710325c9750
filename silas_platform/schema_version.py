"""Keep code and database schema in step: expand, migrate, contract.

Code of version n and n+1 runs side by side on the schema of n+1 as long as its migrations only add. A migration that
takes away what version n still uses is named `NNNN_what_contract`, and ships a version later. A process whose code does
not know a contracting migration that has run refuses to start: it is older than the schema allows. A web process that
runs is not ready any more, and a worker ends.
"""

from __future__ import annotations

import functools
import pkgutil
from collections.abc import Iterable
from importlib import import_module

import psycopg
from django.apps import apps
from django.db.migrations.loader import MigrationLoader
from django.utils.module_loading import module_has_submodule

CONTRACT = "_contract"
CONNECT_SECONDS, ANSWER_SECONDS = 2, 1
Key = tuple[str, str]


def unknown_contracts(applied: Iterable[Key]) -> list[Key]:
    """Contracting migrations that ran in the database and that this code does not have, nor replaced by a squashed
    one. Those of rooms that this code does not have count too."""
    contracting = {(label, name) for label, name in applied if name.endswith(CONTRACT)}
    unknown = contracting - _known()
    if unknown:
        for migration in MigrationLoader(None).disk_migrations.values():
            unknown -= set(migration.replaces)
    return sorted(unknown)


def newest_of(applied: Iterable[Key]) -> dict[str, str]:
    """The newest migration of each app, leaving out those that a migration of this code replaces: a database records
    both."""
    replaced = {key for migration in MigrationLoader(None).disk_migrations.values() for key in migration.replaces}
    # Of one app's names, which are sorted by number, a dict keeps the last.
    return dict(sorted(set(applied) - replaced))


def fault_of(applied: Iterable[Key]) -> str:
    """One sentence on why this code must not run on this schema; "" if it may."""
    unknown = unknown_contracts(applied)
    if not unknown:
        return ""
    label, name = unknown[-1]
    return (
        f"E_DB_NEWER: the database was migrated by a newer version ({label}.{name}), on which this version must not "
        "run; start the newer version, or restore the backup from before the upgrade"
    )


def fault_at(address: str) -> str:
    """`fault_of` what ran in the database at this address, over a connection of its own: a worker that forks keeps
    none. Raises `psycopg.Error`, also when there is no answer within seconds."""
    # The first timeout bounds connecting alone; the second a server that vanishes afterwards.
    with psycopg.connect(
        address, connect_timeout=CONNECT_SECONDS, tcp_user_timeout=1000 * ANSWER_SECONDS
    ) as connection:
        connection.execute(f"SET LOCAL statement_timeout = '{ANSWER_SECONDS}s'")
        rows = connection.execute("SELECT app, name FROM django_migrations").fetchall()
    return fault_of((str(label), str(name)) for label, name in rows)


@functools.cache
def _known() -> set[Key]:
    """Migrations on disk, by the names of their files: nothing is imported. They are read once, because workers and
    `/health/ready` need them every few seconds."""
    known = set()
    for config in apps.get_app_configs():
        if module_has_submodule(config.module, "migrations"):
            folder = import_module(f"{config.name}.migrations").__path__
            known |= {(config.label, module.name) for module in pkgutil.iter_modules(folder)}
    return known
