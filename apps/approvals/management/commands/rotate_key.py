"""Replace the key of one approver of one tenant; `--compromised` revokes everything that the old one signed."""

from __future__ import annotations

from argparse import ArgumentParser

from django.core.management.base import BaseCommand, CommandError

from apps.approvals.keys.services import rotate_key
from apps.tenants.models import Membership, Tenant
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope

ACTOR = "rotate_key"


class Command(BaseCommand):
    help = "Replaces an approver's signing key. Needs SILAS_SIGNING_KEY."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--tenant", required=True, help="slug")
        parser.add_argument("--user", required=True, help="e-mail address")
        parser.add_argument("--compromised", action="store_true", help="revoke everything that the old key signed")

    def handle(self, *, tenant: str, user: str, compromised: bool, **_: object) -> None:
        place = Tenant.objects.filter(slug=tenant).first()
        if place is None:
            raise CommandError(f"there is no tenant {tenant}", returncode=2)
        with tenant_scope(place):
            member = Membership.objects.select_related("user").filter(user__email__iexact=user).first()
            if member is None:
                raise CommandError(f"{user} is not a member of {tenant}", returncode=2)
            try:
                key = rotate_key(member.user, actor=ACTOR, compromised=compromised)
            except SilasError as refusal:
                raise CommandError(f"{refusal.code}: {refusal.message}") from refusal
        self.stdout.write(f"rotated tenant={tenant} user={user} key={key.key_id}")
