"""`manage.py seed_demo`: the two demo tenants, complete; safe to repeat. The logins are printed last."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from kernel.errors import SilasError
from silas_platform import demo


class Command(BaseCommand):
    help = "Puts the demo tenants in place, with staff logins for development. Safe to repeat."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--month", action="store_true", help="with thirty days of history")

    def handle(self, *args: Any, **options: Any) -> None:
        if not settings.DEMO:
            raise CommandError("the demo has public passwords; it is for development only")
        try:
            logins = demo.seed(progress=self.stdout.write, month=options["month"])
        except SilasError as refusal:
            raise CommandError(f"{refusal.code}: {refusal.message}") from refusal
        for login in logins:
            self.stdout.write(login.line())
