"""Seal every approver's key with another SILAS_SIGNING_KEY.

Give the new key as SILAS_SIGNING_KEY and the old one as SILAS_SIGNING_KEY_OLD (or their _FILE forms), with no web
process running. Safe to repeat. A key that neither opens is listed, left as it is, and makes the exit code 1. The audit
log's checkpoints start using a key under the new seal by themselves.
"""

from __future__ import annotations

import sys

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from apps.approvals.keys.services import reseal_keys
from apps.tenants.queries import all_tenants
from kernel.tenancy import tenant_scope


class Command(BaseCommand):
    help = "Seals approvers' keys with another SILAS_SIGNING_KEY; the old one is SILAS_SIGNING_KEY_OLD."

    def handle(self, **_: object) -> None:
        old, new = settings.SILAS_SIGNING_KEY_OLD, settings.SILAS_SIGNING_KEY
        if not old or not new or old == new:
            raise CommandError("give the new key as SILAS_SIGNING_KEY and the old one as SILAS_SIGNING_KEY_OLD")
        incomplete = False
        for tenant in all_tenants():
            with tenant_scope(tenant):
                done = reseal_keys(old=old, new=new, actor="reseal_keys")
            incomplete = incomplete or bool(done.unopened)
            self.stdout.write(
                f"resealed tenant={tenant.slug} keys={done.resealed} left={','.join(done.unopened) or '-'}"
            )
        if incomplete:
            sys.exit(1)
