"""Import a bundle of memories into a tenant (docs/memory.md)."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path

from django.core.management.base import BaseCommand, CommandError

from apps.memory.portability import BundleError, Mode, import_bundle
from apps.tenants.models import Tenant


class Command(BaseCommand):
    help = "Imports a bundle of memories; writes nothing if a line of it does not fit."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--tenant", required=True, help="the tenant's slug")
        parser.add_argument("--mode", choices=[mode.value for mode in Mode], default=Mode.MERGE.value)
        parser.add_argument("--dry-run", action="store_true", help="report what would change, and write nothing")
        parser.add_argument(
            "--vouch", action="store_true", help="keep trust and taint of a bundle that this company did not sign"
        )
        parser.add_argument("file", type=Path)

    def handle(self, *, tenant: str, mode: str, dry_run: bool, vouch: bool, file: Path, **_: object) -> None:
        company = Tenant.objects.filter(slug=tenant).first()
        if company is None:
            raise CommandError(f"There is no tenant {tenant}.")
        try:
            with file.open("rb") as bundle:
                report = import_bundle(
                    company.pk, bundle, mode=Mode(mode), vouched=vouch, dry_run=dry_run, actor="command:memory_import"
                )
        except BundleError as error:
            raise CommandError(f"{file} was not imported: {error}") from None
        except OSError as error:
            raise CommandError(f"{file} cannot be read: {error.strerror}") from None
        self.stdout.write(
            f"{'would import' if dry_run else 'imported'} tenant={tenant} mode={mode}"
            f" trusted={'yes' if report.trusted else 'no'} created={report.created} updated={report.updated}"
            f" unchanged={report.unchanged} deleted={report.deleted} refused={report.refused}"
        )
