"""Print the link for setting up the first company, for installations that are not started with `up`."""

from __future__ import annotations

from argparse import ArgumentParser

from django.core.management.base import BaseCommand, CommandError

from apps.console.setup_address import setup_path
from apps.tenants.models import Tenant
from silas_platform.settings import env


class Command(BaseCommand):
    help = "Prints the link for setting up the first company, while there is none."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--url", default="", help="where this installation is reached, such as https://desk.example"
        )

    def handle(self, *, url: str, **_: object) -> None:
        if Tenant.objects.exists():
            raise CommandError("This installation has a company already; create_tenant makes another.")
        here = url or f"http://{env.text('HOST', '127.0.0.1')}:{env.number('PORT', 8420)}"
        self.stdout.write(f"setup-link {here.rstrip('/')}{setup_path()}")
