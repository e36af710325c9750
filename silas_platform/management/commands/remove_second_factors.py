"""For a person who lost every second factor and every recovery code: their password alone lets them in again.

Whoever runs this has made sure, outside of here, that it is this person who asks.
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
