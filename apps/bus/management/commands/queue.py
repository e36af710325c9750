"""Show what a tenant's queues hold, list what failed, and retry or drop it (docs/operations.md, Queues)."""

from __future__ import annotations

from argparse import ArgumentParser
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError

from apps.bus import dead_letters, queries
from apps.tenants.models import Tenant
from kernel.errors import SilasError
from kernel.tenancy import INSTALLATION, tenant_scope

MAX_SHOWN = 200


class Command(BaseCommand):
    help = "Shows the queues and dead letters of a tenant or the installation; retries or drops a message."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--tenant", default="", help="a tenant's slug; without it, work that belongs to no tenant")
        decision = parser.add_mutually_exclusive_group()
        decision.add_argument("--retry", metavar="ID", type=UUID, help="deliver a failed message again")
        decision.add_argument("--drop", metavar="ID", type=UUID, help="close a failed message without its effect")
        decision.add_argument("--retry-all", action="store_true", help=f"retry all that failed, at most {MAX_SHOWN}")

    def handle(self, *, tenant: str, retry: UUID | None, drop: UUID | None, retry_all: bool, **_: object) -> None:
        company = Tenant.objects.filter(slug=tenant).first() if tenant else INSTALLATION
        if company is None:
            raise CommandError(f"There is no tenant {tenant}.")
        with tenant_scope(company):
            try:
                if drop is not None:
                    dead_letters.drop(drop, user=None)
                retried = [message.pk for message in queries.dead_letters(MAX_SHOWN)] if retry_all else [retry]
                for message_pk in filter(None, retried):
                    dead_letters.retry(message_pk, user=None)
            except SilasError as refusal:
                raise CommandError(str(refusal)) from None
            self._show()

    def _show(self) -> None:
        for depth in queries.depths():
            since = f" oldest-due={depth.oldest:%Y-%m-%dT%H:%M:%SZ}" if depth.oldest else ""
            self.stdout.write(
                f"queue={depth.queue} due={depth.waiting} scheduled={depth.scheduled} in-progress={depth.held}"
                f" failed={depth.dead}{since}"
            )
        for message in queries.dead_letters(MAX_SHOWN):
            self.stdout.write(
                f"failed id={message.pk} queue={message.queue} kind={message.kind} attempts={message.attempts}"
                f" reason={message.reason or '-'}"
            )
