"""When was a member here? One row each: what the console knows about its own use, and nothing of what it shows."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from django.conf import settings
from django.db import models

from kernel.tenancy import TenantModel


class Visit(TenantModel):
    """A member's present visit to the console: `since` when, `last_at` a page was open, and `before` when they had been
    here last (empty on the first)."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    since = models.DateTimeField()
    last_at = models.DateTimeField()
    before: models.DateTimeField[datetime | None, datetime | None] = models.DateTimeField(null=True)

    class Meta(TenantModel.Meta):
        constraints: ClassVar = [models.UniqueConstraint(fields=["tenant", "user"], name="visit_once")]
