"""Reseal secrets with a new SILAS_SECRETS_KEY, or with new data keys of the companies, without downtime.

To change the installation key: start every process with the new one as SILAS_SECRETS_KEY and the previous one as
SILAS_SECRETS_KEY_OLD (or their _FILE forms), run this command, and restart without the old one. `--data-keys` creates a
new data key for every company (or `--tenant SLUG`) and reseals its secrets. Safe to repeat.
"""

from __future__ import annotations

from argparse import ArgumentParser

from django.core.management.base import BaseCommand, CommandError

from apps.tenants import secret_rotation, vault
from apps.tenants.queries import all_tenants
from kernel.tenancy import tenant_scope

ACTOR = "rotate_secrets"


class Command(BaseCommand):
    help = "Reseals secrets with the current SILAS_SECRETS_KEY, or with new data keys, without downtime."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--tenant", default="", help="only this company, by its slug")
        parser.add_argument("--data-keys", action="store_true", help="also create new data keys")

    def handle(self, **options: object) -> None:
        tenants = all_tenants(str(options["tenant"]))
        if not tenants:
            raise CommandError("No company has this slug.")
        if not options["tenant"]:
            self.stdout.write(f"resealed installation values={secret_rotation.reseal_authenticators()}")
        for tenant in tenants:
            with tenant_scope(tenant):
                wrapped, direct = vault.rewrap(actor=ACTOR), secret_rotation.reseal_columns()
                values = vault.rotate_data_key(actor=ACTOR) if options["data_keys"] else 0
            self.stdout.write(f"resealed tenant={tenant.slug} keys={wrapped} direct={direct} values={values}")
