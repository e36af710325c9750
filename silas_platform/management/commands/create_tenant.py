"""Create a tenant with its first owner, who sets a password through a one-time link (contract interfaces)."""

from __future__ import annotations

from argparse import ArgumentParser

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.core.validators import MaxLengthValidator, validate_slug

from apps.tenants.services import create_tenant, welcome_path
from kernel.errors import SilasError
from silas_platform.settings import env


class Command(BaseCommand):
    help = "Creates a tenant and prints a one-time login link for its first owner."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug")
        parser.add_argument("--owner-email", required=True)
        parser.add_argument("--name", default="", help="the tenant's name for people; the slug when it is not given")
        parser.add_argument(
            "--url", default="", help="where this installation is reached, such as https://desk.example"
        )

    def handle(self, *, slug: str, owner_email: str, name: str, url: str, **_: object) -> None:
        try:
            validate_slug(slug)
            MaxLengthValidator(60)(slug)
            owner = create_tenant(slug, name=(name or slug)[:120], owner_email=owner_email).membership.user
        except (ValidationError, SilasError) as refusal:
            raise CommandError("; ".join(getattr(refusal, "messages", [str(refusal)]))) from None
        self.stdout.write(f"created tenant={slug} owner={owner.email}")
        if owner.has_usable_password():
            self.stdout.write("The owner has an account already and logs in with it.")
        else:
            self.stdout.write(f"login-link {(url or _address()).rstrip('/')}{welcome_path(owner)}")


def _address() -> str:
    return f"http://{env.text('HOST', '127.0.0.1')}:{env.number('PORT', 8420)}"
