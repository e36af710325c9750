"""`manage.py root_key`: the public half of the installation key, which workers pin as SILAS_ROOT_KEYS."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from kernel.trust import root_of
from silas_platform.up.environment import pin_root


class Command(BaseCommand):
    help = "Prints the installation key's public half. Needs SILAS_SIGNING_KEY. Nothing of it is secret."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--pin", type=Path, metavar="FILE", help="also add it to this file of pinned keys")

    def handle(self, *, pin: Path | None, **_: object) -> None:
        if not settings.SILAS_SIGNING_KEY:
            raise CommandError("signing_key_missing: the installation key comes from SILAS_SIGNING_KEY; give it")
        root = root_of(settings.SILAS_SIGNING_KEY)
        if pin is not None:
            pin_root(pin, root)
        self.stdout.write(root)
