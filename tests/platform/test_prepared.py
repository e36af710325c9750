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


def test_changed_byte_of_what_makes_it_asks_for_another_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A migration, what it imports and what that imports, and what ships; a page's code makes no schema."""
    app = tmp_path / "apps" / "rooms"
    (app / "migrations").mkdir(parents=True)
    (tmp_path / "apps" / "skills").mkdir()
    (tmp_path / "requirements").mkdir()
    texts = {
        app / "migrations" / "0001_initial.py": "from apps.rooms import walls_sql",
        app / "walls_sql.py": "from .plaster import COLOUR",
        app / "plaster.py": "COLOUR = 1",
        app / "models.py": "",
        app / "views.py": "",
        tmp_path / "apps" / "skills" / "bundled.json": "{}",
        tmp_path / "requirements" / "base.txt": "",
    }
    for path, text in texts.items():
        path.write_text(text)
    monkeypatch.setattr(prepared, "ROOT", tmp_path)
    before = prepared.name_of_code()
    changed = set()
    for path, text in texts.items():
        path.write_text(f"{text}\n")
        changed |= {path.name} if prepared.name_of_code() != before else set()
        path.write_text(text)
    assert changed == {"0001_initial.py", "walls_sql.py", "plaster.py", "bundled.json", "base.txt"}


def test_place_that_is_a_link_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Anybody may write beside temporary files, and what is copied from there is trusted."""
    monkeypatch.setattr(prepared.tempfile, "tempdir", str(tmp_path))
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / f"{prepared.PREFIX}{os.getuid()}-{prepared.name_of_code()}").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RuntimeError, match="belongs to somebody else"):
        prepared.lay(tmp_path / "var")
