"""Make a backup, and restore one into an empty installation.

Order of a backup: checkpoints, then the database, then files. A checkpoint or pin that is newer than the database would
count as a log that was cut and a policy that was put back, so those come first; bytes without a row are harmless, so
files come last.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from django.conf import settings
from django.core.files import File
from django.core.files.storage import Storage, storages
from django.db.migrations.loader import MigrationLoader

from kernel import trust
from kernel.clock import now
from silas_platform.backup import database, keys
from silas_platform.backup.manifest import (
    CHECKPOINTS,
    DATABASE,
    FILES,
    KEYS,
    LAST_BACKUP,
    NAME,
    ROOT_KEYS,
    BackupRefused,
    Manifest,
    Stored,
    measured,
    source,
    target,
)
from silas_platform.schema_version import newest_of
from silas_platform.up.environment import KEYS as INSTALLATION_KEYS
from silas_platform.up.environment import ROOT_KEYS as ROOT_KEYS_FILE
from silas_platform.up.environment import certify_once, is_given, write_private


def back_up(place: str, *, passphrase: str = "") -> Manifest:
    """Write a backup to a folder or `s3://bucket/prefix`; with a passphrase the keys too, sealed under it.

    Raises `BackupRefused`; then nothing is left at `place`.
    """
    with target(place) as folder:
        stored = []
        if Path(settings.CHECKPOINTS_FILE).exists():
            shutil.copyfile(settings.CHECKPOINTS_FILE, folder / CHECKPOINTS)
            stored.append(measured(folder, CHECKPOINTS))
        (folder / ROOT_KEYS).write_text("".join(f"{root}\n" for root in trust.roots()))
        stored.append(measured(folder, ROOT_KEYS))
        if passphrase:
            (folder / KEYS).write_bytes(keys.seal(passphrase))
            stored.append(measured(folder, KEYS))
        rows = database.dump(folder / DATABASE)
        stored.append(measured(folder, DATABASE))
        copied, missing = _copy_files(folder)
        with database.connected() as connection:
            manifest = Manifest(
                created=now().isoformat(),
                server=database.server_version(connection),
                migrations=_newest_migrations(),
                rows=rows,
                files=[*stored, *copied],
                missing=missing,
            )
        (folder / NAME).write_text(manifest.text())
    noted = {"created": manifest.created, "place": place}
    write_private(Path(settings.VAR_DIR) / LAST_BACKUP, json.dumps(noted))
    return manifest


def restore(place: str, *, passphrase: str = "", other_keys: bool = False) -> Manifest:
    """Restore the backup at `place` into this installation, which must hold no company yet. Nothing that the backup's
    signing key certified is trusted under another one, so that is refused unless `other_keys` is set.

    The database comes last and in one transaction, so that a restore that was killed is simply repeated. Raises
    `BackupRefused`.
    """
    with source(place) as (folder, manifest):
        named = {each.name for each in manifest.files}
        _require_known(manifest)
        with database.connected() as connection:
            if not database.is_empty(connection):
                raise BackupRefused("E_RESTORE_NOT_EMPTY", "This installation holds companies; restore into a new one.")
            if database.other_sessions(connection):
                raise BackupRefused("E_RESTORE_RUNNING", "Stop web, workers and beat of this installation first.")
        if passphrase and any(is_given(os.environ, name) for name in INSTALLATION_KEYS):
            raise BackupRefused("E_RESTORE_KEYS_GIVEN", "The environment gives keys; restore them there, by hand.")
        unsealed = keys.unseal((folder / KEYS).read_bytes(), passphrase) if passphrase and KEYS in named else {}
        if passphrase and not unsealed:
            raise BackupRefused("E_BACKUP_NO_KEYS", "This backup holds no keys.")
        if not (unsealed or other_keys) and not set(trust.roots()) & set((folder / ROOT_KEYS).read_text().split()):
            message = "The signing key here is not that of the backup: give this installation the backup's keys."
            raise BackupRefused("E_RESTORE_OTHER_KEYS", message)
        _put_files(folder, manifest)
        _put_trust(folder, named, unsealed)
        database.drop_all()
        database.restore(folder / DATABASE)
    return manifest


def _require_known(manifest: Manifest) -> None:
    disk = MigrationLoader(None, ignore_no_migrations=True).disk_migrations
    known = {*disk, *(name for migration in disk.values() for name in migration.replaces)}
    if unknown := [f"{app}.{name}" for app, name in manifest.migrations.items() if (app, name) not in known]:
        message = f"The backup is of a newer release: {', '.join(sorted(unknown)[:3])} is unknown here."
        raise BackupRefused("E_BACKUP_NEWER", message)


def _newest_migrations() -> dict[str, str]:
    with database.connected() as connection:
        rows = connection.execute("SELECT app, name FROM django_migrations").fetchall()
    return newest_of((str(label), str(name)) for label, name in rows)


def _put_trust(folder: Path, named: set[str], unsealed: dict[str, str]) -> None:
    """Put checkpoints and keys where this installation keeps them; what was there is renamed, not deleted."""
    kept = Path(settings.CHECKPOINTS_FILE)
    if CHECKPOINTS in named:
        _set_aside(kept)
        write_private(kept, (folder / CHECKPOINTS).read_text())
    if not unsealed:
        return
    home = Path(settings.VAR_DIR) / "keys"
    for name, value in unsealed.items():
        if value:
            _set_aside(home / name.lower())
            write_private(home / name.lower(), f"{value}\n")
    _set_aside(home / ROOT_KEYS_FILE.lower())
    write_private(home / ROOT_KEYS_FILE.lower(), (folder / ROOT_KEYS).read_text())
    certify_once({"SILAS_VAR": str(settings.VAR_DIR)}).unlink(missing_ok=True)


def _set_aside(path: Path) -> None:
    if path.exists():
        path.replace(path.with_name(f"{path.name}.before-restore"))


def _copy_files(folder: Path) -> tuple[list[Stored], list[str]]:
    storage, copied, missing = storages["files"], [], []
    for name in _names(storage):
        path = folder / FILES / name
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with storage.open(name) as content, path.open("wb") as copy:
                shutil.copyfileobj(content, copy)
        except FileNotFoundError:
            path.unlink(missing_ok=True)
            missing.append(name)
        else:
            copied.append(measured(folder, f"{FILES}/{name}"))
    return copied, missing


def _put_files(folder: Path, manifest: Manifest) -> None:
    storage = storages["files"]
    for each in manifest.files:
        if each.name.startswith(f"{FILES}/"):
            name = each.name.removeprefix(f"{FILES}/")
            storage.delete(name)  # of a restore that was killed
            with (folder / each.name).open("rb") as content:
                storage.save(name, File(content))


def _names(storage: Storage, folder: str = "") -> Iterator[str]:
    try:
        folders, files = storage.listdir(folder)
    except FileNotFoundError:
        return
    yield from (f"{folder}/{name}" if folder else name for name in sorted(files))
    for inner in sorted(folders):
        yield from _names(storage, f"{folder}/{inner}" if folder else inner)
