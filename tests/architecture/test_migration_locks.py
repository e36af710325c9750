"""A new migration locks no table in use, and takes nothing away, unless it says why (docs/operations.md, Upgrades).

A migration declares its reason as `lock_reason = "..."`; one that takes away what the version before uses is named
`NNNN_what_contract`. Those up to the numbers below are from before the rule.
"""

from __future__ import annotations

from django.apps import apps
from django.db.migrations.loader import MigrationLoader

from silas_platform.migration_locks import locks_of

BEFORE_THE_RULE = {
    "approvals": 17,
    "audit": 29,
    "autonomy": 15,
    "bus": 17,
    "connections": 4,
    "contacts": 4,
    "copilot": 1,
    "events": 1,
    "gates": 2,
    "guard": 9,
    "imports": 1,
    "inbox": 7,
    "knowledge": 4,
    "memory": 13,
    "messengers": 4,
    "persona": 1,
    "releases": 1,
    "safety": 5,
    "silas_platform": 1,
    "silas_sessions": 15,
    "simulations": 2,
    "skills": 5,
    "tenants": 12,
    "toolservers": 4,
    "work": 8,
}


def test_new_migrations_lock_nothing_without_a_reason() -> None:
    loader = MigrationLoader(None)
    ours = {config.label for config in apps.get_app_configs() if config.name.startswith(("apps.", "silas_platform"))}
    faults = []
    for key, migration in loader.disk_migrations.items():
        label, name = key
        if label not in ours or int(name[:4]) <= BEFORE_THE_RULE.get(label, 0):
            continue
        before = loader.graph.make_state(nodes=[key], at_end=False)
        faults += [lock for lock in locks_of([migration], before) if not lock.reason]
    assert faults == []
