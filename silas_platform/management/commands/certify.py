"""`manage.py certify`: certify approvers' keys and policy as the database holds them now.

For an installation from a version without an installation key, and after a database was restored or repaired by hand.
Without --yes it only reports what it would certify. Certified rows are trusted from then on: review them in the
console first.
"""

from __future__ import annotations

from argparse import ArgumentParser

from django.core.management.base import BaseCommand, CommandError

from kernel.errors import SilasError
from silas_platform.certification import certify_all


class Command(BaseCommand):
    help = "Certifies approvers' keys and policy as they stand in the database. Needs SILAS_SIGNING_KEY and --yes."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--tenant", default="", help="only this company, by its slug")
        parser.add_argument("--yes", action="store_true", help="do it; without this it only counts")

    def handle(self, *, yes: bool, tenant: str, **_: object) -> None:
        verb = "certified" if yes else "would certify"
        total, known = 0, False
        try:
            for done in certify_all(actor="command:certify", keep=yes, slug=tenant):
                known = True
                total += sum(done.counts.values())
                counts = " ".join(f"{kind}={number}" for kind, number in done.counts.items()) or "nothing"
                self.stdout.write(f"{verb} tenant={done.tenant} {counts}")
        except SilasError as refusal:
            raise CommandError(f"{refusal.code}: {refusal.message}") from None
        if tenant and not known:
            raise CommandError("No company has this slug.")
        if total and not yes:
            raise CommandError("Nothing was changed. If these rows are what your people set up, repeat with --yes.")
