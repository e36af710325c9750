"""Files of visitors: what is not what it says it is, and whoever may not have it, first."""

from __future__ import annotations

import io
import os
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.conf import settings
from django.urls import reverse

from apps.bus import enums as bus
from apps.sessions.models import ChatSession, ChronicleEntry
from apps.tenants.models import Deployment
from apps.visitors import file_storage, file_types, files, forgetting
from apps.visitors.models import VisitorFile
from attack import bombs
from kernel.tenancy import tenant_scope
from sandbox import Choice, Kind, configure
from tests.factories.console import browser
from tests.factories.sessions import make_session
from tests.factories.tenants import make_deployment, make_member
from tests.factories.upkeep import stand
from tests.factories.visitors import FILES, PNG, Browser, docx, offer, packed, refused


def rows(session: ChatSession) -> list[VisitorFile]:
    with tenant_scope(session.tenant_id):
        return list(VisitorFile.objects.filter(session=session))


def place(row: VisitorFile) -> Path:
    return Path(file_storage.storage().path(row.stored_name))


# -- whether it is taken -----------------------------------------------------------------------------------------------


def test_files_are_not_taken_where_nobody_said_so(deployment: Deployment) -> None:
    assert Browser(deployment, make_session(deployment)).send("a.png", PNG).status_code == 404


def test_file_without_a_token_is_refused(visitor: Browser) -> None:
    visitor.token = "forged"
    assert refused(visitor.send("a.png", PNG)) == (401, "not_authenticated")


def test_file_with_the_token_of_another_deployment_is_refused(visitor: Browser, tenant: Any) -> None:
    visitor.deployment = make_deployment(tenant)
    assert refused(visitor.send("a.png", PNG)) == (401, "not_authenticated")


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("page.html", b"<script>alert(1)</script>"),
        ("drawing.svg", b"<svg onload='alert(1)'/>"),
        ("program.exe", b"MZ\x90\x00"),
        ("picture.png", b"<script>alert(1)</script>"),
        ("picture.jpg", PNG),
        ("picture.png.html", PNG),
        ("picture", PNG),
        ("picture.webp", b"RIFF\x00\x00\x00\x00WAVE"),
        ("letter.pdf", b"\n%PDF-1.7"),
        ("notes.txt", b"\x00\x01\x02"),
        ("notes.txt", b"\xff\xfe\xfa"),
        ("notes.csv", b"a,b\x1b[31m"),
        ("empty.txt", b""),
        ("blank.txt", b"  \n"),
        ("letter.docx", PNG),
        ("letter.docx", packed({"word/document.xml": b"<w/>"})),
        ("sheet.xlsx", docx()),
        ("letter.docx", docx({"word/vbaProject.bin": b"macro"})),
        ("letter.docx", docx({"../evil.xml": b"x"})),
        ("letter.docx", docx()[:-30]),
        ("archive.zip", packed({"a": b"b"})),
    ],
)
def test_file_that_is_not_what_is_taken_is_refused(visitor: Browser, name: str, data: bytes) -> None:
    assert visitor.send(name, data).status_code == 400


def test_refused_file_leaves_nothing_behind(visitor: Browser, session: ChatSession) -> None:
    visitor.send("page.html", b"<script>")
    incoming = Path(settings.VAR_DIR) / "incoming"
    assert rows(session) == []
    assert list(incoming.iterdir()) == []


def test_archive_bomb_is_refused(tmp_path: Path) -> None:
    bomb = tmp_path / "bomb.docx"
    bomb.write_bytes(docx({"word/big.xml": b"\0" * (file_types.MOST_UNPACKED + 1)}))
    assert bomb.stat().st_size < 200_000
    assert file_types.kind_of(bomb, bomb.name) is None


def test_archive_that_lies_about_its_sizes_is_refused(tmp_path: Path) -> None:
    bomb = tmp_path / "bomb.docx"
    data, size = docx({"word/big.xml": b"\0" * 5_000_000}), (5_000_000).to_bytes(4, "little")
    bomb.write_bytes(data.replace(size, (9).to_bytes(4, "little")))
    assert file_types.kind_of(bomb, bomb.name) is None


