"""What is handed in is read once, by one reader, and says what became of it."""

from __future__ import annotations

import io
import threading
import zlib
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import connection
from django.db.models.functions import Now
from pypdf import PdfWriter

from apps.memory import intake
from apps.memory.enums import IntakeState
from apps.memory.models import Document, DocumentVersion, Intake
from apps.memory.services import forget_document, open_collection
from kernel.errors import NotFound, SilasError
from kernel.tenancy import tenant_scope
from tests.factories.memory import pdf_of, search
from tests.factories.website import serving

BY = "user:test"


@pytest.fixture
def home(tenant: Any) -> UUID:
    with tenant_scope(tenant):
        return UUID(str(open_collection("help").pk))


def hand_in(tenant: Any, home: UUID, name: str, data: bytes, *, once: UUID | None = None) -> Intake:
    with tenant_scope(tenant):
        return intake.hand_in_file(home, name=name, data=data, once=once or uuid4(), actor=BY)


def now_of(tenant: Any, row: Intake) -> Intake:
    with tenant_scope(tenant):
        found: Intake = Intake.objects.get(pk=row.pk)
        return found


def read(tenant: Any, home: UUID, name: str, data: bytes) -> Intake:
    row = hand_in(tenant, home, name, data)
    while intake.read_next(tenant.pk):
        pass
    return now_of(tenant, row)


def test_file_that_was_read_is_found(tenant: Any, home: UUID) -> None:
    row = read(tenant, home, "returns.md", b"# Returns\n\nParcels come back within thirty days.")
    assert (row.state, row.stored, row.content) == (IntakeState.DONE, 1, None)
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
    assert row.state == IntakeState.FAILED and said in row.problems[0][1]


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
    assert not set("/\\\x00\n") & set(row.name) and row.reference == f"upload/{row.name}"


@pytest.mark.parametrize("name", ["virus.exe", "noending", "", "a.zip", "a.pdf.zip", ".md", "a.jsonl"])
def test_other_kinds_are_refused(tenant: Any, home: UUID, name: str) -> None:
    with pytest.raises(SilasError, match="is none of"):
        hand_in(tenant, home, name, b"text")


def test_empty_file_is_refused(tenant: Any, home: UUID) -> None:
    with pytest.raises(SilasError, match="is empty"):
        hand_in(tenant, home, "a.txt", b"")


def test_large_file_is_refused(tenant: Any, home: UUID) -> None:
    with pytest.raises(SilasError, match="larger than 10 MB"):
        hand_in(tenant, home, "a.txt", b"x" * (intake.LARGEST_UPLOAD + 1))


def test_form_that_comes_twice_is_one_row(tenant: Any, home: UUID) -> None:
    once = uuid4()
    assert hand_in(tenant, home, "a.txt", b"x", once=once).pk == hand_in(tenant, home, "a.txt", b"x", once=once).pk


def test_collection_of_another_tenant_does_not_exist(other_tenant: Any, home: UUID) -> None:
    with pytest.raises(NotFound):
        hand_in(other_tenant, home, "a.txt", b"x")


def test_row_is_claimed_by_one_reader(tenant: Any, home: UUID) -> None:
    hand_in(tenant, home, "a.txt", b"One text, read once.")
    counts: list[int] = []

    def rival_reads() -> None:
        counts.append(intake.read_next(tenant.pk))
        connection.close()

    rivals = [threading.Thread(target=rival_reads) for _ in range(3)]
    for rival in rivals:
        rival.start()
    for rival in rivals:
        rival.join()
    with tenant_scope(tenant):
        assert DocumentVersion.objects.count() == 1 and sum(counts) == 1


def test_what_a_dead_reader_left_is_read(tenant: Any, home: UUID) -> None:
    row = hand_in(tenant, home, "a.txt", b"Left behind.")
    with tenant_scope(tenant):
        Intake.objects.filter(pk=row.pk).update(state=IntakeState.RUNNING, attempts=1)
    assert intake.read_next(tenant.pk) == 1


def test_what_is_being_read_is_left_alone(tenant: Any, home: UUID) -> None:
    row = hand_in(tenant, home, "a.txt", b"In hand.")
    with tenant_scope(tenant):
        Intake.objects.filter(pk=row.pk).update(state=IntakeState.RUNNING, due_at=Now() + timedelta(minutes=1))
    assert intake.read_next(tenant.pk) == 0


def test_what_kills_its_readers_ends(tenant: Any, home: UUID) -> None:
    row = hand_in(tenant, home, "a.txt", b"Deadly.")
    with tenant_scope(tenant):
        Intake.objects.filter(pk=row.pk).update(state=IntakeState.RUNNING, attempts=3)
    intake.read_next(tenant.pk)
    assert now_of(tenant, row).state == IntakeState.FAILED


def test_document_is_read_again_from_what_is_kept(tenant: Any, home: UUID) -> None:
    read(tenant, home, "a.txt", b"Parcels come back within thirty days.")
    with tenant_scope(tenant):
        document = Document.objects.get()
        row = intake.read_again(document.pk, once=uuid4(), actor=BY)
    assert intake.read_next(tenant.pk) == 1
    assert now_of(tenant, row).stored == 1
    with tenant_scope(tenant):
        assert DocumentVersion.objects.count() == 1


def test_document_that_was_deleted_meanwhile_is_not_read_again(tenant: Any, home: UUID) -> None:
    read(tenant, home, "a.txt", b"Parcels come back within thirty days.")
    with tenant_scope(tenant):
        document = Document.objects.get()
        row = intake.read_again(document.pk, once=uuid4(), actor=BY)
        forget_document(document.pk)
    intake.read_next(tenant.pk)
    assert "deleted" in now_of(tenant, row).problems[0][1]


def test_website_is_read_and_leads_back(tenant: Any, home: UUID, monkeypatch: pytest.MonkeyPatch) -> None:
    from django.conf import settings

    monkeypatch.setattr(settings, "WEBSITES_PRIVATE", True)
    with serving() as site:
        site.page("/", "<title>Shop</title><p>Parcels come back within thirty days.</p>")
        with tenant_scope(tenant):
            intake.hand_in_website(home, address=f"{site.origin}/", once=uuid4(), actor=BY)
        intake.read_next(tenant.pk)
    assert search(tenant, "How long may a parcel come back?")[0].url == f"{site.origin}/"


@pytest.mark.parametrize("address", ["127.0.0.1", "http://localhost:5432/", "", "not an address", "ftp://example.com"])
def test_address_inside_is_not_taken(tenant: Any, home: UUID, address: str) -> None:
    with tenant_scope(tenant), pytest.raises(SilasError, match="public website"):
        intake.hand_in_website(home, address=address, once=uuid4(), actor=BY)
