"""Remove all second factors of a person who lost them and their recovery codes.

The operator must verify the person's identity before running this.
"""

from __future__ import annotations

from argparse import ArgumentParser

from django.core.management.base import BaseCommand, CommandError

from apps.tenants.models import User
from apps.tenants.second_factors import remove_all


class Command(BaseCommand):
    help = "Removes a person's authenticator app, login passkeys and recovery codes, and ends their logins."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("email")

    def handle(self, *, email: str, **_: object) -> None:
        user = User.objects.filter(email__iexact=email).first()
        if user is None:
            raise CommandError(f"There is no account {email}.")
        remove_all(user)
        self.stdout.write(f"{user.email} logs in with the password alone now.")
