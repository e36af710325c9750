"""Numbered releases of a deployment, and the company's rule for publishing one."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from apps.releases.enums import ReleaseStatus, SimulationOutcome, SimulationRule
from apps.releases.schemas import Snapshot
from kernel.language import gettext_lazy as _
from kernel.tenancy import TenantModel


class Release(TenantModel):
    """One published state of a deployment. Numbers begin at 1 without gaps. The snapshot (`schemas.Snapshot`) and its
    hash never change (a trigger refuses it); status and share do. The shares of live releases add up to 100 percent of
    new conversations. `restores` is the release whose served settings were published again."""

    deployment = models.ForeignKey("tenants.Deployment", on_delete=models.PROTECT, related_name="+")
    number = models.PositiveIntegerField()
    status = models.CharField(max_length=10, choices=ReleaseStatus.choices, default=ReleaseStatus.LIVE)
    share = models.PositiveSmallIntegerField(help_text=_("Percent of new conversations"))
    snapshot: models.JSONField[dict[str, Any], dict[str, Any]] = models.JSONField()
    sha256 = models.CharField(max_length=64)
    note = models.CharField(max_length=200, blank=True)
    restores: models.PositiveIntegerField[int | None, int | None] = models.PositiveIntegerField(null=True)
    simulation = models.CharField(max_length=8, choices=SimulationOutcome.choices, default=SimulationOutcome.MISSING)
    # Why it was published although the company's rule asks for a passed simulation.
    override_reason = models.CharField(max_length=300, blank=True)
    created_by = models.CharField(max_length=80)
    published_at: models.DateTimeField[datetime, datetime] = models.DateTimeField(db_default=Now())

    deployment_id: UUID

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["deployment", "-number"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["deployment", "number"], name="release_number_once"),
            models.CheckConstraint(condition=Q(number__gte=1), name="release_number_counts"),
            models.CheckConstraint(
                condition=Q(status=ReleaseStatus.LIVE, share__gte=1, share__lte=100)
                | (~Q(status=ReleaseStatus.LIVE) & Q(share=0)),
                name="release_share_when_live",
            ),
        ]

    def __str__(self) -> str:
        return f"release {self.number}"

    def read_snapshot(self) -> Snapshot:
        return Snapshot.model_validate(self.snapshot)


class ReleasePolicy(TenantModel):
    """Whether the company asks for a passed simulation before a release; one row per tenant, none for `off`."""

    simulations = models.CharField(max_length=8, choices=SimulationRule.choices, default=SimulationRule.OFF)

    class Meta(TenantModel.Meta):
        verbose_name_plural = _("release policies")
        constraints: ClassVar = [models.UniqueConstraint(fields=["tenant"], name="release_policy_once")]

    def __str__(self) -> str:
        return str(self.get_simulations_display())
