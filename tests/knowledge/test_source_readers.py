"""Readers of sources, each at a server made after its service's published description, through the run they share."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import boto3
import pytest
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from django.conf import LazySettings
from moto.server import ThreadedMotoServer

from apps.knowledge import source_reading
from apps.knowledge.enums import SourceKind
from apps.knowledge.parsing import ProblemCode
from apps.knowledge.ports import SourceAccount
from apps.knowledge.schemas import SourceRequest
from apps.knowledge.source_readers import http_client
from apps.knowledge.source_readers.folder import FolderReader
from apps.knowledge.source_readers.http_client import ApiClient, authorization
from apps.knowledge.source_readers.port import MAX_BYTES, Content, Entry, EntryFailed, SourceFailed, SourceReader
from apps.knowledge.source_readers.registry import is_location, open_reader
from apps.knowledge.source_readers.s3 import signature
from apps.knowledge.source_reading import ReadEntry
from tests.factories.source_services import S3, SERVICES, Confluence, Doc, Notion, Service, Zendesk, serving

ONE, TWO, THREE, FOUR = "101", "102", "103", "104"


@pytest.fixture(params=SERVICES, ids=lambda kind: kind.__name__)
def service(request: pytest.FixtureRequest, settings: LazySettings) -> Iterator[Service]:
    yield from served(request.param(), settings)


@pytest.fixture
def zendesk(settings: LazySettings) -> Iterator[Service]:
    yield from served(Zendesk(), settings)


def served(service: Service, settings: LazySettings) -> Iterator[Service]:
    with serving(service):
        settings.EGRESS_PRIVATE = [service.origin.removeprefix("http://")]
        for name in (ONE, TWO, THREE):
            service.write(name, f"What is said about {name} stands here.")
        yield service


def read(service: Service, known: dict[str, str] | None = None) -> tuple[dict[str, ReadEntry], int]:
    """What a run hands over, by the entries' ids without endings, and how many were unchanged."""
    reader = open_reader(service.kind, service.account(), service.location)
    return read_with(reader, service.kind, known)


def read_with(
    reader: SourceReader, kind: SourceKind, known: dict[str, str] | None = None
) -> tuple[dict[str, ReadEntry], int]:
    found: dict[str, ReadEntry] = {}

    def store(entry: ReadEntry) -> None:
        found[entry.reference.rpartition("/")[2].partition(".")[0]] = entry

    request = SourceRequest(kind=kind, location="", known=known or {})
    end = source_reading._run(reader, request, home="home", store=store)
    return found, end.unchanged


def problem(entry: ReadEntry) -> ProblemCode:
    assert not entry.parsed.documents
    return entry.parsed.problems[0].code


def test_run_reads_what_is_new_or_changed_and_finds_what_is_deleted(service: Service) -> None:
    service.limited = 1
    listed = list(open_reader(service.kind, service.account(), service.location).entries())
    assert [entry.id.rpartition("/")[2].partition(".")[0] for entry in listed] == [ONE, TWO, THREE]
    assert all(entry.version for entry in listed)
    assert all(entry.url.startswith("http") or service.kind == SourceKind.S3 for entry in listed)
    service.write(TWO, "It reads differently now.")
    service.trash(THREE)
    service.write(FOUR, "x" * (MAX_BYTES + 1))
    found, unchanged = read(service, {f"home/{entry.id}": entry.version for entry in listed})
    assert unchanged == 1
    assert set(found) == {TWO, THREE, FOUR}
    (document,) = found[TWO].parsed.documents
    assert "It reads differently now." in document.text
    assert "<p>" not in document.text
    assert document.title == (TWO if service.kind == SourceKind.S3 else f"About {TWO}")
    assert problem(found[THREE]) == ProblemCode.MISSING
    assert problem(found[FOUR]) == ProblemCode.TOO_LARGE


def test_run_ends_at_expired_credentials_and_at_answers_of_another_form(service: Service) -> None:
    service.broken = True
    with pytest.raises(SourceFailed) as failed:
        read(service)
    assert failed.value.code == "answer_unreadable"
    service.token = "another"
    with pytest.raises(SourceFailed) as failed:
        read(service)
    assert failed.value.code == "credentials_refused"


def test_service_that_wants_to_be_left_alone_for_an_hour_is(zendesk: Service) -> None:
    zendesk.limited, zendesk.retry_after = 1, "3600"
    with pytest.raises(SourceFailed) as failed:
        read(zendesk)
    assert failed.value.code == "rate_limited"
    assert len(zendesk.asked) == 1


