"""Import an export of another help desk into a tenant (docs/imports.md)."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from uuid import uuid4

from django.core.management.base import BaseCommand, CommandError

from apps.imports.enums import System
from apps.imports.runs import submit
from apps.tenants.models import Tenant
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope


class Command(BaseCommand):
    help = "Hands an export of Chatwoot, Intercom or Zendesk to the workers, who import it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--tenant", required=True, help="the tenant's slug")
        parser.add_argument("--dry-run", action="store_true", help="report what would change, and write nothing")
        parser.add_argument("system", choices=System.values)
        parser.add_argument("file", type=Path)

    def handle(self, *, tenant: str, dry_run: bool, system: str, file: Path, **_: object) -> None:
        company = Tenant.objects.filter(slug=tenant).first()
        if company is None:
            raise CommandError(f"There is no tenant {tenant}.")
        try:
            data = file.read_bytes()
        except OSError as error:
            raise CommandError(f"{file} cannot be read: {error.strerror}") from None
        try:
            with tenant_scope(company):
                run = submit(
                    system=System(system),
                    name=file.name,
                    data=data,
                    dry_run=dry_run,
                    once=uuid4(),
                    actor="command:import_contacts",
                )
        except SilasError as refusal:
            raise CommandError(refusal.message) from None
        self.stdout.write(f"import={run.pk} system={system} dry_run={dry_run}: its report is on the page Contacts")