@pytest.mark.parametrize("how", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_archive_that_would_unpack_all_at_once_is_refused(tmp_path: Path, how: int) -> None:
    bomb = tmp_path / "bomb.docx"
    bomb.write_bytes(docx(how=how))
    assert file_types.kind_of(bomb, bomb.name) is None


@pytest.mark.parametrize("name", ["bomb.zip", "overlapping.zip", "lzma.zip", "many.zip", "noise"])
def test_hostile_archive_is_refused_and_costs_this_process_nothing(tmp_path: Path, name: str) -> None:
    bomb = tmp_path / "bomb.docx"
    bomb.write_bytes(bombs.ARCHIVES[name]())
    began = time.process_time()
    assert file_types.kind_of(bomb, bomb.name) is None
    assert time.process_time() - began < 1


@pytest.fixture
def no_sandbox() -> Iterator[None]:
    configure(Choice(kind=Kind.DOCKER, image="no-such-image:0"))
    yield
    configure(Choice())


def test_archive_is_not_taken_where_it_cannot_be_looked_into(
    no_sandbox: None, visitor: Browser, session: ChatSession
) -> None:
    assert refused(visitor.send("letter.docx", docx())) == (503, "sandbox_unavailable")
    assert rows(session) == []
    assert list((Path(settings.VAR_DIR) / "incoming").iterdir()) == []


def test_archive_of_too_many_entries_is_refused(tmp_path: Path) -> None:
    crowd = tmp_path / "crowd.docx"
    crowd.write_bytes(docx({f"e{n}": b"" for n in range(file_types.MOST_ENTRIES)}))
    assert file_types.kind_of(crowd, crowd.name) is None


def test_archive_with_one_entry_twice_is_refused(tmp_path: Path) -> None:
    made = io.BytesIO(docx())
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(made, "a") as archive:
        archive.writestr("word/document.xml", b"<other/>")
    twice = tmp_path / "twice.docx"
    twice.write_bytes(made.getvalue())
    assert file_types.kind_of(twice, twice.name) is None


@pytest.mark.parametrize(
    ("name", "data", "kind"),
    [
        ("a.png", PNG, "png"),
        ("a.JPG", b"\xff\xd8\xff\xe0rest", "jpeg"),
        ("a.gif", b"GIF89arest", "gif"),
        ("a.webp", b"RIFF\x00\x00\x00\x00WEBPrest", "webp"),
        ("a.pdf", b"%PDF-1.7 rest", "pdf"),
        ("a.txt", "Grüße\n".encode(), "txt"),
        ("a.csv", b"a,b\r\n1,2\r\n", "csv"),
        ("a.docx", docx(), "docx"),
    ],
)
def test_file_that_is_what_it_says_is_kept(visitor: Browser, name: str, data: bytes, kind: str) -> None:
    assert visitor.send(name, data).json()["kind"] == kind


def test_kind_that_the_deployment_does_not_take_is_refused(deployment: Deployment, visitor: Browser) -> None:
    offer(deployment, pdfs=False)
    assert refused(visitor.send("a.pdf", b"%PDF-1.7")) == (400, "file_kind")


def test_file_that_is_too_large_is_refused(visitor: Browser) -> None:
    assert refused(visitor.send("a.png", PNG + b"\0" * 1024 * 1024)) == (413, "file_too_large")


def test_file_beyond_the_most_of_a_conversation_is_refused(deployment: Deployment, visitor: Browser) -> None:
    offer(deployment, files_each=1)
    visitor.send("a.png", PNG)
    assert refused(visitor.send("b.png", PNG, client_id="f2")) == (409, "files_full")


def test_file_beyond_what_a_tenant_may_keep_is_refused(visitor: Browser, settings: Any) -> None:
    settings.VISITOR_FILES_BYTES = 10
    assert refused(visitor.send("a.png", PNG)) == (409, "files_full")


def test_files_sent_too_fast_are_refused(visitor: Browser) -> None:
    answers = [visitor.send("a.html", b"x", client_id=f"f{n}").status_code for n in range(31)]
    assert answers == [400] * 30 + [429]


# -- its name ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("../../etc/passwd.png", "passwd.png"),
        ("..\\..\\boot.png", "boot.png"),
        ("a\x00b\r\nc.png", "a b c.png"),
        ("gnp\u202egpj.png", "gnp gpj.png"),
        ("inv\u200boice.png", "inv oice.png"),
        ('a"; filename="x.png', "a__ filename=_x.png"),
        (".png", "file.png"),
        ("...png", "file.png"),
        ("x" * 300 + ".png", "x" * 100 + ".png"),
        ("Ünïcode.PNG", "Ünïcode.png"),
    ],
)
def test_name_keeps_no_path_and_nothing_unseen(name: str, kept: str) -> None:
    assert file_types.clean_name(name, file_types.KINDS["png"]) == kept


