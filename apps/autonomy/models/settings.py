"""What a company and each member allow to run unattended."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db import models
from django.db.models.functions import Now

from apps.autonomy.enums import Egress
from kernel.language import gettext_lazy as _
from kernel.tenancy import TenantModel


class AutonomySettings(TenantModel):
    """What a company allows to run unattended; off by default. Never cached: a change holds from the next read."""

    enabled = models.BooleanField(default=False)
    max_concurrent = models.PositiveSmallIntegerField(default=3)
    idle_seconds = models.PositiveIntegerField(default=300)
    limits: models.JSONField[dict[str, Any], dict[str, Any]] = models.JSONField(
        default=dict, blank=True, help_text=_("What one run may use at most, whatever its task allows")
    )
    retry_base_seconds = models.PositiveIntegerField(default=5)
    retry_most_seconds = models.PositiveIntegerField(default=300)
    egress = models.CharField(
        max_length=12, choices=Egress.choices, default=Egress.ANONYMOUS, db_default=Egress.ANONYMOUS.value
    )

    class Meta(TenantModel.Meta):
        verbose_name_plural = _("autonomy settings")
        constraints: ClassVar = [models.UniqueConstraint(fields=["tenant"], name="autonomy_settings_once")]


class MemberOptIn(TenantModel):
    """A member's consent that their tasks run unattended. Deleted with the membership."""

    membership = models.OneToOneField("tenants.Membership", on_delete=models.CASCADE, related_name="+")
    user = models.ForeignKey("tenants.User", on_delete=models.CASCADE, related_name="+")
    opted_at = models.DateTimeField(db_default=Now())

    class Meta(TenantModel.Meta):
        constraints: ClassVar = [models.UniqueConstraint(fields=["tenant", "user"], name="autonomy_opt_in_once")]
