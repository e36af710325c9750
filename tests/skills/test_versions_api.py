"""REST API of skills: bundled ones are installed, and two versions are compared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.factories.api import Api
from tests.factories.skills import install, make_folder


def call(tenant: Any, method: str, path: str, body: Any = None) -> Any:
    return Api(tenant).send(method, f"/api/v1/{path}", body)


def test_bundled_skill_is_installed_once(tenant: Any) -> None:
    offered = call(tenant, "get", "bundled-skills").json()["names"]
    assert call(tenant, "post", "bundled-skills", {"name": offered[0]}).json()["came_from"] == "bundled"
    assert offered[0] not in call(tenant, "get", "bundled-skills").json()["names"]
    assert call(tenant, "post", "bundled-skills", {"name": "../../etc"}).status_code == 404
    assert call(tenant, "post", "bundled-skills", {}).status_code == 400


def test_versions_are_compared_by_file(tenant: Any, other_tenant: Any, tmp_path: Path) -> None:
    install(tenant, make_folder(tmp_path / "a"))
    install(tenant, make_folder(tmp_path / "b", files={"notes.md": "One line\n"}))
    changes = call(tenant, "get", "skills/test-desk/diff?before=1&after=2").json()["changes"]
    assert [(change["path"], change["kind"]) for change in changes if change["path"] == "notes.md"] == [
        ("notes.md", "new")
    ]
    assert call(other_tenant, "get", "skills/test-desk/diff?before=1&after=2").status_code == 404


@pytest.mark.parametrize(("query", "status"), [("before=1", 400), ("before=1&after=9", 404), ("before=x&after=1", 400)])
def test_comparison_with_no_version_is_refused(tenant: Any, tmp_path: Path, query: str, status: int) -> None:
    install(tenant, make_folder(tmp_path))
    assert call(tenant, "get", f"skills/test-desk/diff?{query}").status_code == status
