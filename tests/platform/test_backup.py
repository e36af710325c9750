"""A backup holds every tenant's rows, files and sealed keys; it restores into an empty installation, proven, or not at
all."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import boto3
import psycopg
import pytest
from moto.server import ThreadedMotoServer

from silas_platform.backup import database, keys
from silas_platform.backup.making import restore
from silas_platform.backup.manifest import DATABASE, NAME, BackupRefused, Manifest, measured, source, target
from tests import prepared
from tests.platform.installation import Installation, await_quiet, execute
from tests.platform.runs import eventually

PASSPHRASE = "correct horse battery staple"
STORE = (
    "from django.core.files.storage import storages; from django.core.files.base import ContentFile;"
    "storages['files'].save('aa/bb', ContentFile(b'a picture'))"
)


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """The demo's two companies with a signed approval, and a visitor's file."""
    made = Installation(tmp_path_factory.mktemp("house"))
    prepared.lay(made.var)
    assert made.run("seed_demo")[0] == 0
    assert made.run("shell", "-c", STORE)[0] == 0
    return made


@pytest.fixture(scope="module")
def passphrase(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("secret") / "passphrase"
    path.write_text(f"{PASSPHRASE}\n")
    return path


@pytest.fixture(scope="module")
def copy(house: Installation, passphrase: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("backups") / "monday"
    code, said = house.run("backup", str(place), "--with-keys", str(passphrase))
    assert code == 0, said
    return place


@pytest.fixture(scope="module")
def restored(copy: Path, passphrase: Path, tmp_path_factory: pytest.TempPathFactory) -> Installation:
    made = Installation(tmp_path_factory.mktemp("restored"))
    code, said = made.run("restore", str(copy), "--with-keys", str(passphrase))
    assert code == 0, said
    assert "audit=ok policy=ok approvals=ok" in said
    return made


def test_restored_installation_has_the_files_and_keys(house: Installation, restored: Installation) -> None:
    kept = ["files/aa/bb", "keys/silas_signing_key", "keys/silas_secrets_key", "keys/silas_root_keys"]
    assert [(restored.var / name).read_text().split() for name in kept] == [
        (house.var / name).read_text().split() for name in kept
    ]


def test_backup_holds_an_approval_and_what_it_says_of_itself(copy: Path) -> None:
    manifest = Manifest.parse((copy / NAME).read_text())
    assert manifest.rows["approvals_approvaltoken"] >= 1
    assert manifest.rows["tenants_tenant"] == 2
    assert "guard_spendentry" in manifest.rows
    assert [name for name in manifest.rows if name.startswith("guard_spendentry_")] == []
    assert "signing" not in (copy / NAME).read_text()


def test_second_restore_is_refused(restored: Installation, copy: Path) -> None:
    code, said = restored.run("restore", str(copy))
    assert code == 1
    assert "E_RESTORE_NOT_EMPTY" in said


ALTERED = {
    "table silas_sessions_label": "DELETE FROM silas_sessions_label"
    " WHERE id = (SELECT min(id::text)::uuid FROM silas_sessions_label)",
    "the signature of approval": "UPDATE approvals_approvaltoken SET max_executions = max_executions + 1",
    "audit log of": "UPDATE audit_auditentry SET subject = 'altered' WHERE seq = 5",
    "gates is not certified": "DELETE FROM tenants_policyseal WHERE kind = 'gates'",
}


def test_verification_names_everything_that_was_altered(restored: Installation, copy: Path, tmp_path: Path) -> None:
    altered = Installation(tmp_path / "altered")
    subprocess.run(["cp", "-a", restored.var, altered.var], check=True)
    for statement in ALTERED.values():
        execute(altered.var, statement)
    (altered.var / "files" / "aa" / "bb").unlink()
    code, said = altered.run("restore", str(copy), "--verify")
    assert code == 1
    assert [told for told in [*ALTERED, "file aa/bb is missing"] if told not in said] == []


def test_backup_that_was_killed_leaves_nothing_and_the_next_one_works(house: Installation, tmp_path: Path) -> None:
    place = tmp_path / "killed"
    process = house.start("backup", str(place))
    assert eventually(lambda: list(tmp_path.glob(".killed.partial/*")), seconds=120)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert not place.exists()
    await_quiet(house.var)
    code, said = house.run("backup", str(place))
    assert code == 0, said
    assert "Keys are not in it" in said
    assert [path.name for path in tmp_path.iterdir()] == ["killed"]
    secret = (house.var / "keys" / "silas_signing_key").read_bytes().strip()
    assert [path for path in place.rglob("*") if path.is_file() and secret in path.read_bytes()] == []


def test_restore_needs_the_keys_and_is_repeated_when_it_was_killed(
    copy: Path, tmp_path: Path, passphrase: Path
) -> None:
    made = Installation(tmp_path / "killed")
    assert "E_RESTORE_OTHER_KEYS" in made.run("restore", str(copy))[1]
    assert not (made.var / "files").exists()
    process = made.start("restore", str(copy), "--with-keys", str(passphrase))
    assert eventually(lambda: (made.var / "files" / "aa" / "bb").exists(), seconds=120)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    await_quiet(made.var)
    code, said = made.run("restore", str(copy), "--with-keys", str(passphrase))
    assert code == 0, said


# --- what the owner sees


def test_owner_counts_what_a_superuser_counts(tenant: object, superuser_dsn: str) -> None:
    """A policy without a way for the platform would hide rows from the dump."""
    with psycopg.connect(superuser_dsn) as connection:
        everything = database.count_rows(connection)
    with database.connected() as connection:
        assert database.count_rows(connection) == everything


def test_table_whose_rows_are_hidden_is_refused(tenant: object, superuser_dsn: str, tmp_path: Path) -> None:
    name = f"hidden_{uuid4().hex}"
    with psycopg.connect(superuser_dsn, autocommit=True) as connection:
        connection.execute(f"CREATE TABLE {name} (id int)".encode())
        try:
            connection.execute(f"ALTER TABLE {name} OWNER TO silas_owner".encode())
            connection.execute(f"ALTER TABLE {name} ENABLE ROW LEVEL SECURITY".encode())
            with pytest.raises(BackupRefused, match=f"E_BACKUP_HIDDEN_ROWS.*{name}"):
                database.dump(tmp_path / "dump")
        finally:
            connection.execute(f"DROP TABLE {name}".encode())
    assert not (tmp_path / "dump").exists()


# --- damaged and foreign backups


def _written(place: Path, **changes: object) -> Path:
    """A small backup by hand; `changes` replace fields of its manifest."""
    place.mkdir()
    (place / DATABASE).write_bytes(b"dump")
    files = [vars(measured(place, DATABASE))]
    fields = {"created": "2026-01-01", "server": "18", "migrations": {}, "rows": {}, "files": files, "format": 1}
    (place / NAME).write_text(json.dumps({**fields, **changes}))
    return place


def test_whole_backup_is_read(tmp_path: Path) -> None:
    with source(str(_written(tmp_path / "b"))) as (_, manifest):
        assert [each.size for each in manifest.files] == [4]


def _flip(place: Path) -> None:
    (place / DATABASE).write_bytes(b"dumb")


def _cut(place: Path) -> None:
    (place / DATABASE).write_bytes(b"dum")


def _lose(place: Path) -> None:
    (place / DATABASE).unlink()


@pytest.mark.parametrize("harm", [_flip, _cut, _lose])
def test_damaged_file_is_found(tmp_path: Path, harm: Callable[[Path], None]) -> None:
    place = _written(tmp_path / "b")
    harm(place)
    with pytest.raises(BackupRefused, match="E_BACKUP_DAMAGED"), source(str(place)):
        pass


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"format": 2}, "E_BACKUP_FORMAT"),
        ({"files": [{"name": "../../etc/passwd", "size": 1, "sha256": ""}]}, "E_BACKUP_MANIFEST"),
        ({"files": [{"name": "/etc/passwd", "size": 1, "sha256": ""}]}, "E_BACKUP_MANIFEST"),
        ({"files": "many"}, "E_BACKUP_MANIFEST"),
        ({"surprise": 1}, "E_BACKUP_MANIFEST"),
    ],
)
def test_manifest_that_is_none_is_refused(tmp_path: Path, changes: dict[str, object], code: str) -> None:
    with pytest.raises(BackupRefused, match=code), source(str(_written(tmp_path / "b", **changes))):
        pass


def test_folder_without_a_manifest_is_no_backup(tmp_path: Path) -> None:
    with pytest.raises(BackupRefused, match="E_BACKUP_MISSING"), source(str(tmp_path)):
        pass


def test_backup_of_a_newer_release_is_refused(database: None, tmp_path: Path) -> None:
    place = _written(tmp_path / "b", migrations={"tenants": "9999_tomorrow"})
    with pytest.raises(BackupRefused, match=r"E_BACKUP_NEWER.*tenants\.9999_tomorrow"):
        restore(str(place))


def test_folder_that_holds_something_is_not_written_into(tmp_path: Path) -> None:
    (tmp_path / "letter").write_text("dear")
    with pytest.raises(BackupRefused, match="E_BACKUP_EXISTS"), target(str(tmp_path)):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["letter"]


def test_failed_backup_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError), target(str(tmp_path / "b")) as folder:
        folder.write_text("a disk that fails")
    assert list(tmp_path.iterdir()) == []


# --- keys


def test_keys_open_with_their_passphrase_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SILAS_SIGNING_KEY", "the-signing-key")
    sealed = keys.seal(PASSPHRASE)
    assert keys.unseal(sealed, PASSPHRASE)["SILAS_SIGNING_KEY"] == "the-signing-key"
    assert b"the-signing-key" not in sealed
    for wrong in (sealed.translate(bytes.maketrans(b"ABCDEFGH", b"HGFEDCBA")), b"{}", b"[]", b"none"):
        with pytest.raises(BackupRefused, match="E_BACKUP_PASSPHRASE"):
            keys.unseal(wrong, PASSPHRASE)
    with pytest.raises(BackupRefused, match="E_BACKUP_PASSPHRASE"):
        keys.unseal(sealed, "another passphrase")


def test_short_passphrase_is_refused(tmp_path: Path) -> None:
    (tmp_path / "short").write_text("short\n")
    with pytest.raises(BackupRefused, match="at least 12"):
        keys.read_passphrase(tmp_path / "short")


# --- buckets


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    given = {"ENDPOINT": f"http://{host}:{port}", "REGION": "us-east-1", "ACCESS_KEY": "key", "SECRET_KEY": "secret"}
    for name, value in given.items():
        monkeypatch.setenv(f"SILAS_FILES_{name}", value)
    name = uuid4().hex
    _s3().create_bucket(Bucket=name)
    yield name
    server.stop()


def test_backup_in_a_bucket_is_read_back(bucket: str, tmp_path: Path) -> None:
    place = f"s3://{bucket}/monday"
    with target(place) as folder:
        shutil.copytree(_written(tmp_path / "b"), folder, dirs_exist_ok=True)
    with source(place) as (folder, manifest):
        assert (folder / DATABASE).read_bytes() == b"dump"
        assert [each.name for each in manifest.files] == [DATABASE]
    with pytest.raises(BackupRefused, match="E_BACKUP_EXISTS"), target(place):
        pass


def test_interrupted_upload_is_no_backup(bucket: str, tmp_path: Path) -> None:
    """The manifest is written last."""
    _s3().upload_file(str(_written(tmp_path / "b") / DATABASE), bucket, f"monday/{DATABASE}")
    with pytest.raises(BackupRefused, match="E_BACKUP_MISSING"), source(f"s3://{bucket}/monday"):
        pass


def _s3() -> Any:
    given = {name: os.environ[f"SILAS_FILES_{name}"] for name in ("ENDPOINT", "REGION", "ACCESS_KEY", "SECRET_KEY")}
    return boto3.client(
        "s3",
        endpoint_url=given["ENDPOINT"],
        region_name=given["REGION"],
        aws_access_key_id=given["ACCESS_KEY"],
        aws_secret_access_key=given["SECRET_KEY"],
    )


@pytest.mark.parametrize("place", ["s3://", "s3://bucket", "s3://bucket/"])
def test_bucket_needs_a_prefix(place: str) -> None:
    with pytest.raises(BackupRefused, match="E_BACKUP_PLACE"), target(place):
        pass
