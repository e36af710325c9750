"""Seal what is secret with another SILAS_SECRETS_KEY, or with new data keys of the companies, while everything runs.

Another installation's key: start every process with the new one as SILAS_SECRETS_KEY and the one before as
SILAS_SECRETS_KEY_OLD (or their _FILE forms), run this, and start them once more without the old one. `--data-keys`
gives every company (or `--tenant SLUG`) a new data key and seals what it sealed anew. Safe to repeat.
"""

from __future__ import annotations

from argparse import ArgumentParser

from django.core.management.base import BaseCommand, CommandError

from apps.tenants import secret_rotation, vault
from apps.tenants.queries import all_tenants
from kernel.tenancy import tenant_scope

ACTOR = "rotate_secrets"


class Command(BaseCommand):
    help = "Seals what is secret with the present SILAS_SECRETS_KEY, or with new data keys, without stopping anything."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--tenant", default="", help="only this company, by its slug")
        parser.add_argument("--data-keys", action="store_true", help="new data keys too")

    def handle(self, **options: object) -> None:
        tenants = [one for one in all_tenants() if options["tenant"] in ("", one.slug)]
        if not tenants:
            raise CommandError("there is no such tenant")
        if not options["tenant"]:
            self.stdout.write(f"resealed installation values={secret_rotation.reseal_authenticators()}")
        for tenant in tenants:
            with tenant_scope(tenant):
                wrapped, direct = vault.rewrap(actor=ACTOR), secret_rotation.reseal_columns()
                values = vault.rotate_data_key(actor=ACTOR) if options["data_keys"] else 0
            self.stdout.write(f"resealed tenant={tenant.slug} keys={wrapped} direct={direct} values={values}")
