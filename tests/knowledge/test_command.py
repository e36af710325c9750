"""`manage.py ingest`: what it prints and how it ends."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command


def run(tenant: Any, *paths: Path, slug: str = "") -> tuple[int, str, str]:
    """Exit code, standard output, standard error."""
    out, err = io.StringIO(), io.StringIO()
    arguments = {"tenant": slug or tenant.slug, "collection": "help", "root": paths[0].parent}
    try:
        call_command("ingest", *map(str, paths), stdout=out, stderr=err, **arguments)
    except SystemExit as ended:
        return int(ended.code or 0), out.getvalue(), err.getvalue()
    return 0, out.getvalue(), err.getvalue()


def test_ingest_command_twice_says_what_changed(tenant: Any, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("Words.")
    assert [run(tenant, tmp_path)[1] for _ in range(2)] == [
        "documents added=1 updated=0 reindexed=0 unchanged=0 problems=0 skipped=0\n",
        "documents added=0 updated=0 reindexed=0 unchanged=1 problems=0 skipped=0\n",
    ]


def test_ingest_command_with_a_bad_file_names_it_and_exits_1(tenant: Any, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("Words.")
    (tmp_path / "b.pdf").write_bytes(b"broken")
    code, out, err = run(tenant, tmp_path)
    assert code == 1
    assert "added=1" in out
    assert f"{tmp_path / 'b.pdf'}: broken_pdf:" in err


def test_ingest_command_with_a_missing_path_exits_1(tenant: Any, tmp_path: Path) -> None:
    assert run(tenant, tmp_path / "gone.md")[0] == 1


def test_ingest_command_for_an_unknown_tenant_is_refused(tenant: Any, tmp_path: Path) -> None:
    with pytest.raises(CommandError) as refusal:
        run(tenant, tmp_path, slug="nobody")
    assert refusal.value.returncode == 2


def test_ingest_command_shows_progress_on_a_terminal(tenant: Any, tmp_path: Path) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    (tmp_path / "a.md").write_text("Words.")
    screen = Terminal()
    call_command("ingest", str(tmp_path), tenant=tenant.slug, collection="help", stdout=io.StringIO(), stderr=screen)
    assert "1/1" in screen.getvalue()
