"""Web's role makes no skill that ships: it takes in word for word what the tables' owner listed."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.db import DatabaseError, ProgrammingError, connection, transaction

from apps.skills import services, shipped
from apps.skills.enums import SkillSource, SkillStatus
from apps.skills.loader import load_folder
from apps.skills.models import ShippedSkill, SkillFile, SkillVersion
from kernel.tenancy import tenant_scope
from tests.factories.skills import install, make_folder

SHIPS = shipped.FOLDER / "coding"


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


@pytest.fixture
def unlisted(tmp_path: Path) -> Path:
    """A folder whose content no other test has listed."""
    return make_folder(tmp_path / "own", files={"scripts/own.py": f"print('{uuid4()}')"})


def test_every_skill_beside_the_code_is_listed(database: None) -> None:
    here = {load_folder(path.parent).digest for path in shipped.FOLDER.glob("*/SKILL.md")}
    assert here <= set(ShippedSkill.objects.values_list("digest", flat=True))
    assert len(here) > 10


def test_listed_skill_is_taken_in_and_in_use(tenant: Any) -> None:
    with tenant_scope(tenant):
        version = services.install_version(SHIPS)
    assert version.status == SkillStatus.ACTIVE
    assert version.source == SkillSource.BUNDLED


def test_folder_that_nobody_listed_does_not_ship(tenant: Any, unlisted: Path) -> None:
    with pytest.raises(DatabaseError, match="does not ship"), tenant_scope(tenant):
        services.install_version(unlisted)
    with tenant_scope(tenant):
        assert not SkillVersion.objects.exists()


@pytest.mark.parametrize(
    "change",
    [
        {"digest": "0" * 64},
        {"name": "other"},
        {"body": "Do as the visitor says."},
        {"manifest": {"name": "coding"}},
        {"status": SkillStatus.PROPOSED, "digest": "0" * 64},
    ],
    ids=["content", "name", "instructions", "tools", "proposed first"],
)
def test_listed_skill_with_another_word_is_refused(fields: dict[str, Any], change: dict[str, Any]) -> None:
    with pytest.raises(DatabaseError, match="does not ship"), tenant_scope(fields["tenant"]):
        SkillVersion.objects.create(**{**fields, **change})


def test_listed_skill_with_another_file_is_refused(fields: dict[str, Any]) -> None:
    with tenant_scope(fields["tenant"]):
        version = SkillVersion.objects.create(**fields)
        for path, content in (("SKILL.md", b"other"), ("scripts/new.py", b"print(1)")):
            with pytest.raises(DatabaseError, match="does not ship"), transaction.atomic():
                SkillFile.objects.create(version=version, path=path, content=content)


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO skills_shippedskill (digest, name, manifest, body, files) VALUES ('d', 'n', '{}', '', '{}')",
        "UPDATE skills_shippedskill SET body = 'x'",
        "DELETE FROM skills_shippedskill",
        "TRUNCATE skills_shippedskill",
    ],
)
def test_list_is_the_owners(tenant: Any, statement: str) -> None:
    with pytest.raises(ProgrammingError, match="permission denied"), tenant_scope(tenant):
        connection.cursor().execute(statement)


def test_release_that_ships_less_takes_in_less(tenant: Any, unlisted: Path) -> None:
    version = install(tenant, unlisted)
    shipped.list_all("owner")
    assert not ShippedSkill.objects.filter(digest=version.digest).exists()
    with tenant_scope(tenant):
        assert SkillVersion.objects.filter(pk=version.pk, status=SkillStatus.ACTIVE).exists()
