"""`manage.py partitions`: list the partitions of tables that are kept by month, make the coming ones, detach old ones.

`detach MONTH` only says what it would detach until `--yes` is given. What is detached stays in the database as a table
of its own until it is dropped by hand.
"""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError
from datetime import date

from django.core.management.base import BaseCommand, CommandError
from django.db import OperationalError, connections

from kernel.clock import now
from silas_platform import partitions
from silas_platform.partitions import OWNER


def _month(text: str) -> date:
    try:
        return date.fromisoformat(f"{text}-01")
    except ValueError:
        raise ArgumentTypeError("give a month such as 2027-01") from None


class Command(BaseCommand):
    help = "Lists the partitions of tables kept by month; makes the coming months, detaches old ones."

    def add_arguments(self, parser: ArgumentParser) -> None:
        verbs = parser.add_subparsers(dest="verb", title="verbs")
        verbs.add_parser("list", help="every partition, its end, its size and about how many rows (the default verb)")
        verbs.add_parser("make", help="make the coming months, and move rows of a default partition to their month")
        old = verbs.add_parser("detach", help="make old months tables of their own, which no figure counts any more")
        old.add_argument("month", type=_month, metavar="YYYY-MM", help="every partition that ends before this month")
        old.add_argument("--yes", action="store_true", help="do it; without this it only says what it would detach")

    def handle(self, *, verb: str | None, **options: object) -> None:
        if verb in ("make", "detach") and OWNER not in connections:
            raise CommandError("E_PARTITIONS_OWNER: Give DATABASE_OWNER_URL, the role that owns the tables.")
        try:
            if verb == "make":
                self._make()
            elif verb == "detach":
                self._detach(**options)  # type: ignore[arg-type]
            else:
                self._list()
        except OperationalError as error:
            raise CommandError(f"E_PARTITIONS_BUSY: The tables are in use, try again: {error}") from None

    def _list(self) -> None:
        for each in partitions.list_partitions():
            until = each.until or "default"
            self.stdout.write(f"{each.table} {each.name} until={until} rows={each.rows} bytes={each.size}")

    def _make(self) -> None:
        made = partitions.make()
        self.stdout.write("\n".join(f"made {name}" for name in made) or "nothing to make")

    def _detach(self, *, month: date, yes: bool, **_: object) -> None:
        if month > now().date().replace(day=1):
            raise CommandError("E_PARTITIONS_MONTH: This month and those to come are in use; give no later month.")
        old = partitions.older_than(month)
        for each in old:
            if yes:
                rows = partitions.detach(each, actor="command:partitions")
                self.stdout.write(f"detached {each.name} rows={rows}")
            else:
                self.stdout.write(f"would detach {each.name} rows={each.rows} bytes={each.size}")
        if not old:
            self.stdout.write("nothing to detach")
        elif not yes:
            self.stdout.write("Nothing was changed. Repeat with --yes.")
