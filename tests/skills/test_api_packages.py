"""Packages, publishers and drafts over HTTP: an API key exports, imports and writes; a person still decides."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from apps.skills.models import SkillPackage, SkillVersion, TrustedPublisher
from apps.skills.packages import archive
from apps.skills.packages import services as packages
from apps.tenants.services import create_api_key
from kernel.tenancy import tenant_scope
from tests.factories.console import browser
from tests.factories.skills import install, make_folder
from tests.factories.tenants import make_member

WISH = "Say how many words a text has, for whoever asks."


def asked(tenant: Any, verb: str, path: str, body: Any = None, **files: Any) -> Any:
    with tenant_scope(tenant):
        key = create_api_key("Test").key
    how: dict[str, Any] = {"headers": {"authorization": f"Bearer {key}"}}
    if body is not None:
        how |= {"data": json.dumps(body), "content_type": "application/json"}
    elif files:
        how |= {"data": files}
    return getattr(browser(None), verb)(f"/api/v1/{path}", **how)


@pytest.fixture
def package(tenant: Any, tmp_path: Path) -> bytes:
    install(tenant, make_folder(tmp_path))
    found = asked(tenant, "get", "skills/test-desk/versions/1/package")
    assert found.status_code == 200
    return bytes(found.content)


def hand_in(tenant: Any, raw: bytes) -> Any:
    return asked(tenant, "post", "skill-packages", package=SimpleUploadedFile("x.zip", raw))


def test_package_from_nobody_known_waits_with_its_fingerprint(other_tenant: Any, package: bytes) -> None:
    told = hand_in(other_tenant, package).json()
    known = archive.unpack(package).manifest.fingerprint
    assert told["state"] == "waiting"
    assert told["fingerprint"] == known
    assert told["skill_version"] is None
    assert asked(other_tenant, "post", f"skill-packages/{told['id']}/refuse").status_code == 204
    assert [one["state"] for one in asked(other_tenant, "get", "skill-packages").json()] == ["refused"]


def test_package_from_a_pinned_key_is_proposed_and_no_longer_once_the_pin_is_gone(
    other_tenant: Any, package: bytes
) -> None:
    keeper, read = make_member(other_tenant, "owner"), archive.unpack(package)
    with tenant_scope(other_tenant):
        row = packages.receive(read, by=keeper)
        packages.trust_publisher(row.pk, read.manifest.fingerprint, read, by=keeper)
        SkillPackage.objects.all().delete()
    assert hand_in(other_tenant, package).json()["state"] == "taken"
    (pinned,) = asked(other_tenant, "get", "skill-publishers").json()
    assert asked(other_tenant, "delete", f"skill-publishers/{pinned['id']}").status_code == 204
    with tenant_scope(other_tenant):
        assert not TrustedPublisher.objects.exists()
    assert hand_in(other_tenant, package).json()["state"] == "waiting"


def test_package_that_was_touched_is_refused(other_tenant: Any, package: bytes) -> None:
    assert hand_in(other_tenant, package.replace(b"Do it.", b"Do no.")).status_code in (400, 422)


@pytest.mark.parametrize("path", ["skill-packages", "skill-publishers", "skill-drafts", "skills/a/versions/1/package"])
def test_stranger_is_refused(path: str) -> None:
    assert browser(None).get(f"/api/v1/{path}").status_code == 401


def test_version_of_another_company_is_not_handed_on(other_tenant: Any, package: bytes) -> None:
    assert asked(other_tenant, "get", "skills/test-desk/versions/1/package").status_code == 404


def test_draft_begins_changes_and_is_put_up_for_an_approval(tenant: Any) -> None:
    begun = asked(tenant, "post", "skill-drafts", {"name": "word-count", "wish": WISH})
    draft = begun.json()
    place = f"skill-drafts/{draft['id']}"
    assert begun.status_code == 201
    assert draft["revision"] == 1
    assert "SKILL.md" in draft["newest"]["files"]
    written = {"seen": 1, "path": "references/more.md", "text": "Words are counted by spaces.\n"}
    changed = asked(tenant, "post", f"{place}/revisions", written).json()
    assert changed["revision"] == 2
    assert changed["newest"]["written_by"] == "person"
    late = asked(tenant, "post", f"{place}/submit", {"seen": 1})
    assert late.status_code == 409
    assert "draft_changed" in late.content.decode()
    put_up = asked(tenant, "post", f"{place}/submit", {"seen": 2}).json()
    assert put_up["status"] == "proposed"
    assert put_up["came_from"] == "maker"
    with tenant_scope(tenant):
        assert SkillVersion.objects.get(name="word-count").requested_by.startswith("api_key:")
    assert asked(tenant, "delete", place).status_code == 204


def test_draft_of_another_company_is_not_there(tenant: Any, other_tenant: Any) -> None:
    draft = asked(tenant, "post", "skill-drafts", {"name": "word-count", "wish": WISH}).json()
    place = f"skill-drafts/{draft['id']}"
    found = [asked(other_tenant, verb, place).status_code for verb in ("get", "delete")]
    assert [*found, asked(other_tenant, "post", f"{place}/submit", {"seen": 1}).status_code] == [404] * 3
