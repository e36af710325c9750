"""One company moves from an installation to another that serves others: whole and proven, or not at all."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.test import Client
from django.urls import reverse

from apps.audit.models import AuditEntry
from apps.bus.enums import Queue
from apps.bus.models import QueueMessage
from apps.bus.queries import due_scopes
from apps.simulations.models import SimulationCopy
from apps.tenants.enums import Role
from apps.tenants.models import Membership, Tenant, User
from kernel.error_codes import ErrorCode
from kernel.errors import SilasError
from kernel.tenancy import for_each_tenant, refuse_closed_companies, scope, tenant_scope
from silas_platform.backup.manifest import NAME, BackupRefused, measured
from silas_platform.moving import closing
from silas_platform.moving.exporting import export_company
from silas_platform.moving.importing import import_company
from silas_platform.moving.manifest import people_columns, tables
from silas_platform.up.environment import ROOT
from tests import prepared
from tests.factories.bus import lease_any, make_message
from tests.factories.console import browser
from tests.factories.tenants import make_tenant
from tests.platform.installation import Installation, await_quiet

_IN_COMPANY = """
import json
from django.apps import apps
from apps.tenants.models import Tenant, User
from kernel.tenancy import tenant_scope
tenant = Tenant.objects.get(slug="SLUG")
with tenant_scope(tenant):
"""
COUNTS = """
    counts = {}
    for model in apps.get_models():
        if not model._meta.proxy and any(field.name == "tenant" for field in model._meta.concrete_fields):
            counts[model._meta.label] = model._default_manager.filter(tenant_id=tenant.pk).count()
print("counts", json.dumps(counts))
"""
# What a company may have: also money spent in a month long past, and a month that was detached from the ledger.
FILL = """
    import uuid
    from django.core.files.base import ContentFile
    from django.core.files.storage import storages
    from django.db import connections
    from apps.guard.models import SpendEntry, ToolCall
    from apps.sessions.models import ChatSession
    from apps.simulations.models import SimulationCopy
    from apps.tenants import vault
    from apps.tenants.models import Deployment, Membership
    from apps.visitors.models import VisitorFile
    from kernel.clock import now
    from tests.factories.approvals import make_plan, make_token
    storages["files"].save("aa/moved", ContentFile(b"a picture"))
    VisitorFile.objects.create(session=ChatSession.objects.first(), seq=1, name="a.png", kind="png", size=9,
        digest="0" * 64, stored_name="aa/moved", client_id="moved", created_at=now())
    print("sealed", vault.seal(b"a secret of theirs", belongs_to="test").hex())
    make_token(tenant, Membership.objects.filter(role="owner").first().user, make_plan())
    call = ToolCall.objects.first()
    SpendEntry.objects.create(call=call, kind="settle", intent="converse", day="2020-02-03", amount=1)
    copy = {"copy_tenant_id": uuid.uuid4(), "copy_deployment_id": uuid.uuid4()}
    SimulationCopy.objects.get_or_create(deployment=Deployment.objects.first(), defaults=copy)
connections["owner"].cursor().execute("CREATE TABLE guard_spendentry_2001_01 (LIKE guard_spendentry)")
"""
# In the new installation these months are detached, so that imported rows are older than every partition.
DETACH = """
from django.db import connections
connections["owner"].cursor().execute("ALTER TABLE guard_spendentry DETACH PARTITION guard_spendentry_first")
"""
# An import that stops before its COMMIT.
IMPORT_HALF = """
import time
from silas_platform.moving import importing

def stop(*_):
    print("loaded", flush=True)
    time.sleep(300)

importing._require_whole = stop
importing.import_company("PLACE", passphrase="correct horse battery staple")
"""
UNSEAL = """
    from apps.tenants import vault
    print("secret", vault.unseal(bytes.fromhex("SEALED"), belongs_to="test").decode())
    from apps.approvals.models import ApprovalToken
    from apps.approvals.tokens.services import unproven_tokens
    print("approvals", ApprovalToken.objects.count(), unproven_tokens())
    from apps.tenants.models import Membership
    people = [row.user for row in Membership.objects.select_related("user")]
    print("people", len(people), sum(person.has_usable_password() for person in people),
        sum(person.is_staff or person.is_superuser for person in people))
    from apps.guard.models import SpendEntry
    print("spent", SpendEntry.objects.earliest("day").day)
    from silas_platform.partitions import list_partitions
    print("misplaced", [each.name for each in list_partitions() if each.until is None and not each.is_empty])
    print("oldest", min((each for each in list_partitions() if each.until), key=lambda each: each.until).name)
