"""Models of the project itself, which belong to no tenant."""

from __future__ import annotations

from django.db import models


class InstalledVersion(models.Model):
    """A version of the platform that migrated this database. The newest row is the one it was migrated by last."""

    version = models.CharField(max_length=40)
    migrated_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.version
