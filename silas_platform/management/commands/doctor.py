"""`manage.py doctor`: examine the running installation and print one line for each finding; exit 1 for a fault."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from dataclasses import asdict

from django.core.management.base import BaseCommand

from silas_platform.doctor import Level, examine


class Command(BaseCommand):
    help = "Examines configuration, database, Redis, workers, queues, keys, sandbox, mail, disk and backups."
    # The checks are one of the examinations.
    requires_system_checks = []  # noqa: RUF012  (Django's own shape)

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="one JSON object a line")

    def handle(self, **options: object) -> None:
        faults = 0
        for finding in examine():
            faults += finding.level == Level.FAULT
            line = f"{finding.level.value:<8} {finding.subject:<14} {finding.text}"
            self.stdout.write(json.dumps(asdict(finding)) if options["json"] else line)
            self.stdout.flush()
        if faults:
            sys.exit(1)
