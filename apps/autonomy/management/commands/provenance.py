"""`manage.py provenance VERB --tenant SLUG (--task ID | --session ID | --skill NAME)`

List, quarantine, release or purge what one task, session or skill has written. Prints one line of counts; exit code 1
for an unknown tenant or a malformed id. `purge` deletes permanently and requires `--yes`.
"""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from apps.autonomy.services import provenance
from apps.autonomy.services.provenance import KINDS, Origin
from apps.tenants.models import Tenant
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope

_ACTOR = "command:provenance"


class Command(BaseCommand):
    help = "List, quarantine, release or purge what one task, session or skill has written."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("verb", choices=["list", "quarantine", "release", "purge"])
        parser.add_argument("--tenant", required=True, metavar="SLUG")
        origin = parser.add_mutually_exclusive_group(required=True)
        for kind, name in (("task", "ID"), ("session", "ID"), ("skill", "NAME")):
            origin.add_argument(f"--{kind}", metavar=name)
        parser.add_argument("--yes", action="store_true", help="confirm a purge, which cannot be undone")

    def handle(self, *args: object, **options: Any) -> None:
        tenant = Tenant.objects.filter(slug=options["tenant"]).first()
        if tenant is None:
            raise CommandError(f"There is no tenant {options['tenant']!r}.")
        if options["verb"] == "purge" and not options["yes"]:
            raise CommandError("This deletes permanently. Check with `list` first, then add --yes.")
        origin = next(Origin(kind, options[kind]) for kind in KINDS if options[kind])
        try:
            with tenant_scope(tenant):
                counts = _apply(options["verb"], origin)
        except SilasError as refusal:
            raise CommandError(refusal.message) from refusal
        summary = " ".join(f"{name}={count}" for name, count in counts.items())
        self.stdout.write(f"{options['verb']} {origin.kind}={origin.ref} {summary}")


def _apply(verb: str, origin: Origin) -> dict[str, int]:
    match verb:
        case "quarantine":
            return provenance.quarantine(origin, actor=_ACTOR).counts
        case "release":
            return provenance.release(origin, actor=_ACTOR).counts
        case "purge":
            return provenance.purge(origin, actor=_ACTOR)
    return provenance.rows_of(origin).counts
