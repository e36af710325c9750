"""`manage.py prepare`: bring the database up to date and check the start; `manage.py up` runs it before its programs.

Speaks as the owner of the database. Prints what a person should read, then one line of JSON for the supervisor
(`silas_platform.up.preparation.Prepared`).
"""

from __future__ import annotations

import io
import json
import os

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, SystemCheckError

from apps.console.setup_address import setup_path
from apps.tenants.models import Tenant
from silas_platform.certification import certify_all
from silas_platform.up.environment import certify_once


class Command(BaseCommand):
    help = "Check the installation, migrate its database and collect static files; `up` runs this at each start."
    # The checks run here, before and after the migrations.
    requires_system_checks = []  # noqa: RUF012  (Django's own shape)

    def handle(self, *args: object, **options: object) -> None:
        try:
            call_command("check", tags=["database"], databases=["owner"], stdout=io.StringIO())
            call_command("migrate", database="owner", verbosity=0, interactive=False, skip_checks=True)
            call_command("check", databases=["default"], stdout=io.StringIO())
        except (SystemCheckError, ImproperlyConfigured) as fault:
            raise CommandError(str(fault)) from None
        if not getattr(settings, "WHITENOISE_USE_FINDERS", False):
            call_command("collectstatic", verbosity=0, interactive=False)
        self._certify_once()
        is_empty = not Tenant.objects.exists()
        prepared = {
            "is_empty": is_empty,
            "demo": bool(settings.DEMO),
            "allowed_hosts": settings.ALLOWED_HOSTS,
            "setup_path": setup_path() if is_empty else "",
        }
        self.stdout.write(json.dumps(prepared))

    def _certify_once(self) -> None:
        """Certify what an older version left behind, at the first start with an installation key."""
        mark = certify_once(os.environ)
        if not mark.exists():
            return
        for certified in certify_all(actor="command:up"):
            if certified.counts:
                counts = " ".join(f"{kind}={number}" for kind, number in certified.counts.items())
                self.stdout.write(
                    f"certified tenant={certified.tenant} {counts} (first start with an installation key)"
                )
        mark.unlink()
