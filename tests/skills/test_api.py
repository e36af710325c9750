"""Skills over HTTP: strangers first, then owners and their API keys."""

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from apps.tenants.services import create_api_key
from kernel.tenancy import tenant_scope
from tests.factories.console import browser
from tests.factories.skills import install, make_folder
from tests.skills.test_imports import skill, zipped


def asked(tenant, verb, path="", **body):
    with tenant_scope(tenant):
        key = create_api_key("Test").key
    client, headers = browser(None), {"authorization": f"Bearer {key}"}
    if verb == "get":
        return client.get(f"/api/v1/skills{path}", headers=headers)
    if "version" in body:
        return client.post(f"/api/v1/skills{path}", body, content_type="application/json", headers=headers)
    return client.post(f"/api/v1/skills{path}", body, headers=headers)


@pytest.fixture
def installed(tenant, tmp_path):
    return install(tenant, make_folder(tmp_path))


def test_stranger_is_refused(installed):
    assert browser(None).get("/api/v1/skills").status_code == 401


@pytest.mark.parametrize("path", ["", "/disable", "/purge"])
def test_another_tenants_skill_is_not_found(installed, other_tenant, path):
    assert asked(other_tenant, "post" if path else "get", f"/test-desk{path}").status_code == 404


def test_list_tells_every_skill(tenant, installed):
    told = asked(tenant, "get").json()
    assert [(one["name"], one["status"]) for one in told] == [("test-desk", "active")]


def test_upload_is_proposed_with_its_report(tenant):
    sent = SimpleUploadedFile("tools.zip", zipped(skill()))
    told = asked(tenant, "post", archive=sent)
    assert told.status_code == 201
    assert told.json()["status"] == "proposed"
    assert told.json()["report"]["origin"]["format"] == "claude"


@pytest.mark.parametrize(
    "body", [{}, {"url": "https://127.0.0.1/a"}, {"url": "https://example.com/a", "format_hint": "x"}]
)
def test_what_cannot_be_imported_is_refused(tenant, body):
    assert asked(tenant, "post", **body).status_code in (400, 422)


def test_disabled_over_http_is_off(tenant, installed):
    assert asked(tenant, "post", "/test-desk/disable").json() == {"switched_off": 1}


def test_purged_over_http_is_off_and_kept_as_evidence(tenant, installed):
    assert asked(tenant, "post", "/test-desk/purge").json() == {"switched_off": 1}
    assert [one["status"] for one in asked(tenant, "get", "/test-desk").json()] == ["disabled"]


def test_rolled_back_over_http_is_in_use(tenant, installed, tmp_path):
    install(tenant, make_folder(tmp_path, tools=[]))
    assert asked(tenant, "post", "/test-desk/roll-back", version=1).json()["number"] == 1


def test_rolled_back_to_no_version_is_not_found(tenant, installed):
    assert asked(tenant, "post", "/test-desk/roll-back", version=7).status_code == 404
