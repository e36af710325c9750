"""Changes of the review thresholds that a family of actions has earned at a deployment; append-only.

A widening change needs a spent approval for exactly that change (held by a trigger) and stays within the hard caps; a
row is never rewritten. The newest row counts for as long as the deployment's own numbers are those that it was a change
of (spec 5.1.6, 5.9; ADR 42).
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar
from uuid import UUID

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from apps.work.confidence import MAX_BATCH, MIN_EARNED_HIGH, Thresholds
from apps.work.enums import Direction
from kernel.tenancy import TenantModel


class ThresholdChange(TenantModel):
    """`usual_…`: the deployment's own numbers at the time. `family`: the tool that its actions call. `number` is
    consecutive."""

    deployment = models.ForeignKey("tenants.Deployment", on_delete=models.PROTECT, related_name="+")
    family = models.CharField(max_length=80)
    number = models.PositiveIntegerField()
    direction = models.CharField(max_length=8, choices=Direction.choices)
    usual_size = models.PositiveIntegerField()
    usual_high = models.FloatField()
    size_before = models.PositiveIntegerField()
    size_after = models.PositiveIntegerField()
    high_before = models.FloatField()
    high_after = models.FloatField()
    approval_token = models.OneToOneField(
        "approvals.ApprovalToken", on_delete=models.PROTECT, null=True, related_name="+"
    )
    user = models.ForeignKey("tenants.User", on_delete=models.PROTECT, related_name="+")
    changed_at = models.DateTimeField(db_default=Now())

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["-changed_at"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["deployment", "family", "number"], name="thresholds_change_once"),
            models.CheckConstraint(
                condition=Q(direction=Direction.WIDEN, approval_token__isnull=False)
                | Q(size_after__lte=F("size_before"), high_after__gte=F("high_before")),
                name="thresholds_widen_only_approved",
            ),
            models.CheckConstraint(
                condition=~Q(direction=Direction.WIDEN)
                | Q(high_after__gte=MIN_EARNED_HIGH)
                | Q(high_after__gte=F("high_before")),
                name="thresholds_stay_within_caps",
            ),
            models.CheckConstraint(
                condition=Q(size_after__range=(1, MAX_BATCH), high_after__range=(0, 1)), name="thresholds_make_sense"
            ),
        ]

    deployment_id: UUID

    def __str__(self) -> str:
        return f"{self.family} {self.direction}"

    def is_of(self, usual: Thresholds) -> bool:
        """Whether this was a change of these numbers of the deployment."""
        return (self.usual_size, self.usual_high) == (usual.size, usual.high_min)

    def thresholds(self, usual: Thresholds) -> Thresholds:
        """The thresholds after this change. Drafts begin where the deployment says, and never above batches."""
        return replace(usual, high_min=max(self.high_after, usual.medium_min), size=self.size_after)