# -- what is written ---------------------------------------------------------------------------------------------------


def test_file_has_its_line_in_the_conversation(visitor: Browser, session: ChatSession) -> None:
    sent = visitor.send("a.png", PNG).json()
    with tenant_scope(session.tenant_id):
        entry = ChronicleEntry.objects.get(session=session, kind="file")
    assert entry.payload["file_id"] == sent["file_id"]
    assert entry.seq == sent["seq"]
    assert entry.sender == "visitor"
    assert entry.taint == "external"


def test_file_sent_twice_is_kept_once(visitor: Browser, session: ChatSession) -> None:
    assert visitor.send("a.png", PNG).json() == visitor.send("a.png", PNG).json()
    assert len(rows(session)) == 1


def test_bytes_lie_outside_of_what_is_served(visitor: Browser, session: ChatSession) -> None:
    visitor.send("a.png", PNG)
    kept = place(rows(session)[0])
    assert kept.is_relative_to(Path(settings.VAR_DIR) / "files")
    assert kept.read_bytes() == PNG


def _die_before_the_row(session: ChatSession) -> Path:
    """Bytes without a row, as a process leaves them that dies between the two."""
    path, _, _ = file_storage.receive([b"orphan"], most=10)
    stored_name = file_storage.put(path, session.tenant_id)
    return Path(file_storage.storage().path(stored_name))


def test_death_before_the_row_leaves_bytes_that_are_swept(session: ChatSession) -> None:
    orphan = _die_before_the_row(session)
    os.utime(orphan, (time.time() - 2 * file_storage.ORPHAN_SECONDS,) * 2)
    file_storage.sweep()
    assert not orphan.exists()


def test_orphan_is_swept_by_the_trusted_worker(session: ChatSession) -> None:
    orphan = _die_before_the_row(session)
    os.utime(orphan, (time.time() - 2 * file_storage.ORPHAN_SECONDS,) * 2)
    stand(bus.Kind.FILE_CLEANUP, "files")
    assert not orphan.exists()


def test_sweep_leaves_what_a_row_names(visitor: Browser, session: ChatSession) -> None:
    visitor.send("a.png", PNG)
    kept = place(rows(session)[0])
    os.utime(kept, (time.time() - 2 * file_storage.ORPHAN_SECONDS,) * 2)
    file_storage.sweep()
    assert kept.exists()


def test_sweep_leaves_what_came_just_now(session: ChatSession) -> None:
    path, _, _ = file_storage.receive([b"young"], most=10)
    file_storage.sweep()
    assert path.exists()
    path.unlink()


# -- who may have it back ----------------------------------------------------------------------------------------------


def test_visitor_saves_their_file(visitor: Browser) -> None:
    response = visitor.get(f"files/{visitor.send('a.png', PNG).json()['file_id']}")
    assert b"".join(response.streaming_content) == PNG


def test_file_is_handed_out_as_nothing_but_a_file(visitor: Browser) -> None:
    response = visitor.get(f"files/{visitor.send('a.txt', b'<script>').json()['file_id']}")
    b"".join(response.streaming_content)
    assert response.headers["Content-Disposition"] == 'attachment; filename="a.txt"'
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert response.headers["Content-Security-Policy"] == "default-src 'none'; sandbox"
    assert response.headers["Content-Type"] == "text/plain; charset=utf-8"


def test_file_of_another_conversation_is_not_found(deployment: Deployment, visitor: Browser) -> None:
    file_id = visitor.send("a.png", PNG).json()["file_id"]
    other = Browser(deployment, make_session(deployment))
    assert other.get(f"files/{file_id}").status_code == 404


