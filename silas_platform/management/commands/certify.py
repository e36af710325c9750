"""`manage.py certify`: certify approvers' keys and policy as the database holds them now.

For an installation that comes from a version without an installation key, and after a database was restored or mended
by hand. Without --yes it only says what it would certify. What it certifies is believed from then on: look at the
console first.
"""

from __future__ import annotations

from argparse import ArgumentParser

from django.core.management.base import BaseCommand, CommandError

from kernel.errors import SilasError
from silas_platform.certifying import certify_all


class Command(BaseCommand):
    help = "Certifies approvers' keys and policy as they stand in the database. Needs SILAS_SIGNING_KEY and --yes."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--yes", action="store_true", help="do it; without this it only counts")

    def handle(self, *, yes: bool, **_: object) -> None:
        verb = "certified" if yes else "would certify"
        wanting = 0
        try:
            for done in certify_all(actor="command:certify", keep=yes):
                wanting += sum(done.counts.values())
                told = " ".join(f"{kind}={number}" for kind, number in done.counts.items()) or "nothing"
                self.stdout.write(f"{verb} tenant={done.tenant} {told}")
        except SilasError as refusal:
            raise CommandError(f"{refusal.code}: {refusal.message}") from None
        if wanting and not yes:
            raise CommandError("Nothing was changed. If these rows are what your people set up, repeat with --yes.")
