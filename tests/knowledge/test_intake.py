"""What is handed in is read once, by one reader, and says what became of it."""

from __future__ import annotations

import io
import os
import zlib
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.conf import LazySettings
from django.db import IntegrityError, connection
from pypdf import PdfWriter

from apps.bus.enums import Kind, Queue
from apps.bus.rules import MAX_ATTEMPTS
from apps.bus.services import enqueue, expire_leases
from apps.knowledge import intake, intake_indexing, intake_reading, sandboxed_parsing
from apps.knowledge.enums import IntakeState
from apps.knowledge.models import Document, DocumentVersion, Intake, ReadPart
from apps.knowledge.parsing import Parsed, ParsedDocument
from apps.knowledge.services import forget_document, open_collection
from kernel.errors import NotFound, SilasError
from kernel.tenancy import tenant_scope
from tests.factories.bus import lease_any, let_leases_run_out, let_waits_pass
from tests.factories.knowledge import pdf_of, read_handed_in, search
from tests.factories.website import serving
from tests.factories.work import Hands
from tests.platform.connecting import connected_as
from tests.rivals import race

BY = "user:test"


@pytest.fixture
def home(tenant: Any) -> UUID:
    with tenant_scope(tenant):
        return UUID(str(open_collection("help").pk))


def hand_in(tenant: Any, home: UUID, name: str, data: bytes, *, once: UUID | None = None) -> Intake:
    with tenant_scope(tenant):
        return intake.submit_file(home, name=name, data=data, once=once or uuid4(), actor=BY)


def now_of(tenant: Any, row: Intake) -> Intake:
    with tenant_scope(tenant):
        found: Intake = Intake.objects.get(pk=row.pk)
        return found


def read(tenant: Any, home: UUID, name: str, data: bytes) -> Intake:
    row = hand_in(tenant, home, name, data)
    read_handed_in(tenant)
    return now_of(tenant, row)


def test_file_that_was_read_is_found(tenant: Any, home: UUID) -> None:
    row = read(tenant, home, "returns.md", b"# Returns\n\nParcels come back within thirty days.")
    assert row.state == IntakeState.DONE
    assert row.stored == 1
    assert row.content is None
    assert search(tenant, "How long may a parcel come back?")[0].title.startswith("Returns")


def test_pdf_is_read(tenant: Any, home: UUID) -> None:
    assert read(tenant, home, "terms.pdf", pdf_of("Parcels come back within thirty days.")).stored == 1


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("picture.txt", b"\x89PNG\r\n\x1a\n\x00\x00", "not text"),
        ("page.html", b"PK\x03\x04\x14\x00\x00", "not text"),
        ("lie.pdf", b"<html>no pdf</html>", "damaged"),
        ("latin.txt", "Gr\u00fc\u00dfe".encode("latin-1"), "not valid utf-8"),
        ("secret.pdf", pdf_of("x", password="secret"), "password"),
        ("tower.html", b"<div>" * 5000, "nested"),
    ],
)
def test_what_cannot_be_read_says_why(tenant: Any, home: UUID, name: str, data: bytes, said: str) -> None:
    row = read(tenant, home, name, data)
    assert row.state == IntakeState.FAILED
    assert said in row.problems[0][1]


def test_pdf_that_explodes_is_refused(tenant: Any, home: UUID) -> None:
    row = read(tenant, home, "bomb.pdf", _bomb())
    assert row.state == IntakeState.FAILED


def _bomb() -> bytes:
    """A small file whose one page unpacks to 300 MB."""
    from pypdf.generic import EncodedStreamObject, NameObject

    writer = PdfWriter()
    page = writer.add_blank_page(width=100, height=100)
    packer = zlib.compressobj(9)
    packed = b"".join(packer.compress(b" " * 1_000_000) for _ in range(300)) + packer.flush()
    stream = EncodedStreamObject()
    stream._data = packed
    stream[NameObject("/Filter")] = NameObject("/FlateDecode")
    page[NameObject("/Contents")] = writer._add_object(stream)
    file = io.BytesIO()
    writer.write(file)
    return file.getvalue()


@pytest.mark.parametrize("name", ["../../etc/passwd.txt", "..\\..\\evil.txt", "/abs/olute.txt", "a\x00b\n.txt"])
def test_only_the_last_part_of_a_name_counts(tenant: Any, home: UUID, name: str) -> None:
    row = hand_in(tenant, home, name, b"text")
    assert not set("/\\\x00\n") & set(row.name)
    assert row.reference == f"upload/{row.name}"


@pytest.mark.parametrize("name", ["virus.exe", "noending", "", "a.zip", "a.pdf.zip", ".md", "a.jsonl"])
def test_other_kinds_are_refused(tenant: Any, home: UUID, name: str) -> None:
    with pytest.raises(SilasError, match="is not supported"):
        hand_in(tenant, home, name, b"text")


def test_empty_file_is_refused(tenant: Any, home: UUID) -> None:
    with pytest.raises(SilasError, match="is empty"):
        hand_in(tenant, home, "a.txt", b"")


