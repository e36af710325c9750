"""Erase everything about one person, and write the receipt to hand to them (docs/contacts.md)."""

from __future__ import annotations

import json
import os
import time
from argparse import ArgumentParser
from pathlib import Path
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError

from apps.contacts.erasure import Progress, erase_some, request_erasure, signed_receipt
from apps.contacts.person_export import person_of_contact, person_of_visitor
from apps.tenants.models import Tenant
from kernel.errors import NotFound, SilasError
from kernel.tenancy import tenant_scope

_PAUSE_SECONDS = 1


class Command(BaseCommand):
    help = "Erases everything stored about a contact, or about the visitor of a conversation, for good."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--tenant", required=True, help="the tenant's slug")
        whose = parser.add_mutually_exclusive_group(required=True)
        whose.add_argument("--contact", type=UUID, help="the contact's id, as its page's address shows it")
        whose.add_argument("--visitor", type=UUID, help="the id of a conversation of a visitor without a contact")
        parser.add_argument("--yes", action="store_true", help="erase without asking")
        parser.add_argument("receipt", type=Path, help="the file to write the receipt to")

    def handle(
        self, *, tenant: str, contact: UUID | None, visitor: UUID | None, yes: bool, receipt: Path, **_: object
    ) -> None:
        company = Tenant.objects.filter(slug=tenant).first()
        if company is None:
            raise CommandError(f"There is no tenant {tenant}.")
        if not yes and input("This erases the person's data for good. Type erase to go on: ").strip() != "erase":
            raise CommandError("Nothing was erased.")
        try:
            with tenant_scope(company.pk):
                person = person_of_contact(contact) if contact else person_of_visitor(UUID(str(visitor)))
                row = request_erasure(person, actor="command:erase_person")
        except NotFound:
            raise CommandError(f"{tenant} has no such {'contact' if contact else 'conversation'}.") from None
        while (progress := self._step(company.pk, row.pk)) is not Progress.ENDED:
            if progress is Progress.WAITS:
                time.sleep(_PAUSE_SECONDS)
        try:
            with tenant_scope(company.pk):
                signed = signed_receipt(row.pk)
            with open(receipt, "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as out:
                json.dump(signed, out, indent=2)
        except SilasError as error:
            raise CommandError(f"Erased. The receipt was not written: {error.message}") from None
        except OSError as error:
            raise CommandError(f"Erased. {receipt} cannot be written: {error.strerror}") from None
        rows = sum(signed["receipt"]["erased"].values())
        self.stdout.write(f"erased tenant={tenant} erasure={row.pk} rows={rows} receipt={receipt}")

    @staticmethod
    def _step(tenant_id: UUID, erasure_id: UUID) -> Progress:
        with tenant_scope(tenant_id):
            return erase_some(erasure_id)
