"""When a member was last in the console."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from django.conf import settings
from django.db import models

from kernel.tenancy import TenantModel


class Visit(TenantModel):
    """A member's current visit to the console: since when, when a page was last open, and when the visit before ended
    (empty on the first visit)."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    since = models.DateTimeField()
    last_at = models.DateTimeField()
    before: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True)

    class Meta(TenantModel.Meta):
        constraints: ClassVar = [models.UniqueConstraint(fields=["tenant", "user"], name="visit_once")]