"""
GO_ON = """
    from apps.sessions.models import ChatSession, ChronicleEntry
    from apps.visitors.start_session import start_session
    from apps.sessions.services import accept_message
    from apps.bus.models import QueueMessage
    session = ChatSession.objects.filter(is_test=False).order_by("-last_active_at").first()
    before = session.seq
    accept_message(session.pk, text="Are you still there?", client_id="after-the-move")
with tenant_scope(tenant):
    print("seq", ChatSession.objects.get(pk=session.pk).seq - before)
    late = QueueMessage.objects.filter(state="queued", available_at__year__gt=2500).count()
    newest = QueueMessage.objects.order_by("-position").first()
    print("late", late, newest.scope_id.endswith(str(session.pk)))
"""


@dataclass
class Move:
    """A company that was closed and exported, the installation it comes from, and the sealed value it keeps."""

    old: Installation
    place: Path
    passphrase: Path
    sealed: str
    counts: dict[str, int]


@pytest.fixture(autouse=True)
def as_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """As commands of the operator, also after another test has loaded the web application."""
    monkeypatch.setattr(scope, "_refuses_closed", False)


def said_by(installation: Installation, script: str, slug: str, **values: str) -> dict[str, str]:
    """What a script in the company's scope prints, by the first word of each line."""
    code = f"{_IN_COMPANY}{script}".replace("SLUG", slug)
    for name, value in values.items():
        code = code.replace(name, value)
    left, said = installation.run("shell", "-c", code)
    assert left == 0, said
    return dict(line.split(" ", 1) for line in said.splitlines() if " " in line)


def slugs(installation: Installation) -> list[str]:
    script = "from apps.tenants.models import Tenant; print('slugs', *Tenant.objects.values_list('slug', flat=True))"
    left, said = installation.run("shell", "-c", script)
    assert left == 0, said
    return next(line for line in said.splitlines() if line.startswith("slugs")).split()[1:]


def counts_of(installation: Installation, slug: str) -> dict[str, int]:
    counts: dict[str, int] = json.loads(said_by(installation, COUNTS, slug)["counts"])
    return counts


@pytest.fixture(scope="module")
def move(tmp_path_factory: pytest.TempPathFactory) -> Move:
    old = Installation(tmp_path_factory.mktemp("old"))
    passphrase = tmp_path_factory.mktemp("secret") / "passphrase"
    passphrase.write_text("correct horse battery staple\n")
    prepared.lay(old.var)
    assert old.run("seed_demo")[0] == 0
    slug = "meridian-insurance"
    place = tmp_path_factory.mktemp("moves") / "export"
    filled = said_by(old, f"{FILL}with tenant_scope(tenant):\n{COUNTS}", slug)
    left, said = old.run("company", "close", slug)
    assert left == 0, said
    left, said = old.run("company", "export", slug, str(place), "--passphrase", str(passphrase))
    assert left == 0, said
    return Move(old, place, passphrase, filled["sealed"], json.loads(filled["counts"]))


