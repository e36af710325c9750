"""A migration locks no table in use, and takes nothing away, unless it says why (docs/operations.md, Upgrades).

A migration declares its reason as `lock_reason = "..."`; one that takes away what the version before uses is named
`NNNN_what_contract`. The first migrations of an app make empty tables.
"""

from __future__ import annotations

from django.apps import apps
from django.db.migrations.loader import MigrationLoader

from silas_platform.migration_locks import locks_of


def test_migrations_lock_nothing_without_a_reason() -> None:
    loader = MigrationLoader(None)
    ours = {config.label for config in apps.get_app_configs() if config.name.startswith(("apps.", "silas_platform"))}
    faults = []
    for key, migration in loader.disk_migrations.items():
        if key[0] in ours and not migration.initial:
            before = loader.graph.make_state(nodes=[key], at_end=False)
            faults += [lock for lock in locks_of([migration], before) if not lock.reason]
    assert faults == []
