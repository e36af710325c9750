"""Batches of actions that one person decides together, and how finished work is undone."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q

from apps.work.enums import BatchStatus
from apps.work.models.items import WorkItem
from kernel.language import gettext_lazy as _
from kernel.tenancy import TenantModel


class Batch(TenantModel):
    """Actions that one person decides together (spec 5.2.4). Its approval binds goal, action and the ordered item ids;
    an item's id is the hash of its plan, so exactly what was listed runs. `undo_of`: the work that this batch undoes.
    """

    goal_ref = models.UUIDField(help_text=_("The goal it serves, or the work that it undoes"))
    deployment = models.ForeignKey("tenants.Deployment", on_delete=models.PROTECT, null=True, related_name="+")
    session_id = models.UUIDField(null=True)
    action = models.CharField(max_length=80)
    status = models.CharField(max_length=10, choices=BatchStatus.choices, default=BatchStatus.PROPOSED)
    reason_summary = models.TextField(blank=True)
    confidence_min = models.FloatField(null=True)
    approval_token = models.ForeignKey("approvals.ApprovalToken", on_delete=models.PROTECT, null=True, related_name="+")
    undo_of = models.UUIDField(null=True, help_text=_("The batch or work item that it undoes"))
    requested_by = models.CharField(max_length=80)
    trace_id = models.CharField(max_length=64)
    created_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True)

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["-created_at"]
        verbose_name_plural = _("batches")
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["tenant", "undo_of"], name="batch_undone_once"),
            models.CheckConstraint(
                condition=~Q(status__in=[BatchStatus.RUNNING, BatchStatus.FINISHED]) | Q(approval_token__isnull=False),
                name="batch_runs_only_approved",
            ),
        ]

    def __str__(self) -> str:
        return self.action


class BatchItem(TenantModel):
    """One line of a batch as shown on its card (contract silas 12), in the batch's order."""

    batch = models.ForeignKey(Batch, on_delete=models.PROTECT, related_name="items")
    position = models.PositiveIntegerField()
    work_item = models.ForeignKey(WorkItem, on_delete=models.PROTECT, related_name="batch_lines")
    item_id = models.CharField(max_length=64, help_text=_("The plan hash of its work item"))
    title = models.CharField(max_length=300)
    actor = models.CharField(max_length=120, blank=True)
    occurred_at = models.DateTimeField(null=True)
    reason = models.CharField(max_length=500, blank=True)
    confidence = models.FloatField(null=True)
    unusual = models.BooleanField(default=False, help_text=_("Differs from the other lines"))

    class Meta(TenantModel.Meta):
        ordering: ClassVar = ["batch", "position"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["batch", "position"], name="batch_position_once"),
            models.UniqueConstraint(fields=["batch", "item_id"], name="batch_item_once"),
        ]

    def __str__(self) -> str:
        return self.title


class UndoEntry(TenantModel):
    """How to undo an attempt: the declared inverse of each call, in the order in which the calls were made. Usable
    once, until `expires_at` inclusive (contract silas 12)."""

    work_item = models.OneToOneField(WorkItem, on_delete=models.PROTECT, related_name="undo")
    calls = models.JSONField(help_text=_("The inverse calls in the order of the calls: tool, args, skill"))
    summary = models.CharField(max_length=300)
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    undone_by = models.ForeignKey(Batch, on_delete=models.PROTECT, null=True, related_name="undoes")

    def __str__(self) -> str:
        return self.summary


class ReviewPolicy(TenantModel):
    """A deployment's own batch size and confidence thresholds, where they differ from the settings (spec 5.9)."""

    deployment = models.OneToOneField("tenants.Deployment", on_delete=models.CASCADE, related_name="+")
    default_size = models.PositiveIntegerField(null=True, blank=True)
    high_min = models.FloatField(null=True, blank=True)
    medium_min = models.FloatField(null=True, blank=True)

    class Meta(TenantModel.Meta):
        verbose_name_plural = _("review policies")
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(default_size__isnull=True) | Q(default_size__range=(1, 50)),
                name="review_size_within_bounds",
            ),
            models.CheckConstraint(
                condition=(Q(high_min__isnull=True) | Q(high_min__range=(0, 1)))
                & (Q(medium_min__isnull=True) | Q(medium_min__range=(0, 1))),
                name="review_confidence_is_a_share",
            ),
        ]

    def __str__(self) -> str:
        return f"review of {self.deployment_id}"
