"""`manage.py import_skill SOURCE --tenant SLUG [--folder NAME] [--ref BRANCH] [--format silas|openai|claude]`: SOURCE
is a folder, an archive or a git repository's https address. Prints the report. The skill then waits for approval in
Review."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from apps.skills import card_content, imports
from apps.skills.imports.adapter import FORMATS
from apps.tenants.models import Tenant
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope


class Command(BaseCommand):
    help = "Import a skill and put it up for approval."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("source", help="a folder, an archive, or https://…")
        parser.add_argument("--tenant", required=True, metavar="SLUG")
        parser.add_argument("--folder", default="", help="which skill, where there are several")
        parser.add_argument("--ref", default="", help="a branch or tag")
        parser.add_argument("--format", default="", choices=["", *FORMATS])

    def handle(self, *args: object, **options: Any) -> None:
        tenant = Tenant.objects.filter(slug=options["tenant"]).first()
        if tenant is None:
            raise CommandError(f"There is no tenant {options['tenant']!r}.")
        try:
            fetched = _fetched(options["source"], options["folder"], options["ref"])
            with tenant_scope(tenant):
                version = imports.import_skill(fetched, by="command:import_skill", format_hint=options["format"])
        except SilasError as refusal:
            problems = "\n".join(map(str, refusal.extra.get("problems", ())))
            raise CommandError(f"{refusal.message}\n{problems}".strip()) from refusal
        for line in card_content.report_lines(version.report):
            self.stdout.write(line)
        self.stdout.write(f"{version.name} version {version.number}: {version.get_status_display()}")


def _fetched(source: str, folder: str, ref: str) -> imports.Fetched:
    path = Path(source)
    if path.is_dir():
        return imports.from_folder(path)
    if path.is_file():
        return imports.from_archive(path.read_bytes(), name=path.name, folder=folder)
    return imports.from_git(source, folder=folder, ref=ref)
