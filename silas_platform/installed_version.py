"""The version of the platform that migrated the database last: written by every `migrate`, read by operators."""

from __future__ import annotations

from django.db import connections

from silas_platform import __version__
from silas_platform.models import InstalledVersion


def record(using: str) -> None:
    """Note that this version migrated the database, unless it was this version already."""
    if _has_table(using) and migrated_by(using) != __version__:
        InstalledVersion.objects.using(using).create(version=__version__)


def migrated_by(using: str = "default") -> str:
    """The version that migrated the database last; "" if it was one that did not record itself."""
    if not _has_table(using):
        return ""
    newest = InstalledVersion.objects.using(using).order_by("-pk").first()
    return newest.version if newest else ""


def _has_table(using: str) -> bool:
    with connections[using].cursor() as cursor:
        return InstalledVersion._meta.db_table in connections[using].introspection.table_names(cursor)
