"""The manifest of a backup, and where its files are: a folder or a bucket.

`Manifest` is stored as JSON, format 1. Names are relative and use `/`; sizes are bytes; digests are SHA-256 in hex.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

import boto3

from kernel.disk import sync
from silas_platform.settings import env

FORMAT = 1
NAME = "manifest.json"
DATABASE, CHECKPOINTS, ROOT_KEYS, KEYS, FILES = (
    "database.dump",
    "checkpoints.jsonl",
    "root_keys",
    "keys.sealed",
    "files",
)
BUCKET = "s3://"
# Beside the installation's other files: when and where this machine made its newest backup, for `manage.py doctor`.
LAST_BACKUP = "last-backup.json"
_CHUNK = 1 << 20


class BackupRefused(Exception):
    """A backup or restore that cannot be done; `str()` is a code and a sentence for the operator."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")


@dataclass(frozen=True)
class Stored:
    """One file of a backup."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """`migrations`: the newest migration of each app; `rows`: rows of each table in the same snapshot as the dump;
    `missing`: names of visitors' files that were deleted while the backup ran."""

    created: str
    server: str
    migrations: dict[str, str]
    rows: dict[str, int]
    files: list[Stored] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    format: int = FORMAT

    def text(self) -> str:
        return json.dumps(asdict(self), indent=1, sort_keys=True)

    @classmethod
    def parse(cls, text: str) -> Manifest:
        """Raises `BackupRefused` for anything that is not a manifest of this format."""
        try:
            read = json.loads(text)
            if read["format"] != FORMAT:
                raise BackupRefused("E_BACKUP_FORMAT", f"This release reads format {FORMAT}, not {read['format']!r}.")
            manifest = cls(**{**read, "files": [Stored(**each) for each in read["files"]]})
        except (ValueError, TypeError, KeyError):
            raise BackupRefused("E_BACKUP_MANIFEST", f"{NAME} is damaged.") from None
        for each in manifest.files:
            parts = PurePosixPath(each.name).parts
            if not parts or each.name.startswith("/") or ".." in parts:
                raise BackupRefused("E_BACKUP_MANIFEST", f"{NAME} names a file outside of the backup.")
        return manifest


def measured(folder: Path, name: str) -> Stored:
    """The file's entry in the manifest; reads it in pieces."""
    with (folder / name).open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return Stored(name, file.tell(), digest)


@contextmanager
def target(place: str) -> Iterator[Path]:
    """A folder to write into, which becomes the backup at `place` when the block ends without an error.

    Raises `BackupRefused` where something is at `place` already.
    """
    if place.startswith(BUCKET):
        with TemporaryDirectory(prefix="silas-backup-") as made:
            bucket, prefix = _bucket_of(place)
            if _keys_below(bucket, prefix):
                raise BackupRefused("E_BACKUP_EXISTS", f"{place} is not empty.")
            yield Path(made)
            _upload(Path(made), bucket, prefix)
        return
    final = Path(place).resolve()
    if final.exists() and (not final.is_dir() or any(final.iterdir())):
        raise BackupRefused("E_BACKUP_EXISTS", f"{final} exists and is not an empty folder.")
    draft = final.with_name(f".{final.name}.partial")
    shutil.rmtree(draft, ignore_errors=True)  # what a killed backup left behind
    draft.mkdir(mode=0o700, parents=True)
    try:
        yield draft
        _sync(draft)
        draft.replace(final)
        sync(final.parent)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise


@contextmanager
def source(place: str) -> Iterator[tuple[Path, Manifest]]:
    """The backup at `place` as a local folder with its manifest, every file checked against it.

    Raises `BackupRefused` for a place without a backup, and for a file that is missing or was changed.
    """
    if place.startswith(BUCKET):
        with TemporaryDirectory(prefix="silas-restore-") as made:
            _download(Path(made), *_bucket_of(place))
            yield Path(made), _checked(Path(made), place)
        return
    yield Path(place), _checked(Path(place), place)


def _checked(folder: Path, place: str) -> Manifest:
    try:
        text = (folder / NAME).read_text()
    except (OSError, UnicodeDecodeError):
        raise BackupRefused("E_BACKUP_MISSING", f"There is no backup at {place}: {NAME} cannot be read.") from None
    manifest = Manifest.parse(text)
    for each in manifest.files:
        if not (folder / each.name).is_file():
            raise BackupRefused("E_BACKUP_DAMAGED", f"{each.name} is missing from the backup.")
        if measured(folder, each.name) != each:
            raise BackupRefused("E_BACKUP_DAMAGED", f"{each.name} is not what was backed up.")
    return manifest


def _sync(folder: Path) -> None:
    """Put every file and name below the folder on the disk."""
    for root, _, names in os.walk(folder):
        for path in (*(Path(root) / name for name in names), Path(root)):
            sync(path)


# --- buckets: the server and credentials are those of visitors' files (SILAS_FILES_…)


def _bucket_of(place: str) -> tuple[str, str]:
    bucket, _, prefix = place.removeprefix(BUCKET).partition("/")
    if not bucket or not prefix.strip("/"):
        raise BackupRefused("E_BACKUP_PLACE", "Name a bucket and a prefix: s3://bucket/prefix.")
    return bucket, f"{prefix.strip('/')}/"


def _client() -> Any:
    given = {
        "endpoint_url": env.text("SILAS_FILES_ENDPOINT"),
        "region_name": env.text("SILAS_FILES_REGION"),
        "aws_access_key_id": env.text("SILAS_FILES_ACCESS_KEY"),
        "aws_secret_access_key": env.text("SILAS_FILES_SECRET_KEY"),
    }
    return boto3.client("s3", **{name: value for name, value in given.items() if value})


def _keys_below(bucket: str, prefix: str) -> list[str]:
    pages = _client().get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
    return [each["Key"] for page in pages for each in page.get("Contents", [])]


def _upload(folder: Path, bucket: str, prefix: str) -> None:
    client = _client()
    names = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    for name in [*(name for name in names if name != NAME), NAME]:
        client.upload_file(str(folder / name), bucket, prefix + name)


def _download(folder: Path, bucket: str, prefix: str) -> None:
    client = _client()
    for key in _keys_below(bucket, prefix):
        path = (folder / key.removeprefix(prefix)).resolve()
        if folder.resolve() not in path.parents:
            raise BackupRefused("E_BACKUP_MANIFEST", "The bucket names a file outside of the backup.")
        path.parent.mkdir(parents=True, exist_ok=True)
        client.download_file(bucket, key, str(path))
