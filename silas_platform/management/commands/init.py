"""`silas init`: prepare an installation for its first start and say what it found (specification, section 12).

Every step can be repeated: what exists already stays. Keys are made by `manage.py` before any command runs; their
private halves are never printed.
"""

from __future__ import annotations

import io

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError

from apps.console.setup_address import setup_path
from apps.gates import guardrails
from apps.tenants.models import Tenant
from kernel.trust import root_of
from sandbox import SandboxUnavailable, backend
from silas_platform.settings import env


class Command(BaseCommand):
    help = "Makes keys, migrates the database, tries the sandbox, and prints the address for the first company."
    requires_system_checks = ()  # `prepare` runs them, before and after the migrations

    def handle(self, **_: object) -> None:
        if not settings.SILAS_SIGNING_KEY:
            raise CommandError("signing_key_missing: the installation key comes from SILAS_SIGNING_KEY; give it")
        call_command("prepare", stdout=io.StringIO())
        self._say("keys", f"installation key {root_of(settings.SILAS_SIGNING_KEY)}")
        self._say("database", "migrated")
        self._say("sandbox", _sandbox())
        self._say("guardrails", _guardrails())
        self._say("set up", _address())
        self.stdout.write("ready to start: silas start")

    def _say(self, subject: str, text: str) -> None:
        self.stdout.write(f"{subject:<10} {text}")


def _sandbox() -> str:
    try:
        return backend().name
    except SandboxUnavailable as unavailable:
        return f"none: {unavailable.message} Chatbots answer, but cannot act."


def _guardrails() -> str:
    if guardrails.is_installed():
        return "installed"
    return "not installed; gates of this provider need silas init --guardrails"


def _address() -> str:
    """The address of the set-up while there is no company, then the console's."""
    here = f"http://{env.text('HOST', '127.0.0.1')}:{env.number('PORT', 8420)}"
    return f"{here}/console/ (a company exists)" if Tenant.objects.exists() else f"{here}{setup_path()}"
