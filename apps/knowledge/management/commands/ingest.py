"""`manage.py ingest --tenant SLUG --collection NAME PATH…`: read documents into a tenant's knowledge.

Safe to repeat: what has not changed is left alone. `--dry-run` lists what would change and stores nothing. Exit
code 1 when a file could not be read (the others were), 2 when nothing could be done.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from tqdm import tqdm

from apps.knowledge import services
from apps.knowledge.schemas import FileReport, IngestReport, Outcome
from apps.tenants.models import Tenant


class Command(BaseCommand):
    help = "Read Markdown, text, HTML, PDF or JSONL documents into a tenant's knowledge. Safe to repeat."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "paths", nargs="+", type=Path, metavar="PATH", help="a file, or a folder with everything in it"
        )
        parser.add_argument("--tenant", required=True, metavar="SLUG")
        parser.add_argument("--collection", required=True, metavar="NAME", help="made if there is none of that name")
        parser.add_argument("--min-level", default="public", metavar="LEVEL", help="who may read a new collection")
        parser.add_argument("--root", type=Path, metavar="FOLDER", help="documents are known by their path below it")
        parser.add_argument("--dry-run", action="store_true", help="list what would change, and store nothing")

    def handle(self, *args: object, **options: Any) -> None:
        tenant = Tenant.objects.filter(slug=options["tenant"]).first()
        if tenant is None:
            raise CommandError(f"There is no tenant {options['tenant']!r}.", returncode=2)
        place = {"collection": options["collection"], "paths": options["paths"], "root": options["root"]}
        with tqdm(unit="file", disable=None, file=self.stderr) as bar:

            def advance(file: FileReport, total: int) -> None:
                self._advance(bar, file, total)

            report: IngestReport
            if options["dry_run"]:
                preview = services.preview_ingest(tenant, **place, progress=advance)
                report, changes = preview, preview.changes
            else:
                report = services.ingest(
                    tenant, **place, min_level=options["min_level"], actor="command:ingest", progress=advance
                )
                changes = {}
        for reference, outcome in changes.items():
            if outcome is not Outcome.UNCHANGED:
                self.stdout.write(f"{outcome} {reference}")
        self._summarise(report)
        if report.failed:
            sys.exit(1)

    def _advance(self, bar: Any, file: FileReport, total: int) -> None:
        bar.total = total
        bar.update()
        for problem in file.problems:
            where = f" ({problem.where})" if problem.where else ""
            bar.clear()
            self.stderr.write(f"{file.path}{where}: {problem.code}: {problem.message}")

    def _summarise(self, report: IngestReport) -> None:
        counts = " ".join(f"{outcome}={report.counts[outcome]}" for outcome in Outcome)
        problems = sum(len(file.problems) for file in report.files)
        self.stdout.write(f"documents {counts} problems={problems} skipped={len(report.skipped)}")
