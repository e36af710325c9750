"""`manage.py ingest`: what it prints and how it ends."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from apps.knowledge.models import Collection, DocumentVersion
from kernel.tenancy import tenant_scope


def run(tenant: Any, *paths: Path, slug: str = "", dry_run: bool = False) -> tuple[int, str, str]:
    """Exit code, standard output, standard error."""
    out, err = io.StringIO(), io.StringIO()
    arguments = {"tenant": slug or tenant.slug, "collection": "help", "root": paths[0].parent, "dry_run": dry_run}
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


def test_dry_run_into_a_new_collection_stores_nothing(tenant: Any, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("Words.")
    code, out, _ = run(tenant, tmp_path, dry_run=True)
    assert code == 0
    assert f"added {tmp_path.name}/a.md\n" in out
    with tenant_scope(tenant):
        assert not Collection.objects.filter(name="help").exists()


def test_dry_run_lists_what_would_change_and_the_ingest_then_does_it(tenant: Any, tmp_path: Path) -> None:
    for name in ("a.md", "b.md"):
        (tmp_path / name).write_text("Words.")
    run(tenant, tmp_path)
    (tmp_path / "b.md").write_text("Other words.")
    (tmp_path / "c.md").write_text("New words.")
    planned = run(tenant, tmp_path, dry_run=True)[1].splitlines()
    with tenant_scope(tenant):
        assert DocumentVersion.objects.count() == 2
    assert planned[:-1] == [f"updated {tmp_path.name}/b.md", f"added {tmp_path.name}/c.md"]
    assert planned[-1] == run(tenant, tmp_path)[1].strip()


def test_dry_run_does_not_see_documents_of_another_tenant(tenant: Any, other_tenant: Any, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("Words.")
    run(other_tenant, tmp_path)
    assert "unchanged=0" in run(tenant, tmp_path, dry_run=True)[1]


def test_dry_run_with_a_bad_file_names_it_and_exits_1(tenant: Any, tmp_path: Path) -> None:
    (tmp_path / "b.pdf").write_bytes(b"broken")
    code, _, err = run(tenant, tmp_path, dry_run=True)
    assert code == 1
    assert "broken_pdf:" in err
