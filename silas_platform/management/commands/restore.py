"""`manage.py restore DIR|s3://bucket/prefix`: restore a backup into an empty installation, and prove it.

The proof runs in a process of its own, which reads the restored keys.
"""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError

from silas_platform.backup import keys
from silas_platform.backup.making import restore
from silas_platform.backup.manifest import BackupRefused, source
from silas_platform.backup.verifying import problems, verify_in_child


class Command(BaseCommand):
    help = "Restores a backup into an installation without companies, migrates it, and verifies the result."
    # An empty database has no tables to check.
    requires_system_checks = []  # noqa: RUF012  (Django's own shape)

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("place", help="a folder, or s3://bucket/prefix")
        parser.add_argument(
            "--with-keys", type=Path, metavar="FILE", help="also the keys; the file holds their passphrase"
        )
        parser.add_argument(
            "--other-keys", action="store_true", help="although its keys are lost: nothing it certified is trusted then"
        )
        parser.add_argument("--verify", action="store_true", help="restore nothing: compare this installation with it")

    def handle(self, *, place: str, with_keys: Path | None, other_keys: bool, verify: bool, **_: object) -> None:
        try:
            if verify:
                self._verify(place)
                return
            passphrase = keys.read_passphrase(with_keys) if with_keys else ""
            restore(place, passphrase=passphrase, other_keys=other_keys)
        except BackupRefused as refusal:
            raise CommandError(str(refusal)) from None
        call_command("migrate", database="owner", verbosity=0, interactive=False, skip_checks=True)
        self.stdout.write("restored; verifying")
        self.stdout.flush()
        if not verify_in_child(place):
            raise CommandError("The restored installation is not what was backed up; see above.")

    def _verify(self, place: str) -> None:
        with source(place) as (_, manifest):
            found = list(problems(manifest, exact=True))
        for each in found:
            self.stderr.write(each)
        if found:
            raise CommandError(f"E_RESTORE_UNPROVEN: {len(found)} differences.")
        rows = sum(manifest.rows.values())
        self.stdout.write(f"verified: rows={rows} files={len(manifest.files)} audit=ok policy=ok approvals=ok")