def test_service_that_never_ends_a_listing_is_given_up_in_time(
    zendesk: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []
    monkeypatch.setattr(http_client, "time", SimpleNamespace(monotonic=lambda: sum(waited), sleep=waited.append))

    def empty_page(after: str) -> tuple[list[tuple[str, Doc]], str]:
        zendesk.limited, zendesk.retry_after = 1, "20"
        return [], "1"

    zendesk.page = empty_page  # type: ignore[method-assign]
    with pytest.raises(SourceFailed) as failed:
        read(zendesk)
    assert failed.value.code == "too_slow"
    assert sum(waited) <= 360


@pytest.mark.parametrize("has_children", [True, False])
def test_page_of_notion_with_endless_blocks_is_too_large(monkeypatch: pytest.MonkeyPatch, has_children: bool) -> None:
    asked: list[str] = []

    def blocks(client: ApiClient, path: str, query: dict[str, object]) -> dict[str, object]:
        asked.append(path)
        assert len(asked) <= 1000
        block = {"id": "b", "type": "unknown", "has_children": has_children}
        return {"results": [block] * (100 if has_children else 0), "has_more": True, "next_cursor": "c"}

    monkeypatch.setattr(ApiClient, "json", blocks)
    reader = open_reader(SourceKind.NOTION, SourceAccount("https://api.notion.com", {}, {}), "")
    with pytest.raises(EntryFailed) as failed:
        reader.read(Entry(ONE, "1"))
    assert failed.value.code == ProblemCode.TOO_LARGE


@pytest.mark.parametrize("kind", [Zendesk, Confluence, Notion])
def test_text_that_cannot_be_stored_is_read_without_what_is_wrong(kind: type[Service], settings: LazySettings) -> None:
    for service in served(kind(), settings):
        service.write(TWO, "Half \ud83d an emoji, and \0.", title="Half \ud83d")
        found, _ = read(service)
        (document,) = found[TWO].parsed.documents
        assert "Half \ufffd an emoji" in document.text
        assert document.title == "Half \ufffd"
        assert found[THREE].parsed.documents


def test_entry_that_its_reader_cannot_read_leaves_the_others(zendesk: Service) -> None:
    reader = open_reader(zendesk.kind, zendesk.account(), zendesk.location)
    read_entry = reader.read

    def read_strictly(entry: Entry) -> Content | None:
        if entry.id == TWO:
            raise ValueError("not a text")
        return read_entry(entry)

    reader.read = read_strictly  # type: ignore[method-assign]
    found, _ = read_with(reader, zendesk.kind)
    assert problem(found[TWO]) == ProblemCode.UNREADABLE
    assert found[THREE].parsed.documents


def test_article_for_agents_only_is_not_read(zendesk: Service) -> None:
    zendesk.write(ONE, "For agents only.", kind="internal")
    assert [entry.id for entry in open_reader(zendesk.kind, zendesk.account(), "en-us").entries()] == [TWO, THREE]


def test_article_that_is_made_internal_after_it_was_listed_is_not_read(zendesk: Service) -> None:
    reader = open_reader(zendesk.kind, zendesk.account(), "en-us")
    first = next(iter(reader.entries()))
    zendesk.write(ONE, "For agents only.", kind="internal")
    assert reader.read(first) is None


def test_private_address_that_the_operator_does_not_allow_is_not_called(
    zendesk: Service, settings: LazySettings
) -> None:
    settings.EGRESS_PRIVATE = []
    with pytest.raises(SourceFailed) as failed:
        read(zendesk)
    assert failed.value.code == "unreachable"
    assert zendesk.asked == []


def test_page_that_notions_search_does_not_find_stays(settings: LazySettings) -> None:
    for notion in served(Notion(), settings):
        known = {f"home/{ONE}": "1", "home/999": "1"}
        notion.page = lambda after: ([], "")  # type: ignore[method-assign]
        found, _ = read(notion, known)
        assert set(found) == {"999"}
        assert problem(found["999"]) == ProblemCode.MISSING


def test_file_of_another_format_is_reported_and_not_fetched(settings: LazySettings) -> None:
    for bucket in served(S3(), settings):
        bucket.documents = {}
        bucket.write(ONE, "PK", kind="foreign")
        found, _ = read(bucket)
        assert problem(found[ONE]) == ProblemCode.UNSUPPORTED
        assert not any("docx" in asked.path for asked in bucket.asked)


def test_requests_to_s3_are_signed_as_amazons_own_client_signs_them() -> None:
    url = "https://s3.eu-central-1.amazonaws.com/docs/a%20b.md?list-type=2&prefix=x%2Fy"
    moment = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    ours = signature("GET", url, b"", region="eu-central-1", key_id="KEY", secret="SECRET", moment=moment)
    request = AWSRequest("GET", url, headers={"x-amz-content-sha256": ours["x-amz-content-sha256"]})
    request.context["timestamp"] = ours["x-amz-date"]
    theirs = S3SigV4Auth(Credentials("KEY", "SECRET"), "s3", "eu-central-1")
    request.headers["X-Amz-Date"] = ours["x-amz-date"]
    signed = theirs.signature(theirs.string_to_sign(request, theirs.canonical_request(request)), request)
    assert ours["Authorization"].endswith(f"Signature={signed}")


def test_bucket_of_a_store_that_we_did_not_write_is_read(settings: LazySettings) -> None:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        settings.EGRESS_PRIVATE = [f"{host}:{port}"]
        origin, keys = f"http://{host}:{port}", {"aws_access_key_id": "KEY", "aws_secret_access_key": "SECRET"}
        store = boto3.client("s3", region_name="us-east-1", endpoint_url=origin, **keys)
        store.create_bucket(Bucket="docs")
        for name in ("help/Rückgabe & Umtausch.md", "help/a+b.md", "elsewhere.md"):
            store.put_object(Bucket="docs", Key=name, Body=f"# Found\n\nThis is {name}.".encode())
        account = SourceAccount(origin, {"access_key_id": "KEY"}, {"secret_access_key": "SECRET"})
        reader = open_reader(SourceKind.S3, account, "docs/help/")
        entries = list(reader.entries())
        assert [entry.id for entry in entries] == ["help/Rückgabe & Umtausch.md", "help/a+b.md"]
        contents = [reader.read(entry) for entry in entries]
        assert ["This is help/" in content.body.decode() for content in contents if content] == [True, True]
        store.delete_object(Bucket="docs", Key="help/a+b.md")
        assert reader.read(entries[1]) is None
    finally:
        server.stop()


@pytest.mark.parametrize(
    ("account_settings", "secrets", "header"),
    [
        ({}, {"api_key": "k"}, {"Authorization": "Bearer k"}),
        ({"header": "X-Key", "prefix": ""}, {"api_key": "k"}, {"X-Key": "k"}),
        ({"prefix": "Basic"}, {"api_key": "name:password"}, {"Authorization": "Basic bmFtZTpwYXNzd29yZA=="}),
        ({"prefix": "ignored"}, {"access_token": "t", "refresh_token": "r"}, {"Authorization": "Bearer t"}),
    ],
)
def test_request_is_authorized_as_the_account_says(
    account_settings: dict[str, object], secrets: dict[str, str], header: dict[str, str]
) -> None:
    assert authorization(SourceAccount("https://example.com", account_settings, secrets)) == header


@pytest.fixture
def folders(tmp_path: Path, settings: LazySettings) -> Path:
    settings.SOURCE_FOLDERS = str(tmp_path)
    home = tmp_path / "acme" / "handbook"
    home.mkdir(parents=True)
    (home / f"{ONE}.md").write_text("# Returns\n\nWithin thirty days.")
    (home / f"{TWO}.docx").write_bytes(b"PK")
    (tmp_path / "secret.md").write_text("Of somebody else.")
    (home / f"{THREE}.md").symlink_to(tmp_path / "secret.md")
    (home / "away").symlink_to(tmp_path)
    return tmp_path


def test_folder_is_read_and_links_lead_nowhere(folders: Path) -> None:
    found, _ = read_with(FolderReader("acme", "handbook"), SourceKind.FOLDER)
    assert set(found) == {ONE, TWO}
    assert "Within thirty days." in found[ONE].parsed.documents[0].text
    assert problem(found[TWO]) == ProblemCode.UNSUPPORTED
    (folders / "acme" / "handbook" / f"{ONE}.md").write_bytes(b"x" * (MAX_BYTES + 1))
    known = {found[ONE].reference: found[ONE].version, "home/gone.md": "1"}
    found, _ = read_with(FolderReader("acme", "handbook"), SourceKind.FOLDER, known)
    assert problem(found[ONE]) == ProblemCode.TOO_LARGE
    assert problem(found["gone"]) == ProblemCode.MISSING


@pytest.mark.parametrize("location", ["missing", "handbook/away", "handbook/away/other"])
def test_folder_that_is_not_there_or_a_link_is_not_an_empty_one(folders: Path, location: str) -> None:
    os.makedirs(folders / "other")
    with pytest.raises(SourceFailed) as failed:
        list(FolderReader("acme", location).entries())
    assert failed.value.code == "location_missing"


@pytest.mark.parametrize(
    ("kind", "location"),
    [
        (SourceKind.FOLDER, "../other"),
        (SourceKind.FOLDER, "a/../../b"),
        (SourceKind.FOLDER, ".hidden"),
        (SourceKind.ZENDESK, "en-us/../users"),
        (SourceKind.CONFLUENCE, "HELP/../x"),
        (SourceKind.NOTION, "not-an-id"),
        (SourceKind.GOOGLE_DRIVE, "' or true"),
        (SourceKind.S3, "../bucket"),
    ],
)
def test_location_that_leads_elsewhere_is_none(kind: SourceKind, location: str) -> None:
    assert not is_location(kind, location)
