"""`manage.py backup DIR|s3://bucket/prefix`: write a complete backup of the running installation."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path

from django.core.management.base import BaseCommand, CommandError

from silas_platform.backup import keys
from silas_platform.backup.making import back_up
from silas_platform.backup.manifest import BackupRefused


class Command(BaseCommand):
    help = "Backs up database, visitors' files and checkpoints; needs DATABASE_OWNER_URL. People may keep working."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("place", help="a new folder, or s3://bucket/prefix")
        parser.add_argument(
            "--with-keys", type=Path, metavar="FILE", help="also the keys, sealed under the passphrase in this file"
        )

    def handle(self, *, place: str, with_keys: Path | None, **_: object) -> None:
        try:
            manifest = back_up(place, passphrase=keys.read_passphrase(with_keys) if with_keys else "")
        except BackupRefused as refusal:
            raise CommandError(str(refusal)) from None
        size = sum(each.size for each in manifest.files)
        self.stdout.write(
            f"backed up to {place}: rows={sum(manifest.rows.values())} files={len(manifest.files)} bytes={size}"
        )
        if not with_keys:
            self.stdout.write("Keys are not in it: keep SECRET_KEY, SILAS_SIGNING_KEY and SILAS_SECRETS_KEY elsewhere.")
