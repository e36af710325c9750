"""Upgrades of installations from before the migrations of each app were squashed."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connections
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from silas_platform.checks import migrations_are_complete
from silas_platform.schema_version import newest_of

Key = tuple[str, str]


def _squashed() -> dict[Key, Any]:
    disk = MigrationLoader(None).disk_migrations
    return {key: migration for key, migration in disk.items() if migration.replaces}


def _applied(*, without: frozenset[Key] = frozenset()) -> dict[Key, None]:
    """As the database of such an installation tells it: others' migrations, and ours under their old names."""
    squashed = _squashed()
    others = [key for key in MigrationLoader(None).disk_migrations if key not in squashed]
    old = [key for migration in squashed.values() for key in migration.replaces]
    return dict.fromkeys(key for key in [*others, *old] if key not in without)


def _owed(monkeypatch: pytest.MonkeyPatch, applied: dict[Key, None]) -> list[Any]:
    monkeypatch.setattr(MigrationRecorder, "applied_migrations", lambda self: dict(applied))
    executor = MigrationExecutor(connections["owner"])
    return executor.migration_plan(executor.loader.graph.leaf_nodes())


def test_every_room_begins_with_one_migration() -> None:
    """Two have a second one: the inbox's tables that refer to conversations, which refer to its teams; and the
    ledger's partitions, which are made outside a transaction."""
    seconds = {key for key in _squashed() if not key[1].startswith("0001_")}
    assert seconds == {("inbox", "0002_conversations"), ("guard", "0002_partitions")}
    assert {name for _, name in _squashed().keys() - seconds} == {"0001_initial"}


def test_nothing_is_made_again_where_everything_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _owed(monkeypatch, _applied()) == []


def test_first_start_that_was_interrupted_goes_on_where_it_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """A migration that replaces others is recorded by their names alone until all have run."""
    everything = _owed(monkeypatch, {})
    assert len(everything) > len(_squashed())
    for place, (migration, _) in enumerate(everything):
        done = [each for each, _ in everything[:place]]
        names = [key for each in done for key in each.replaces or [(each.app_label, each.name)]]
        assert _owed(monkeypatch, dict.fromkeys(names)) == everything[place:], f"interrupted before {migration}"


@pytest.mark.parametrize("keep", [1, -1], ids=["only the first ran", "only the last is missing"])
def test_one_that_is_further_behind_is_sent_back(monkeypatch: pytest.MonkeyPatch, keep: int) -> None:
    """Django alone would leave the room out and say that everything stands."""
    guard = _squashed()["guard", "0001_initial"]
    applied = _applied(without=frozenset(guard.replaces[keep:]))
    assert _owed(monkeypatch, applied) == []
    (found,) = migrations_are_complete(databases=["owner"])
    assert found.id == "silas.E005"
    assert found.msg.startswith(f"guard.{guard.replaces[keep][1]} has not run here")


def test_a_whole_or_empty_database_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    for applied in (_applied(), {}):
        monkeypatch.setattr(MigrationRecorder, "applied_migrations", lambda self, told=applied: dict(told))
        assert migrations_are_complete(databases=["owner"]) == []


def test_newest_migration_is_none_that_was_replaced() -> None:
    """A database records both, and the replaced one may have the greater number."""
    recorded = [("guard", "0010_partitions"), ("guard", "0002_partitions"), ("guard", "0001_initial")]
    assert newest_of(recorded) == {"guard": "0002_partitions"}
    assert newest_of([*recorded, ("guard", "9999_tomorrow")]) == {"guard": "9999_tomorrow"}
