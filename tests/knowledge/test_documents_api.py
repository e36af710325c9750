"""Collections, documents, submissions, search models and the search, over the REST API."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from apps.audit.models import AuditEntry
from apps.knowledge.models import Document, Intake
from apps.tenants.enums import KeyScope
from kernel.tenancy import tenant_scope
from tests.factories.api import Api, code
from tests.factories.knowledge import ingest_texts, read_handed_in
from tests.factories.tenants import make_deployment, make_member

BASE = "/api/v1/knowledge"
RETURNS = "# Returns\n\nParcels come back within thirty days."


@pytest.fixture
def api(tenant: Any) -> Api:
    return Api(tenant, KeyScope.KNOWLEDGE_READ, KeyScope.KNOWLEDGE_WRITE)


@pytest.fixture
def home(api: Api) -> str:
    return str(api.post(f"{BASE}/collections", {"name": "help"}).json()["id"])


@pytest.fixture
def document(tenant: Any, home: str, tmp_path: Path) -> Document:
    ingest_texts(tenant, tmp_path, returns=RETURNS)
    with tenant_scope(tenant):
        return Document.objects.get()


def test_collection_is_created_once_and_listed(api: Api, home: str, document: Document) -> None:
    again = api.post(f"{BASE}/collections", {"name": "help", "title": "Other"})
    assert again.json()["id"] == home
    assert again.json()["title"] == ""
    (row,) = api.get(f"{BASE}/collections").json()["collections"]
    assert row["documents"] == 1
    assert row["level"] == "public"
    assert api.get(f"{BASE}/collections/{home}").json() == row


def test_collection_of_an_unknown_level_is_refused(api: Api) -> None:
    assert code(api.post(f"{BASE}/collections", {"name": "help", "level": "royal"})) == (404, "not_found")


@pytest.mark.parametrize("body", [{}, {"name": "help", "colour": "red"}, {"name": ["help"]}, {"name": "a b"}])
def test_wrong_collection_is_refused(api: Api, body: dict[str, Any]) -> None:
    assert api.post(f"{BASE}/collections", body).status_code == 400


def test_text_is_read_and_found(tenant: Any, api: Api, home: str) -> None:
    body = {"title": "Returns", "text": RETURNS}
    submitted = api.post(f"{BASE}/collections/{home}/submissions", body, idempotency_key="a")
    assert submitted.status_code == 202
    read_handed_in(tenant)
    read = api.get(f"{BASE}/submissions/{submitted.json()['id']}").json()
    assert read["state"] == "done"
    assert read["stored"] == 1
    assert read["by"] == api.actor
    place = make_deployment(tenant)
    found = api.post(
        f"{BASE}/search", {"question": "How long do I have for returns?", "deployment": str(place.pk)}
    ).json()
    assert "thirty days" in found["passages"][0]["text"]
    assert found["answers"] is True


def test_text_sent_twice_is_handed_in_once(tenant: Any, api: Api, home: str) -> None:
    for _ in range(2):
        api.post(f"{BASE}/collections/{home}/submissions", {"title": "A", "text": "B"}, idempotency_key="a")
    with tenant_scope(tenant):
        assert Intake.objects.count() == 1


def test_file_is_handed_in(api: Api, home: str) -> None:
    file = SimpleUploadedFile("returns.md", RETURNS.encode())
    submitted = api.upload(f"{BASE}/collections/{home}/submissions", {"file": file})
    assert submitted.status_code == 202
    assert submitted.json()["kind"] == "file"
    (row,) = api.get(f"{BASE}/collections/{home}/submissions").json()["submissions"]
    assert row == submitted.json()


def test_website_is_handed_in(api: Api, home: str) -> None:
    submitted = api.post(f"{BASE}/collections/{home}/submissions", {"website": "docs.example.com"})
    assert submitted.json()["name"] == "https://docs.example.com"


@pytest.mark.parametrize("body", [{}, {"title": "A"}, {"title": "A", "text": "B", "website": "c.example"}, {"x": 1}])
def test_incomplete_submission_is_refused(api: Api, home: str, body: dict[str, Any]) -> None:
    assert code(api.post(f"{BASE}/collections/{home}/submissions", body)) == (400, "invalid")


def test_unsupported_file_is_refused(api: Api, home: str) -> None:
    file = SimpleUploadedFile("run.exe", b"MZ")
    refused = api.upload(f"{BASE}/collections/{home}/submissions", {"file": file})
    assert code(refused) == (422, "unsupported_type")


def test_document_is_read_refreshed_and_deleted(tenant: Any, api: Api, home: str, document: Document) -> None:
    (row,) = api.get(f"{BASE}/collections/{home}/documents").json()["documents"]
    read = api.get(f"{BASE}/documents/{document.pk}").json()
    assert row["title"] == "Returns"
    assert row["passages"] == 1
    assert [version["number"] for version in read["versions"]] == [1]
    assert "thirty days" in api.get(f"{BASE}/documents/{document.pk}/versions/1").json()["text"]
    assert code(api.get(f"{BASE}/documents/{document.pk}/versions/2")) == (404, "not_found")
    assert api.post(f"{BASE}/documents/{document.pk}/refresh").json()["kind"] == "again"
    assert api.delete(f"{BASE}/documents/{document.pk}").status_code == 204
    assert code(api.delete(f"{BASE}/documents/{document.pk}")) == (404, "not_found")
    with tenant_scope(tenant):
        entry = AuditEntry.objects.get(event="document_forgotten")
    assert entry.actor == api.actor


def test_lists_are_paged(tenant: Any, api: Api, home: str, tmp_path: Path) -> None:
    ingest_texts(tenant, tmp_path, a="# A\n\nFirst text.", b="# B\n\nSecond text.")
    first = api.get(f"{BASE}/collections/{home}/documents", limit=1).json()
    second = api.get(f"{BASE}/collections/{home}/documents", limit=1, before=first["next"]).json()
    assert {first["documents"][0]["title"], second["documents"][0]["title"]} == {"A", "B"}
    assert second["next"] == ""


def test_search_models_are_set_unless_they_changed_meanwhile(tenant: Any, api: Api) -> None:
    read = api.get(f"{BASE}/search-models")
    body = {"deployment": str(make_deployment(tenant).pk), "embedding": "", "reranker": "openai:gpt-5-mini"}
    stale = api.put(f"{BASE}/search-models", body, if_match='"old"')
    written = api.put(f"{BASE}/search-models", body, if_match=read["ETag"])
    assert code(stale) == (412, "changed_meanwhile")
    assert written.json()["reranker"] == "openai:gpt-5-mini"
    assert written["ETag"] != read["ETag"]
    assert api.get(f"{BASE}/search-models").json() == written.json()


def test_unknown_search_model_is_refused(tenant: Any, api: Api) -> None:
    body = {"deployment": str(make_deployment(tenant).pk), "embedding": "none", "reranker": ""}
    assert code(api.put(f"{BASE}/search-models", body)) == (422, "search_model")


def test_nothing_of_another_company_is_found(tenant: Any, other_tenant: Any, home: str, document: Document) -> None:
    foreign, place = Api(other_tenant), make_deployment(tenant)
    submission = Api(tenant).post(f"{BASE}/collections/{home}/submissions", {"title": "A", "text": "B"}).json()["id"]
    paths = [f"collections/{home}", f"collections/{home}/documents", f"collections/{home}/submissions"]
    paths += [f"documents/{document.pk}", f"documents/{document.pk}/versions/1", f"submissions/{submission}"]
    for path in paths:
        assert code(foreign.get(f"{BASE}/{path}")) == (404, "not_found")
    assert code(foreign.delete(f"{BASE}/documents/{document.pk}")) == (404, "not_found")
    assert code(foreign.post(f"{BASE}/documents/{document.pk}/refresh")) == (404, "not_found")
    assert code(foreign.post(f"{BASE}/collections/{home}/submissions", {"title": "A", "text": "B"})) == (
        404,
        "not_found",
    )
    search = {"question": "Returns?", "deployment": str(place.pk)}
    assert code(foreign.post(f"{BASE}/search", search)) == (404, "not_found")
    models = {"deployment": str(place.pk), "embedding": "", "reranker": ""}
    assert code(foreign.put(f"{BASE}/search-models", models)) == (404, "not_found")
    assert foreign.get(f"{BASE}/collections").json()["collections"] == []


def test_reader_writes_nothing_and_searches(tenant: Any, home: str) -> None:
    reader, place = Api(tenant, KeyScope.KNOWLEDGE_READ), make_deployment(tenant)
    refused = reader.post(f"{BASE}/collections", {"name": "more"})
    assert code(refused) == (403, "forbidden_scope")
    assert refused.json()["error"]["extra"]["scope"] == "knowledge:write"
    assert code(reader.delete(f"{BASE}/documents/{uuid4()}")) == (403, "forbidden_scope")
    assert reader.post(f"{BASE}/search", {"question": "Returns?", "deployment": str(place.pk)}).status_code == 200


def test_only_owners_enter(tenant: Any, home: str) -> None:
    agent = Api(tenant, member=make_member(tenant, "agent"))
    assert code(agent.get(f"{BASE}/collections/{home}")) == (403, "forbidden_role")
