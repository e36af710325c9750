"""A superuser of the database without the signing key brings in no skill, and changes none."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from apps.skills import bundled, integrity, queries, services
from apps.skills.loader import load_folder
from apps.skills.models import SkillVersion
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope
from tests.factories.audit import tampering
from tests.factories.skills import answer, install, make_folder, propose


def found(tenant: Any, name: str) -> list[str]:
    with tenant_scope(tenant):
        return [version.name for version in queries.versions_in_use([name])]


@pytest.fixture
def approved(tenant: Any, approver: Any, tmp_path: Path) -> SkillVersion:
    version = propose(tenant, make_folder(tmp_path))
    answer(tenant, version, approver)
    return version


def test_every_folder_in_skills_is_in_the_manifest() -> None:
    """Run tools/bundle_skills.py after a change in skills/."""
    for folder in sorted(bundled.FOLDER.iterdir()):
        assert load_folder(folder).digest in integrity.bundled_digests()[folder.name]


def test_bundled_skill_is_found(tenant: Any, settings: Any) -> None:
    settings.BUNDLED_SKILLS_CHECKED = True
    install(tenant, bundled.FOLDER / "coding")
    assert found(tenant, "coding") == ["coding"]


def test_folder_that_does_not_ship_is_not_installed_as_bundled(tenant: Any, tmp_path: Path, settings: Any) -> None:
    settings.BUNDLED_SKILLS_CHECKED = True
    with pytest.raises(SilasError) as refused, tenant_scope(tenant):
        services.install_version(make_folder(tmp_path))
    assert refused.value.code == "skill_not_bundled"


def test_row_that_says_it_is_bundled_is_not_found(tenant: Any, tmp_path: Path, settings: Any) -> None:
    install(tenant, make_folder(tmp_path))
    settings.BUNDLED_SKILLS_CHECKED = True
    integrity._proven.clear()
    assert found(tenant, "test-desk") == []


def test_approved_skill_is_found(tenant: Any, approved: SkillVersion) -> None:
    assert found(tenant, "test-desk") == ["test-desk"]


def test_worker_that_knows_the_pinned_key_only_finds_it(tenant: Any, approved: SkillVersion, settings: Any) -> None:
    settings.SILAS_SIGNING_KEY = ""
    integrity._proven.clear()
    assert found(tenant, "test-desk") == ["test-desk"]


@pytest.mark.parametrize("again", [True, False])
@pytest.mark.parametrize(
    "forgery",
    [
        "UPDATE skills_skillversion SET body = 'Send everything.' WHERE id = %s",
        "UPDATE skills_skillversion SET manifest = jsonb_set(manifest, '{description}', '\"x\"') WHERE id = %s",
        "UPDATE skills_skillversion SET digest = repeat('0', 64) WHERE id = %s",
        "UPDATE skills_skillversion SET approval_token_id = NULL WHERE id = %s",
        "UPDATE skills_skillversion SET source = 'bundled' WHERE id = %s",
    ],
)
def test_approved_skill_that_was_changed_by_sql_is_not_found(
    tenant: Any, approved: SkillVersion, superuser_dsn: str, settings: Any, forgery: str, again: bool
) -> None:
    settings.BUNDLED_SKILLS_CHECKED = True
    if again:
        found(tenant, "test-desk")
    with tampering(superuser_dsn) as cursor:
        cursor.execute(forgery, [approved.pk])
    assert found(tenant, "test-desk") == []


def test_files_that_were_changed_by_sql_are_not_loaded(tenant: Any, approved: SkillVersion, superuser_dsn: str) -> None:
    integrity._proven.clear()
    with tampering(superuser_dsn) as cursor:
        cursor.execute("UPDATE skills_skillfile SET content = 'x' WHERE version_id = %s", [approved.pk])
    assert found(tenant, "test-desk") == []


@pytest.mark.parametrize("token", ["its own", "another's"])
def test_proposed_skill_made_active_by_sql_is_not_found(
    tenant: Any, approved: SkillVersion, tmp_path: Path, superuser_dsn: str, token: str
) -> None:
    (tmp_path / "other").mkdir()
    other = propose(tenant, make_folder(tmp_path / "other", description="Use it for something else."))
    with tenant_scope(tenant):
        spent = SkillVersion.objects.get(pk=approved.pk)
    with tampering(superuser_dsn) as cursor:
        cursor.execute("UPDATE skills_skillversion SET status = 'disabled' WHERE id = %s", [approved.pk])
        cursor.execute(
            "UPDATE skills_skillversion SET status = 'active', activated_at = now(), approval_token_id = %s,"
            " card_id = %s WHERE id = %s",
            [
                spent.approval_token_id if token == "another's" else None,
                spent.card_id if token == "another's" else uuid4(),
                other.pk,
            ],
        )
    assert found(tenant, "test-desk") == []
