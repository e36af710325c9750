"""Write a tenant's memories to a portable bundle (docs/memory.md)."""

from __future__ import annotations

import os
from argparse import ArgumentParser
from pathlib import Path

from django.core.management.base import BaseCommand, CommandError

from apps.memory.portability import export_bundle
from apps.tenants.models import Tenant
from kernel.tenancy import tenant_scope


class Command(BaseCommand):
    help = "Writes a tenant's memories to a bundle of JSON lines."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--tenant", required=True, help="the tenant's slug")
        parser.add_argument("--raw", action="store_true", help="also write what was said, word for word")
        parser.add_argument("file", type=Path)

    def handle(self, *, tenant: str, raw: bool, file: Path, **_: object) -> None:
        company = Tenant.objects.filter(slug=tenant).first()
        if company is None:
            raise CommandError(f"There is no tenant {tenant}.")
        part = file.with_name(f"{file.name}.part")
        count = -2
        try:
            # Memories are personal data: only this user may read the file.
            with open(part, "wb", opener=lambda path, flags: os.open(path, flags, 0o600)) as out, tenant_scope(company):
                for line in export_bundle(include_raw=raw, actor="command:memory_export"):
                    out.write(line)
                    count += 1
            part.replace(file)
        except OSError as error:
            raise CommandError(f"{file} cannot be written: {error.strerror}") from None
        self.stdout.write(f"exported tenant={tenant} memories={count} file={file}")
