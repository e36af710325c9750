"""The copied database that every test stands on is the one that this code's migrations make."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from django.db import connections
from django.db.migrations.executor import MigrationExecutor

from tests import prepared


def test_copy_has_had_every_migration(database: None) -> None:
    executor = MigrationExecutor(connections["owner"])
    assert executor.migration_plan(executor.loader.graph.leaf_nodes()) == []


def test_changed_byte_asks_for_another_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "apps").mkdir()
    monkeypatch.setattr(prepared, "ROOT", tmp_path)
    names = set()
    for text in ("one", "other"):
        (tmp_path / "apps" / "models.py").write_text(text)
        names.add(prepared.name_of_code())
    assert len(names) == 2


def test_place_that_is_a_link_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Anybody may write beside temporary files, and what is copied from there is trusted."""
    monkeypatch.setattr(prepared.tempfile, "tempdir", str(tmp_path))
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / f"{prepared.PREFIX}{os.getuid()}-{prepared.name_of_code()}").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RuntimeError, match="belongs to somebody else"):
        prepared.lay(tmp_path / "var")
