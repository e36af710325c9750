"""`manage.py import_goal --tenant SLUG --deployment SLUG FILE`: install the goal of a markdown file on a deployment.

Idempotent. `--check` only validates. Exit code 1 when the file is rejected (with its code and line, and nothing
changed), 2 when there is no such tenant, deployment or file.
"""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from apps.tenants.models import Deployment, Tenant
from apps.work.services import check_goal, install_goal
from kernel.errors import SilasError
from kernel.tenancy import tenant_scope

ACTOR = "command:import_goal"


class Command(BaseCommand):
    help = "Install the goal of a markdown file (gates, levels, escalations, skills) on a deployment. Idempotent."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, metavar="FILE")
        parser.add_argument("--tenant", required=True, metavar="SLUG")
        parser.add_argument("--deployment", required=True, metavar="SLUG")
        parser.add_argument("--check", action="store_true", help="validate the file without changing anything")

    def handle(self, *args: object, **options: Any) -> None:
        file: Path = options["file"]
        try:
            markdown = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise CommandError(f"{file} cannot be read: {error}", returncode=2) from error
        tenant = Tenant.objects.filter(slug=options["tenant"]).first()
        if tenant is None:
            raise CommandError(f"There is no tenant {options['tenant']!r}.", returncode=2)
        with tenant_scope(tenant):
            deployment = Deployment.objects.filter(slug=options["deployment"]).first()
            if deployment is None:
                raise CommandError(f"There is no deployment {options['deployment']!r}.", returncode=2)
            try:
                message = self._checked(markdown, deployment, check_only=options["check"])
            except SilasError as refused:
                raise CommandError(f"{file}: {refused.code}: {refused.message}", returncode=1) from refused
        self.stdout.write(message)

    def _checked(self, markdown: str, deployment: Deployment, *, check_only: bool) -> str:
        if check_only:
            spec = check_goal(markdown, deployment=deployment).spec
            return f"ok title={spec.title!r} {_counts(spec)}"
        installed = install_goal(markdown, deployment=deployment, requested_by=ACTOR)
        verb = "installed" if installed.changed else "unchanged"
        return f"{verb} goal={installed.goal.pk} {_counts(installed.goal.spec)}"


def _counts(spec: Any) -> str:
    return f"gates={len(spec.gates)} levels={len(spec.access_levels)} escalations={len(spec.escalation)}"