@pytest.fixture(scope="module")
def new(move: Move, tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """An installation with keys and a company of its own, into which the other one was imported."""
    made = Installation(tmp_path_factory.mktemp("new"))
    prepared.lay(made.var)
    assert made.run("create_tenant", "resident", "--owner-email", "owner@resident.example")[0] == 0
    before = json.loads(said_by(made, f"{COUNTS}{DETACH}", "resident")["counts"])
    process = made.start("shell", "-c", IMPORT_HALF.replace("PLACE", str(move.place)))
    assert process.stdout is not None
    assert any("loaded" in line for line in process.stdout), "the import ended early"
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    await_quiet(made.var)
    assert slugs(made) == ["resident"]
    left, said = made.run("company", "import", str(move.place), "--passphrase", str(move.passphrase))
    assert left == 0, said
    assert "audit=ok policy=ok approvals=ok" in said
    assert counts_of(made, "resident") == before
    return made


def slug_of(move: Move) -> str:
    slug: str = json.loads((move.place / NAME).read_text())["slug"]
    return slug


def test_rows_secrets_approvals_and_files_are_those_of_the_old_installation(move: Move, new: Installation) -> None:
    said = said_by(new, f"{UNSEAL}{COUNTS}", slug_of(move), SEALED=move.sealed)
    here = json.loads(said["counts"])
    changed = {name for name, count in move.counts.items() if here[name] != count}
    assert changed == {"audit.AuditEntry", "audit.AuditCheckpoint", "simulations.SimulationCopy"}
    assert here["simulations.SimulationCopy"] == 0
    assert here["audit.AuditEntry"] > move.counts["audit.AuditEntry"]
    assert said["secret"] == "a secret of theirs"
    assert said["spent"] == "2020-02-03"
    assert said["misplaced"] == "[]"
    assert said["oldest"].startswith("guard_spendentry_before_20")
    approvals = said["approvals"]
    assert int(approvals.split()[0]) >= 1
    assert approvals.endswith(" []")
    people, with_password, with_rights = said["people"].split()
    assert int(people) >= 2
    assert with_password == "0"
    assert with_rights == "0"
    assert (new.var / "files" / "aa" / "moved").read_bytes() == b"a picture"


def test_a_stranger_verifies_the_audit_log_of_the_moved_company(move: Move, new: Installation, tmp_path: Path) -> None:
    left, said = new.run("audit_verify")
    assert left == 0, said
    bundle = tmp_path / "log.jsonl"
    left, said = new.run("audit_export", "--tenant", slug_of(move), str(bundle))
    assert left == 0, said
    roots = [(each.var / "keys" / "silas_root_keys").read_text().split()[0] for each in (move.old, new)]
    pinned = [part for root in roots for part in ("--key", root)]
    argv = [sys.executable, str(ROOT / "tools" / "verify_audit.py"), str(bundle), *pinned]
    checked = subprocess.run(argv, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "company_imported" in bundle.read_text()
    assert "company_closed" in bundle.read_text()


def test_conversation_goes_on_once_the_company_is_open(move: Move, new: Installation) -> None:
    left, said = new.run("company", "open", slug_of(move))
    assert left == 0, said
    told = said_by(new, GO_ON, slug_of(move))
    assert told["seq"] == "1"
    assert told["late"] == "0 True"


def test_second_import_is_refused(move: Move, new: Installation) -> None:
    left, said = new.run("company", "import", str(move.place), "--passphrase", str(move.passphrase))
    assert left == 1
    assert "E_COMPANY_EXISTS" in said


def test_old_copy_is_kept_and_marked_as_moved(move: Move) -> None:
    left, said = move.old.run("company", "close", slug_of(move), "--moved")
    assert left == 0, said
    kept = counts_of(move.old, slug_of(move))
    assert kept["silas_sessions.ChronicleEntry"] == move.counts["silas_sessions.ChronicleEntry"]


# --- what is exported, and what of a closed company is served


def test_every_table_of_a_company_is_moved(database: None) -> None:
    models = [model for model in apps.get_models() if not model._meta.proxy and model is not SimulationCopy]
    theirs = {model._meta.db_table for model in models if "tenant" in {f.name for f in model._meta.concrete_fields}}
    assert set(tables()) == theirs
    accounts = {
        (model._meta.db_table, field.column)
        for model in models
        for field in model._meta.concrete_fields
        if model._meta.db_table in theirs and field.related_model is User
    }
    assert set(people_columns()) == accounts


@contextmanager
def refusing() -> Iterator[None]:
    """As in a web process or a worker."""
    refuse_closed_companies()
    try:
        yield
    finally:
        refuse_closed_companies(on=False)


def test_member_of_a_closed_company_reaches_the_others(tenant: Any, owner: Any) -> None:
    other = make_tenant()
    with tenant_scope(other):
        Membership.objects.create(tenant=other, user=owner, role=Role.OWNER)
    closing.close(Tenant.objects.get(pk=tenant.pk))
    client = browser(owner)
    with refusing():
        assert client.get("/console/").status_code == 503
        assert f'value="{other.slug}"' in client.get("/console/review/").content.decode()
        assert client.post(reverse("console-tenant"), {"tenant": other.slug}).status_code == 302
        assert client.get("/console/inbox/").status_code == 200


@pytest.mark.parametrize(("moved", "status", "code"), [(False, 503, "company_closed"), (True, 410, "company_moved")])
def test_nothing_is_served_of_a_closed_company(
    tenant: Any, deployment: Any, owner: Any, moved: bool, status: int, code: str
) -> None:
    other = make_tenant()
    path = f"/api/v1/widget/{deployment.public_key}/sessions"
    assert Client().post(path, {}, content_type="application/json").status_code == 201
    message = make_message(tenant)
    closing.close(Tenant.objects.get(pk=tenant.pk), moved=moved)
    with refusing():
        answer = Client().post(path, {}, content_type="application/json")
        assert answer.status_code == status
        assert answer.json()["error"]["code"] == code
        page = browser(owner).get("/console/inbox/")
        assert page.status_code == status
        assert page.headers["Content-Type"].startswith("text/html")
        assert str(ErrorCode(code).text) in unescape(page.content.decode())
        assert browser(owner).get("/api/v1/contacts").status_code == status
        assert tenant.pk not in {each.tenant_id for each in due_scopes(tuple(Queue), most=1_000_000)}
        with pytest.raises(SilasError), tenant_scope(tenant):
            pass
        with tenant_scope(other):
            pass
    closing.open_again(Tenant.objects.get(pk=tenant.pk))
    with pytest.raises(BackupRefused, match="E_COMPANY_OPEN"):
        closing.open_again(Tenant.objects.get(pk=tenant.pk))
    assert Client().post(path, {}, content_type="application/json").status_code == 201
    with tenant_scope(tenant):
        assert QueueMessage.objects.get(pk=message.pk).available_at == message.available_at
        events = AuditEntry.objects.filter(event__in=("company_closed", "company_opened")).values_list(
            "event", flat=True
        )
        assert list(events) == ["company_closed", "company_opened"]


def test_upkeep_leaves_a_closed_company_out_without_an_error(tenant: Any, caplog: pytest.LogCaptureFixture) -> None:
    closing.close(Tenant.objects.get(pk=tenant.pk))

    def work(tenant_id: Any) -> int:
        with tenant_scope(tenant_id):
            return 1

    other = make_tenant()
    with refusing():
        assert for_each_tenant([tenant.pk, other.pk], work) == 1
    assert "company_left_out" not in caplog.text


def test_job_that_runs_is_waited_for(tenant: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(closing, "_WAIT_SECONDS", 0.1)
    message = make_message(tenant)
    with tenant_scope(tenant):
        assert lease_any(Queue.EXECUTOR, consumer="test") is not None
    waiting = make_message(tenant, scope_id="another")
    with pytest.raises(BackupRefused, match="E_COMPANY_BUSY"):
        closing.close(Tenant.objects.get(pk=tenant.pk))
    with tenant_scope(tenant):
        assert QueueMessage.objects.get(pk=waiting.pk).available_at == waiting.available_at
        assert QueueMessage.objects.get(pk=message.pk).state == "leased"
    assert Tenant.objects.get(pk=tenant.pk).closed == ""


# --- exports that are refused


@pytest.mark.parametrize(
    ("closed", "place", "code"), [("", "acme", "E_COMPANY_OPEN"), ("closed", "s3://moves/acme", "E_COMPANY_EXPORT")]
)
def test_open_company_is_not_exported_and_none_to_a_bucket(tmp_path: Path, closed: str, place: str, code: str) -> None:
    place = place if place.startswith("s3:") else str(tmp_path / place)
    with pytest.raises(BackupRefused, match=code):
        export_company(Tenant(slug="acme", closed=closed), place, passphrase="correct horse battery")
    assert not list(tmp_path.iterdir())


@pytest.fixture
def exported(move: Move, tmp_path: Path) -> Path:
    return Path(shutil.copytree(move.place, tmp_path / "copy"))


def refusal(place: Path, passphrase: str = "correct horse battery staple") -> str:
    with pytest.raises(BackupRefused) as refused:
        import_company(str(place), passphrase=passphrase)
    return str(refused.value).partition(":")[0]


def test_changed_export_is_refused(exported: Path, database: None) -> None:
    table = exported / "tables" / "tenants_membership"
    table.write_bytes(table.read_bytes().replace(b"approver", b"owner"))
    assert refusal(exported) == "E_COMPANY_TAMPERED"
    manifest = json.loads((exported / NAME).read_text())
    for each in manifest["files"]:
        each |= vars(measured(exported, each["name"]))
    (exported / NAME).write_text(json.dumps(manifest))
    assert refusal(exported) == "E_COMPANY_TAMPERED"
    (exported / "people.json").unlink()
    assert refusal(exported) == "E_COMPANY_TAMPERED"


def test_export_needs_its_passphrase_and_the_same_release(
    exported: Path, database: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert refusal(exported, "another passphrase") == "E_BACKUP_PASSPHRASE"
    assert refusal(exported / "tables") == "E_COMPANY_EXPORT"
    monkeypatch.setattr("silas_platform.moving.importing.newest_migrations", lambda: {"tenants": "9999_tomorrow"})
    assert refusal(exported) == "E_COMPANY_SCHEMA"


def test_account_of_somebody_else_is_refused(exported: Path, database: None) -> None:
    people = json.loads((exported / "people.json").read_text())
    other = User.objects.create_user(people[0]["email"])
    try:
        assert refusal(exported) == "E_COMPANY_ACCOUNT"
    finally:
        address = f"{other.pk}@example.org"
        User.objects.filter(pk=other.pk).update(email=address, username=address)
    assert not Tenant.objects.filter(slug=json.loads((exported / NAME).read_text())["slug"]).exists()