def test_large_file_is_refused(tenant: Any, home: UUID) -> None:
    with pytest.raises(SilasError, match="larger than 10 MB"):
        hand_in(tenant, home, "a.txt", b"x" * (intake.MAX_UPLOAD_BYTES + 1))


def test_form_that_comes_twice_is_one_row(tenant: Any, home: UUID) -> None:
    once = uuid4()
    assert hand_in(tenant, home, "a.txt", b"x", once=once).pk == hand_in(tenant, home, "a.txt", b"x", once=once).pk


def test_collection_of_another_tenant_does_not_exist(other_tenant: Any, home: UUID) -> None:
    with pytest.raises(NotFound):
        hand_in(other_tenant, home, "a.txt", b"x")


def test_rival_workers_read_and_store_once(tenant: Any, home: UUID) -> None:
    row = hand_in(tenant, home, "a.txt", b"One text, read once.")

    def rival_reads() -> None:
        read_handed_in(tenant)
        connection.close()

    race(*[rival_reads] * 3)
    read_handed_in(tenant)
    with tenant_scope(tenant):
        assert DocumentVersion.objects.count() == 1
    assert now_of(tenant, row).stored == 1


def test_what_a_dead_reader_left_is_read_and_nothing_is_stored_twice(
    tenant: Any, home: UUID, settings: LazySettings
) -> None:
    settings.WEBSITES_PRIVATE = True
    with serving() as site:
        site.page("/", "<title>Shop</title><p>Parcels come back.</p><a href='/more'>more</a>")
        site.page("/more", "<title>More</title><p>Within thirty days.</p>")
        with tenant_scope(tenant):
            row = intake.submit_website(home, address=f"{site.origin}/", once=uuid4(), actor=BY)
            assert lease_any(Queue.PARSE, consumer="doomed") is not None
            first = intake_reading._Part(Parsed((ParsedDocument("Shop", "Parcels come back."),)), f"{site.origin}/", 2)
            intake_reading._store_part(row.pk, first)
        Hands(tenant).work(Queue.TRUSTED)
        assert now_of(tenant, row).state == IntakeState.RUNNING
        let_leases_run_out(tenant)
        read_handed_in(tenant)
    ended = now_of(tenant, row)
    assert ended.state == IntakeState.DONE
    assert ended.stored == 2
    assert ended.done == 2
    with tenant_scope(tenant):
        assert sorted(DocumentVersion.objects.values_list("text", flat=True)) == [
            "Parcels come back.",
            "Within thirty days.",
        ]
        assert not ReadPart.objects.exists()


def test_what_kills_its_readers_ends(tenant: Any, home: UUID) -> None:
    row = hand_in(tenant, home, "a.txt", b"Deadly.")
    for _ in range(MAX_ATTEMPTS):
        with tenant_scope(tenant):
            assert lease_any(Queue.PARSE, consumer="doomed") is not None
        let_leases_run_out(tenant)
    with tenant_scope(tenant):
        expire_leases()
    Hands(tenant).work(Queue.TRUSTED)
    ended = now_of(tenant, row)
    assert ended.state == IntakeState.FAILED
    assert ended.problems == [["", intake_indexing.BROKEN_OFF]]


