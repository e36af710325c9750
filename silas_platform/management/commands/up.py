"""`manage.py up`: the whole platform on this machine, in the foreground (contract interfaces, Commands)."""

import os
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from silas_platform.up.environment import StartRefused
from silas_platform.up.lines import Screen
from silas_platform.up.run import run


class Command(BaseCommand):
    help = "Start PostgreSQL and Redis unless addresses are given, migrate, run web, worker and beat until Ctrl-C."
    # The start checks what it needs itself; the database that a check would ask is not up yet.
    requires_system_checks = []  # noqa: RUF012

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--no-demo", action="store_true", help="leave an empty database empty")
        parser.add_argument("--no-worker", action="store_true", help="web only: no worker, no beat")

    def handle(self, *args: Any, **options: Any) -> None:
        screen = Screen()
        try:
            run(os.environ, demo=not options["no_demo"], work=not options["no_worker"], screen=screen)
        except StartRefused as refused:
            raise CommandError(str(refused)) from None
        if screen.closed:
            os._exit(0)  # Python would end by writing to the pipe that nobody reads
