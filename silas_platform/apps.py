"""Which Django apps does the composition itself bring? The admin site and the start-up checks."""

from __future__ import annotations

from django.apps import AppConfig
from django.contrib.admin.apps import AdminConfig


class SilasAdminConfig(AdminConfig):
    default_site = "silas_platform.admin.SilasAdminSite"


class PlatformConfig(AppConfig):
    name = "silas_platform"
    label = "silas_platform"

    def ready(self) -> None:
        from silas_platform import checks  # noqa: F401  (registers the system checks)
