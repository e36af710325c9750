"""Who looks after the knowledge, and what the pages say about it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from apps.knowledge.models import Collection, Document, Intake
from kernel.tenancy import tenant_scope
from tests.factories.console import browser
from tests.factories.knowledge import ingest_texts, read_handed_in, search
from tests.factories.tenants import make_deployment, make_member

READS = ["console-knowledge", "console-collection", "console-document", "console-knowledge-try"]
PRESSES = ["console-knowledge-new", "console-hand-in", "console-document-again", "console-document-delete"]
TEXT = "# Returns\n\nParcels come back within thirty days."


@pytest.fixture
def document(tenant: Any, tmp_path: Path) -> Document:
    ingest_texts(tenant, tmp_path, returns=TEXT)
    with tenant_scope(tenant):
        found: Document = Document.objects.select_related("collection").get()
        return found


def address(name: str, document: Document) -> str:
    if name in ("console-knowledge", "console-knowledge-new", "console-knowledge-try"):
        return reverse(name)
    return reverse(
        name, args=[document.collection_id if name in ("console-collection", "console-hand-in") else document.pk]
    )


def page_of(user: Any, name: str, document: Document) -> str:
    return str(browser(user).get(address(name, document)).content.decode())


def press(user: Any, name: str, document: Document, /, **data: Any) -> Any:
    return browser(user).post(address(name, document), data)


def tried(user: Any, place: Any, question: str, **data: Any) -> Any:
    said = {"question": question, "deployment": str(place.pk), **data}
    return browser(user).post(reverse("console-knowledge-try"), said)


@pytest.mark.parametrize(("role", "status"), [("approver", 200), ("agent", 403), ("viewer", 403), ("stranger", 403)])
@pytest.mark.parametrize("name", READS)
def test_page_is_for_owners_and_approvers(
    document: Document, name: str, role: str, status: int, request: pytest.FixtureRequest
) -> None:
    assert browser(request.getfixturevalue(role)).get(address(name, document)).status_code == status


@pytest.mark.parametrize("role", ["approver", "agent", "viewer", "stranger"])
@pytest.mark.parametrize("name", PRESSES)
def test_press_is_for_owners_only(document: Document, name: str, role: str, request: pytest.FixtureRequest) -> None:
    assert press(request.getfixturevalue(role), name, document).status_code == 403


@pytest.mark.parametrize("name", ["console-collection", "console-document"])
def test_page_of_another_tenant_is_not_found(document: Document, other_tenant: Any, name: str) -> None:
    assert browser(make_member(other_tenant, "owner")).get(address(name, document)).status_code == 404


@pytest.mark.parametrize("name", ["console-hand-in", "console-document-again", "console-document-delete"])
def test_press_on_another_tenants_is_not_found(document: Document, other_tenant: Any, name: str) -> None:
    said = {"what": "text", "title": "a", "text": "b"}
    assert press(make_member(other_tenant, "owner"), name, document, **said).status_code == 404


@pytest.mark.parametrize("name", PRESSES)
def test_press_without_csrf_token_is_refused(owner: Any, document: Document, name: str) -> None:
    assert browser(owner, csrf=True).post(address(name, document)).status_code == 403


@pytest.mark.parametrize("name", PRESSES)
def test_press_by_get_is_not_allowed(owner: Any, document: Document, name: str) -> None:
    assert browser(owner).get(address(name, document)).status_code == 405


@pytest.mark.parametrize("name", READS)
def test_page_has_no_inline_script_or_style(owner: Any, document: Document, name: str) -> None:
    page = page_of(owner, name, document)
    assert not re.search(r"<style|style=|<script(?![^>]*\bsrc=)|\son\w+=|javascript:", page)


def test_lists_show_nothing_of_another_tenant(document: Document, other_tenant: Any) -> None:
    assert str(document.collection_id) not in page_of(make_member(other_tenant, "owner"), "console-knowledge", document)


def test_collection_says_how_each_document_stands(owner: Any, document: Document) -> None:
    assert "1 passage<" in page_of(owner, "console-collection", document)


def test_collection_is_opened_at_a_level(tenant: Any, owner: Any, document: Document, deployment: Any) -> None:
    press(owner, "console-knowledge-new", document, name="inner", title="Inner", level="public")
    with tenant_scope(tenant):
        assert Collection.objects.get(name="inner").min_level == "public"


@pytest.mark.parametrize("name", ["", "two words", "../x", "a" * 61])
def test_collection_of_no_name_is_refused(owner: Any, document: Document, name: str) -> None:
    assert press(owner, "console-knowledge-new", document, name=name).status_code == 422


def test_level_that_nobody_has_is_not_found(owner: Any, document: Document) -> None:
    assert press(owner, "console-knowledge-new", document, name="x", level="god").status_code == 404


def test_text_is_handed_in_read_and_found(tenant: Any, owner: Any, document: Document) -> None:
    said = {"what": "text", "title": "Opening", "text": "The shop opens at eight.", "once": str(uuid4())}
    press(owner, "console-hand-in", document, **said)
    read_handed_in(tenant)
    assert search(tenant, "When does the shop open?")[0].title.startswith("Opening")


def test_page_asks_again_while_something_is_read(tenant: Any, owner: Any, document: Document) -> None:
    said = {"what": "text", "title": "Opening", "text": "The shop opens at eight.", "once": str(uuid4())}
    press(owner, "console-hand-in", document, **said)
    assert 'hx-trigger="every 2s"' in page_of(owner, "console-collection", document)
    read_handed_in(tenant)
    assert 'hx-trigger="every 2s"' not in page_of(owner, "console-collection", document)


def test_file_that_could_not_be_read_says_why(tenant: Any, owner: Any, document: Document) -> None:
    lie = SimpleUploadedFile("lie.pdf", b"<html>", content_type="application/pdf")
    press(owner, "console-hand-in", document, what="files", files=lie, once=str(uuid4()))
    read_handed_in(tenant)
    assert "The PDF is damaged" in page_of(owner, "console-collection", document)


@pytest.mark.parametrize(
    ("name", "data"),
    [("a.exe", b"MZ"), ("a.zip", b"PK"), ("a.txt", b""), ("a.txt", b" " * 3), ("a.txt", b"x" * 10_000_001)],
)
def test_upload_of_another_kind_or_size_is_refused(
    tenant: Any, owner: Any, document: Document, name: str, data: bytes
) -> None:
    response = press(owner, "console-hand-in", document, what="files", files=SimpleUploadedFile(name, data))
    with tenant_scope(tenant):
        assert response.status_code == 422
        assert Intake.objects.count() == 0


def test_name_of_a_file_is_shown_as_text(tenant: Any, owner: Any, document: Document) -> None:
    file = SimpleUploadedFile("x<img src=x onerror=alert(1)>.txt", b"One")
    press(owner, "console-hand-in", document, what="files", files=file, once=str(uuid4()))
    assert "<img" not in page_of(owner, "console-collection", document)


def test_document_is_read_again(tenant: Any, owner: Any, document: Document) -> None:
    press(owner, "console-document-again", document, once=str(uuid4()))
    read_handed_in(tenant)
    with tenant_scope(tenant):
        assert Intake.objects.get().state == "done"


def test_deleted_document_is_found_no_more(tenant: Any, owner: Any, document: Document) -> None:
    press(owner, "console-document-delete", document)
    assert search(tenant, "How long may a parcel come back?") == ()


def test_page_of_a_document_says_what_would_be_gone(owner: Any, document: Document) -> None:
    assert "1 passage in the search index and 1 version of the text" in page_of(owner, "console-document", document)


def test_question_shows_what_would_be_cited(owner: Any, document: Document, deployment: Any) -> None:
    page = tried(owner, deployment, "How long may a parcel come back?").content.decode()
    assert "cited" in page
    assert "Parcels come back within thirty days." in page


def test_question_that_nothing_answers_says_so(owner: Any, document: Document, deployment: Any) -> None:
    page = tried(owner, deployment, "Who won the chess championship in 1972?").content.decode()
    assert "It would say that it doesn't know" in page


def test_question_finds_only_what_its_level_may_read(tenant: Any, owner: Any, tmp_path: Path, deployment: Any) -> None:
    ingest_texts(tenant, tmp_path, collection="inner", min_level="verified", secret=TEXT)
    assert "No results" in tried(owner, deployment, "How long may a parcel come back?").content.decode()


def test_question_at_a_level_that_is_not_there_is_not_found(owner: Any, document: Document, deployment: Any) -> None:
    assert tried(owner, deployment, "Parcels?", level="god").status_code == 404


@pytest.mark.parametrize("which", ["foreign", "nonsense"])
def test_question_to_a_foreign_deployment_is_not_found(
    owner: Any, document: Document, other_tenant: Any, which: str
) -> None:
    chosen = str(make_deployment(other_tenant).pk) if which == "foreign" else "nonsense"
    said = {"question": "Parcels?", "deployment": chosen}
    assert browser(owner).post(reverse("console-knowledge-try"), said).status_code == 404
