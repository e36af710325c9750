"""App configurations of the project itself: the admin site, start-up checks and database rights."""

from __future__ import annotations

import logging

from django.apps import AppConfig, apps
from django.contrib.admin.apps import AdminConfig
from django.db import OperationalError, connections
from django.db.models.signals import post_migrate

OWNER = "owner"
_log = logging.getLogger(__name__)


class SilasAdminConfig(AdminConfig):
    default_site = "silas_platform.admin.SilasAdminSite"


class PlatformConfig(AppConfig):
    name = "silas_platform"
    label = "silas_platform"

    def ready(self) -> None:
        from apps.bus import retention
        from silas_platform import (
            celery,  # noqa: F401  (the application that `shared_task` and `delay` use)
            checks,  # the import registers the system checks
            partitions,
        )

        retention.register(partitions.extend, installation=True)
        checks.arm_fault_points()
        checks.choose_sandbox()
        checks.disable_core_dumps()
        # Django sends the signal only for apps with models; any of them will do, since all migrations have run by then.
        post_migrate.connect(_set_rights, sender=apps.get_app_config("tenants"))


def _set_rights(using: str, **_: object) -> None:
    """Set database rights after the last migration: workers' rights on every table as listed, who may write which audit
    entries, the bundled skills, and every function's search path; then note this version, and make the partitions of
    the coming months."""
    from apps.audit.sql import chain
    from apps.skills import append_only, integrity
    from kernel.tenancy import partitions
    from silas_platform import database_rights, installed_version, worker_rights

    if using == OWNER:
        worker_rights.grant(using)
        with connections[using].cursor() as cursor:
            tables = connections[using].introspection.table_names(cursor)
            if "audit_audithead" in tables:
                cursor.execute(chain.APPEND)
            if "skills_skillversion" in tables:
                cursor.execute(append_only.lifecycle_sql(integrity.bundled_digests()))
            cursor.execute(partitions.EXTEND)
        database_rights.secure(using)
        installed_version.record(using)
        _extend_partitions(using)


def _extend_partitions(using: str) -> None:
    """Make the partitions of the coming months; the upkeep repeats what a lock prevents."""
    try:
        with connections[using].cursor() as cursor:
            cursor.execute("SELECT partitions_extend()")
    except OperationalError as error:
        _log.warning("partitions_not_extended reason=%s", str(error).splitlines()[0])
