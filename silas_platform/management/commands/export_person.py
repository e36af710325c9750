"""Export everything about one person as a ZIP, to hand to them (docs/contacts.md)."""

from __future__ import annotations

import os
from argparse import ArgumentParser
from functools import partial
from pathlib import Path
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError

from apps.contacts.person_export import export_person, person_of_contact, person_of_visitor
from apps.tenants.models import Tenant
from kernel.errors import NotFound


class Command(BaseCommand):
    help = "Exports everything stored about a contact, or about the visitor of a conversation, as a ZIP."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--tenant", required=True, help="the tenant's slug")
        whose = parser.add_mutually_exclusive_group(required=True)
        whose.add_argument("--contact", type=UUID, help="the contact's id, as its page's address shows it")
        whose.add_argument("--visitor", type=UUID, help="the id of a conversation of a visitor without a contact")
        parser.add_argument("file", type=Path)

    def handle(self, *, tenant: str, contact: UUID | None, visitor: UUID | None, file: Path, **_: object) -> None:
        company = Tenant.objects.filter(slug=tenant).first()
        if company is None:
            raise CommandError(f"There is no tenant {tenant}.")
        find = partial(person_of_contact, contact) if contact else partial(person_of_visitor, UUID(str(visitor)))
        part = file.with_name(f"{file.name}.part")
        try:
            # Personal data: only this user may read the file.
            with open(part, "wb", opener=lambda path, flags: os.open(path, flags, 0o600)) as out:
                report = export_person(find, company.pk, out, actor="command:export_person")
            part.replace(file)
        except NotFound:
            part.unlink(missing_ok=True)
            raise CommandError(f"{tenant} has no such {'contact' if contact else 'conversation'}.") from None
        except OSError as error:
            part.unlink(missing_ok=True)
            raise CommandError(f"{file} cannot be written: {error.strerror}") from None
        self.stdout.write(f"exported tenant={tenant} rows={report.rows} file={file}")
