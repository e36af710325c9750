"""Logo and avatar of a chatbot over the REST API."""

from __future__ import annotations

import json
from io import BytesIO
from typing import Any

import pytest

from apps.audit.models import AuditEntry
from apps.tenants.enums import KeyScope
from apps.tenants.models import Deployment, DeploymentPicture
from kernel.tenancy import tenant_scope
from tests.factories.api import Api, code
from tests.factories.pictures import jpeg, png, png_header, webp
from tests.factories.tenants import make_deployment, make_member

PLACES = "/api/v1/deployments"


@pytest.fixture
def api(tenant: Any) -> Api:
    make_member(tenant, "owner")
    return Api(tenant, KeyScope.DEPLOYMENTS_READ, KeyScope.DEPLOYMENTS_WRITE)


@pytest.fixture
def path(tenant: Any) -> str:
    return f"{PLACES}/{make_deployment(tenant).pk}"


def put(api: Api, path: str, content: bytes, name: str = "logo.png") -> Any:
    file = BytesIO(content)
    file.name = name
    return api.upload(path, {"file": file}, method="put")


def rows(tenant: Any) -> list[DeploymentPicture]:
    with tenant_scope(tenant):
        return list(DeploymentPicture.objects.order_by("kind"))


@pytest.mark.parametrize("kind", ["logo", "avatar"])
def test_picture_is_stored_replaced_and_removed(tenant: Any, api: Api, path: str, kind: str) -> None:
    assert api.get(path).json()[kind] is None
    first = put(api, f"{path}/{kind}", png(40, 20))
    assert first.status_code == 200
    assert first.json()[kind]["width"] == 40
    assert first.json()[kind]["height"] == 20
    second = put(api, f"{path}/{kind}", jpeg(64, 48))
    assert second.json()[kind]["address"].endswith(".jpg")
    assert second.json()[kind]["address"] != first.json()[kind]["address"]
    (row,) = rows(tenant)
    assert row.kind == kind
    assert bytes(row.content) == jpeg(64, 48)
    assert api.delete(f"{path}/{kind}").status_code == 204
    assert api.delete(f"{path}/{kind}").status_code == 204
    assert api.get(path).json()[kind] is None
    assert rows(tenant) == []


def test_change_is_audited_by_file_name(tenant: Any, api: Api, path: str) -> None:
    answer = put(api, f"{path}/logo", png())
    with tenant_scope(tenant):
        entry = AuditEntry.objects.get(event="deployment_changed")
    assert entry.actor == api.actor
    data = json.loads(entry.data)
    assert data["fields"] == ["pictures"]
    assert data["after"]["pictures"]["logo"] in answer.json()["logo"]["address"]


def test_the_same_picture_again_is_no_change(tenant: Any, api: Api, path: str) -> None:
    put(api, f"{path}/logo", png())
    put(api, f"{path}/logo", png())
    with tenant_scope(tenant):
        assert AuditEntry.objects.filter(event="deployment_changed").count() == 1


@pytest.mark.parametrize(
    ("content", "refusal"),
    [
        (b"<svg xmlns='http://www.w3.org/2000/svg' width='64' height='64'></svg>", (400, "picture_kind")),
        (b"GIF89a" + bytes(200), (400, "picture_kind")),
        (b"a logo", (400, "picture_kind")),
        (png()[:20], (400, "picture_kind")),
        (jpeg()[:-10], (400, "picture_kind")),
        (png_header(30_000, 30_000), (400, "picture_dimensions")),
        (png_header(1025, 64), (400, "picture_dimensions")),
        (png_header(64, 15), (400, "picture_dimensions")),
        (png_header(0, 0), (400, "picture_dimensions")),
        (webp(2000, 20), (400, "picture_dimensions")),
        (png() + bytes(257 * 1024), (413, "picture_too_large")),
        (bytes(300 * 1024), (413, "picture_too_large")),
        (b"", (400, "invalid")),
    ],
)
def test_what_is_no_small_picture_is_refused(
    tenant: Any, api: Api, path: str, content: bytes, refusal: tuple[int, str]
) -> None:
    assert code(put(api, f"{path}/logo", content)) == refusal
    assert rows(tenant) == []
    assert api.get(path).json()["logo"] is None


def test_name_and_stated_type_do_not_count(api: Api, path: str) -> None:
    answer = put(api, f"{path}/logo", png(), name="page.html")
    assert answer.json()["logo"]["address"].endswith(".png")


def test_body_without_a_file_is_refused(api: Api, path: str) -> None:
    assert code(api.upload(f"{path}/logo", {"file": "text"}, method="put")) == (400, "invalid")
    assert code(api.put(f"{path}/logo", {"file": "text"})) == (415, "unsupported_media_type")


def test_chatbot_of_another_company_is_404(api: Api, other_tenant: Any) -> None:
    theirs = f"{PLACES}/{make_deployment(other_tenant).pk}"
    assert code(put(api, f"{theirs}/logo", png())) == (404, "not_found")
    assert code(api.delete(f"{theirs}/avatar")) == (404, "not_found")
    assert rows(other_tenant) == []


@pytest.mark.parametrize("role", ["approver", "agent", "viewer"])
def test_other_roles_are_refused(tenant: Any, path: str, role: str) -> None:
    member = Api(tenant, member=make_member(tenant, role))
    assert code(put(member, f"{path}/logo", png())) == (403, "forbidden_role")
    assert code(member.delete(f"{path}/logo")) == (403, "forbidden_role")


def test_key_that_only_reads_is_refused(tenant: Any, path: str) -> None:
    make_member(tenant, "owner")
    reader = Api(tenant, KeyScope.DEPLOYMENTS_READ)
    assert code(put(reader, f"{path}/logo", png())) == (403, "forbidden_scope")


def test_copy_of_a_chatbot_has_its_pictures(tenant: Any, api: Api, path: str) -> None:
    put(api, f"{path}/avatar", png())
    made = api.post(PLACES, {"title": "Shop", "like": path.rpartition("/")[2]}).json()
    assert made["logo"] is None
    with tenant_scope(tenant):
        copy = Deployment.objects.get(pk=made["id"])
        assert copy.avatar is not None
        assert copy.avatar["address"].startswith(f"/widget/v1/{copy.public_key}/avatar/")
    assert len(rows(tenant)) == 2
