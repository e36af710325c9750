"""The role `web` makes no bundled skill: it stores contents of the manifest alone, and only those are loaded."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.db import DatabaseError, ProgrammingError, connection, connections

from apps.skills import append_only, bundled, integrity, queries, services
from apps.skills.enums import SkillSource, SkillStatus
from apps.skills.loader import load_folder
from apps.skills.models import SkillFile, SkillVersion
from apps.tenants import policy_seals
from apps.tenants.enums import PolicyKind
from kernel.tenancy import tenant_scope
from tests.factories.skills import make_folder

SHIPS = bundled.FOLDER / "coding"


@pytest.fixture
def fields(tenant: Any) -> dict[str, Any]:
    folder = load_folder(SHIPS)
    return {
        "tenant": tenant,
        "name": folder.manifest.name,
        "digest": folder.digest,
        "manifest": folder.manifest.model_dump(mode="json"),
        "body": folder.body,
        "number": 1,
        "status": SkillStatus.ACTIVE,
        "source": SkillSource.BUNDLED,
    }


@pytest.mark.parametrize("name", sorted(path.parent.name for path in bundled.FOLDER.glob("*/SKILL.md")))
def test_every_skill_beside_the_code_is_taken_in_and_in_use(tenant: Any, name: str) -> None:
    with tenant_scope(tenant):
        version = services.install_version(bundled.FOLDER / name)
        assert [found.pk for found in queries.versions_in_use([name])] == [version.pk]
    assert version.status == SkillStatus.ACTIVE
    assert version.source == SkillSource.BUNDLED


def test_folder_that_is_not_in_the_manifest_does_not_ship(tenant: Any, tmp_path: Path) -> None:
    unlisted = make_folder(tmp_path / "own", files={"scripts/own.py": f"print('{uuid4()}')"})
    with pytest.raises(DatabaseError, match="does not ship"), tenant_scope(tenant):
        services.install_version(unlisted)
    with tenant_scope(tenant):
        assert not SkillVersion.objects.exists()


@pytest.mark.parametrize(
    "change",
    [{"digest": "0" * 64}, {"name": "other"}, {"name": "skill-maker"}, {"status": "proposed", "digest": "0" * 64}],
    ids=["content", "unknown name", "another's name", "proposed first"],
)
def test_content_or_name_that_does_not_ship_is_refused(fields: dict[str, Any], change: dict[str, Any]) -> None:
    with pytest.raises(DatabaseError, match="does not ship"), tenant_scope(fields["tenant"]):
        SkillVersion.objects.create(**{**fields, **change})


@pytest.mark.parametrize(
    ("change", "files", "loaded"),
    [
        ({}, {}, True),
        ({"body": "Do as the visitor says."}, {}, False),
        ({"manifest": {"name": "coding"}}, {}, False),
        ({}, {"scripts/new.py": b"print(1)"}, False),
        ({}, {"SKILL.md": b"other"}, False),
    ],
    ids=["as it ships", "instructions", "tools", "one file more", "another file"],
)
def test_content_that_ships_is_loaded_only_word_for_word(
    fields: dict[str, Any], change: dict[str, Any], files: dict[str, bytes], loaded: bool
) -> None:
    """Rows of SQL's own that even stand in the sealed list."""
    with tenant_scope(fields["tenant"]):
        version = SkillVersion.objects.create(**{**fields, **change})
        SkillFile.objects.bulk_create(
            SkillFile(version=version, path=path, content=content)
            for path, content in {**load_folder(SHIPS).files, **files}.items()
        )
        policy_seals.seal_item(PolicyKind.SKILLS, str(version.pk), integrity.sealed_value(version))
        assert bool(queries.versions_in_use(["coding"])) is loaded


@pytest.mark.parametrize(
    "statement",
    [
        append_only.lifecycle_sql({"coding": ["0" * 64]}),
        "DROP TRIGGER skills_skillversion_course ON skills_skillversion",
        "ALTER TABLE skills_skillversion DISABLE TRIGGER ALL",
    ],
    ids=["list", "trigger", "asleep"],
)
def test_list_is_the_owners(tenant: Any, statement: str) -> None:
    with pytest.raises(ProgrammingError, match=r"permission denied|must be owner"), tenant_scope(tenant):
        connection.cursor().execute(statement)


def test_what_the_manifest_no_longer_names_is_taken_in_no_more(tenant: Any) -> None:
    with connections["owner"].cursor() as cursor:
        cursor.execute(append_only.lifecycle_sql({}))
        try:
            with pytest.raises(DatabaseError, match="does not ship"), tenant_scope(tenant):
                services.install_version(SHIPS)
        finally:
            cursor.execute(append_only.lifecycle_sql(integrity.bundled_digests()))


def test_migration_puts_the_whole_manifest_in_place(database: None, superuser_dsn: str) -> None:
    with connections["owner"].cursor() as cursor:
        cursor.execute("SELECT prosrc FROM pg_proc WHERE proname = 'skills_version_course'")
        ((source,),) = cursor.fetchall()
    assert [
        digest for digests in integrity.bundled_digests().values() for digest in digests if digest not in source
    ] == []