def test_what_cannot_be_stored_ends_and_its_owner_is_told(
    tenant: Any, home: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = hand_in(tenant, home, "a.txt", b"Fine.")
    monkeypatch.setattr(intake_indexing.sandboxed_parsing, "load_parsed", _raise)
    for _ in range(MAX_ATTEMPTS):
        read_handed_in(tenant)
        let_waits_pass(tenant)
    ended = now_of(tenant, row)
    assert ended.state == IntakeState.FAILED
    assert ended.problems == [["", intake_indexing.OUR_FAULT]]
    assert ended.content is None


def _raise(text: str) -> Any:
    raise RuntimeError


def forge(tenant: Any, row: Intake, **fields: Any) -> None:
    """As a worker that was taken over adds a part, and asks for it to be stored."""
    with tenant_scope(tenant):
        part = ReadPart.objects.create(**{"intake": row, "url": "", "total": 1, "found": LIE, **fields})
        enqueue(Kind.DOCUMENT_INDEX, scope_id=row.pk, payload={"part": str(part.pk)})
    Hands(tenant).work(Queue.TRUSTED)


LIE = sandboxed_parsing.dump_parsed(Parsed((ParsedDocument("Returns", "We refund everything."),)))


def texts(tenant: Any) -> list[str]:
    with tenant_scope(tenant):
        return list(DocumentVersion.objects.values_list("text", flat=True))


def test_part_that_comes_after_the_end_is_no_document(tenant: Any, home: UUID) -> None:
    row = read(tenant, home, "returns.md", b"Parcels come back.")
    forge(tenant, row)
    assert texts(tenant) == ["Parcels come back."]


def test_part_of_a_typed_text_is_no_document(tenant: Any, home: UUID) -> None:
    with tenant_scope(tenant):
        row = intake.submit_text(home, title="Returns", text="Parcels come back.", once=uuid4(), actor=BY)
    forge(tenant, row)
    assert texts(tenant) == ["Parcels come back."]


@pytest.mark.parametrize("url", ["https://other.example/", "", "upload/returns.md"])
def test_part_of_another_place_than_was_named_is_no_document(tenant: Any, home: UUID, url: str) -> None:
    with tenant_scope(tenant):
        row = intake.submit_website(home, address="https://shop.example/", once=uuid4(), actor=BY)
    forge(tenant, row, url=url)
    assert texts(tenant) == []
    assert now_of(tenant, row).state == IntakeState.FAILED


@pytest.mark.parametrize(
    "found",
    [
        "",
        "{}",
        "[]",
        '{"documents": [{"title": "x"}], "problems": []}',
        LIE.replace('"part"', '"owner"'),
        "[" * 9999,
    ],
    ids=["nothing", "empty", "list", "half", "other", "tower"],
)
def test_part_that_no_reader_writes_is_no_document(tenant: Any, home: UUID, found: str) -> None:
    row = hand_in(tenant, home, "returns.md", b"Parcels come back.")
    forge(tenant, row, found=found)
    assert texts(tenant) == []
    assert now_of(tenant, row).state == IntakeState.FAILED


def test_part_of_another_tenants_intake_is_no_document(tenant: Any, other_tenant: Any, home: UUID) -> None:
    row = hand_in(tenant, home, "returns.md", b"Parcels come back.")
    forge(other_tenant, row)
    assert texts(other_tenant) == []
    assert texts(tenant) == []


def test_part_is_bounded_by_the_table(tenant: Any, home: UUID) -> None:
    row = hand_in(tenant, home, "a.md", b"x")
    with tenant_scope(tenant), pytest.raises(IntegrityError, match="memory_readpart_is_bounded"):
        ReadPart.objects.create(intake=row, total=1, found="x" * (ReadPart.LONGEST + 1))


def test_workers_role_reads_what_waits_and_hands_it_over(tenant: Any, home: UUID) -> None:
    row = hand_in(tenant, home, "returns.md", b"Parcels come back.")
    with connected_as(os.environ["DATABASE_WORK_URL"]), tenant_scope(tenant):
        waiting = intake_reading._open_intake(row.pk)
        assert waiting is not None
        (part,) = intake_reading._parts(waiting)
        for _ in range(2):
            intake_reading._store_part(row.pk, part)
        intake_reading._enqueue_end(row.pk)
    assert texts(tenant) == []
    Hands(tenant).work(Queue.TRUSTED)
    assert texts(tenant) == ["Parcels come back."]
    assert now_of(tenant, row).state == IntakeState.DONE
    assert now_of(tenant, row).stored == 1


def test_part_that_is_read_after_the_end_is_not_stored(tenant: Any, home: UUID) -> None:
    row = read(tenant, home, "a.txt", b"Parcels come back.")
    with tenant_scope(tenant):
        intake_reading._store_part(row.pk, intake_reading._Part(Parsed((ParsedDocument("Late", "Too late."),)), "late"))
        assert not ReadPart.objects.exists()
    Hands(tenant).work(Queue.TRUSTED)
    assert texts(tenant) == ["Parcels come back."]


def test_document_is_read_again_from_what_is_kept(tenant: Any, home: UUID) -> None:
    read(tenant, home, "a.txt", b"Parcels come back within thirty days.")
    with tenant_scope(tenant):
        document = Document.objects.get()
        row = intake.refresh_document(document.pk, once=uuid4(), actor=BY)
    read_handed_in(tenant)
    assert now_of(tenant, row).stored == 1
    with tenant_scope(tenant):
        assert DocumentVersion.objects.count() == 1


def test_document_that_was_deleted_meanwhile_is_not_read_again(tenant: Any, home: UUID) -> None:
    read(tenant, home, "a.txt", b"Parcels come back within thirty days.")
    with tenant_scope(tenant):
        document = Document.objects.get()
        row = intake.refresh_document(document.pk, once=uuid4(), actor=BY)
        forget_document(document.pk)
    read_handed_in(tenant)
    assert "deleted" in now_of(tenant, row).problems[0][1]


def test_website_is_read_and_leads_back(tenant: Any, home: UUID, monkeypatch: pytest.MonkeyPatch) -> None:
    from django.conf import settings

    monkeypatch.setattr(settings, "WEBSITES_PRIVATE", True)
    with serving() as site:
        site.page("/", "<title>Shop</title><p>Parcels come back within thirty days.</p>")
        with tenant_scope(tenant):
            intake.submit_website(home, address=f"{site.origin}/", once=uuid4(), actor=BY)
        read_handed_in(tenant)
    assert search(tenant, "How long may a parcel come back?")[0].url == f"{site.origin}/"


@pytest.mark.parametrize("address", ["127.0.0.1", "http://localhost:5432/", "", "not an address", "ftp://example.com"])
def test_address_inside_is_not_taken(tenant: Any, home: UUID, address: str) -> None:
    with tenant_scope(tenant), pytest.raises(SilasError, match="public website"):
        intake.submit_website(home, address=address, once=uuid4(), actor=BY)