def test_file_of_another_tenant_is_not_found(visitor: Browser, other_tenant: Any) -> None:
    file_id = visitor.send("a.png", PNG).json()["file_id"]
    theirs = make_deployment(other_tenant)
    assert Browser(theirs, make_session(theirs)).get(f"files/{file_id}").status_code == 404


def test_same_bytes_of_two_tenants_are_kept_apart(visitor: Browser, session: ChatSession, other_tenant: Any) -> None:
    theirs = make_deployment(other_tenant)
    offer(theirs, **FILES)
    other = make_session(theirs)
    visitor.send("a.png", PNG)
    Browser(theirs, other).send("a.png", PNG)
    assert place(rows(session)[0]) != place(rows(other)[0])


@pytest.mark.parametrize("role", ["owner", "approver", "agent", "viewer"])
def test_staff_open_the_file_in_its_conversation(
    visitor: Browser, session: ChatSession, tenant: Any, role: str
) -> None:
    file_id = visitor.send("a.png", PNG).json()["file_id"]
    response = browser(make_member(tenant, role)).get(reverse("console-file", args=[session.pk, file_id]))
    assert response.status_code == 200
    assert b"".join(response.streaming_content) == PNG


def test_staff_find_no_file_under_another_conversation(deployment: Deployment, visitor: Browser, owner: Any) -> None:
    file_id, other = visitor.send("a.png", PNG).json()["file_id"], make_session(deployment)
    assert browser(owner).get(reverse("console-file", args=[other.pk, file_id])).status_code == 404


def test_member_of_another_tenant_finds_no_file(visitor: Browser, session: ChatSession, other_tenant: Any) -> None:
    file_id = visitor.send("a.png", PNG).json()["file_id"]
    stranger = browser(make_member(other_tenant, "owner"))
    assert stranger.get(reverse("console-file", args=[session.pk, file_id])).status_code == 404


def test_nobody_opens_a_file_without_login(visitor: Browser, session: ChatSession) -> None:
    file_id = visitor.send("a.png", PNG).json()["file_id"]
    answer = visitor.client.get(reverse("console-file", args=[session.pk, file_id]))
    assert answer.status_code == 302


def test_thread_shows_the_file(visitor: Browser, session: ChatSession, owner: Any) -> None:
    sent = visitor.send("<b>.png", PNG).json()
    page = browser(owner).get(reverse("console-conversation", args=[session.pk])).content.decode()
    assert reverse("console-file", args=[session.pk, sent["file_id"]]) in page


# -- forgetting --------------------------------------------------------------------------------------------------------


def test_forgetting_a_visitor_deletes_their_files(visitor: Browser, session: ChatSession, owner: Any) -> None:
    visitor.send("a.png", PNG)
    kept = place(rows(session)[0])
    with tenant_scope(session.tenant_id):
        forgetting.forget_visitor(session.pk, owner)
    assert rows(session) == []
    assert not kept.exists()


def test_forgetting_leaves_the_same_bytes_of_somebody_else(
    deployment: Deployment, visitor: Browser, session: ChatSession, owner: Any
) -> None:
    other = make_session(deployment)
    Browser(deployment, other).send("a.png", PNG)
    visitor.send("a.png", PNG)
    with tenant_scope(session.tenant_id):
        forgetting.forget_visitor(session.pk, owner)
    assert place(rows(other)[0]).exists()


def test_forgotten_file_is_not_found(visitor: Browser, session: ChatSession, owner: Any) -> None:
    file_id = visitor.send("a.png", PNG).json()["file_id"]
    browser(owner).post(reverse("console-forget", args=[session.pk]))
    assert visitor.get(f"files/{file_id}").status_code == 404


def test_unknown_file_is_not_found(visitor: Browser) -> None:
    assert visitor.get(f"files/{uuid4()}").status_code == 404


def test_rival_with_the_same_client_id_keeps_one(session: ChatSession) -> None:
    """The other request comes while the first one's bytes are looked at."""

    def slowly() -> Any:
        files.keep(session.tenant_id, session.pk, name="a.png", chunks=[PNG], client_id="same")
        yield PNG

    files.keep(session.tenant_id, session.pk, name="a.png", chunks=slowly(), client_id="same")
    assert len(rows(session)) == 1
